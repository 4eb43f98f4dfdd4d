package gbdt

// Rows are rows of one shard as objectives and metrics see them: all of them, or those of an
// evaluation set. They are views, not to be modified, and good during the call alone.
type Rows struct {
	// N is how many there are.
	N int
	// Margin has for each output the margins of the rows: Margin[k][i].
	Margin [][]float64
	// Label has numbers, or the numbers of classes. Upper has the upper ends of intervals of
	// AFT, nil where labels are no intervals.
	Label, Upper []float64
	// Weight is nil where every row weighs 1.
	Weight []float64
	// Groups has the first row of each query and, behind the last, N; nil without queries.
	Groups []int32
}

// weight returns the weight of a row.
func (r *Rows) weight(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}
