package gbdt

// Rows are the rows of one shard, of the training or of an evaluation set, for objectives and
// metrics. The slices are views: do not modify them, nor use them after the call.
type Rows struct {
	// N is the number of rows.
	N int
	// Margin[k][i] is the margin of row i for output k.
	Margin [][]float64
	// Label has numbers, or the numbers of classes. Upper has the upper ends of the intervals
	// of AFT; it is nil where labels are not intervals.
	Label, Upper []float64
	// Weight is nil where every row weighs 1.
	Weight []float64
	// Groups has the first row of each query, then N; it is nil without queries.
	Groups []int32
}

// weight returns the weight of a row.
func (r *Rows) weight(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}
