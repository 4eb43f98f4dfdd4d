package gbdt

// Rows has the rows of one shard of the training rows or of an evaluation set, and is passed to
// objectives and metrics. The slices are views. Do not modify them, and do not use them after
// the call.
type Rows struct {
	// N is the number of rows.
	N int
	// Margin[k][i] is the margin of row i for output k.
	Margin [][]float64
	// Label has the labels: numbers, or the indices of classes. Upper has the upper ends of the
	// intervals of AFT; it is nil where labels are not intervals.
	Label, Upper []float64
	// Weight has the weights of rows; it is nil if every row has the weight 1.
	Weight []float64
	// Groups has the index of the first row of each query, and then N. It is nil without
	// queries.
	Groups []int32
}

// weight returns the weight of a row.
func (r *Rows) weight(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}
