package tree

// A Scorer computes the scores of rows, fast. It allocates nothing for a row, and any number of
// goroutines may use it. The score of a row depends, to the bit, on that row and the ensemble
// alone. It does not depend on the batch of the row, the number of threads, or whether the row
// is dense or sparse.
//
// Rows are features in the order of the ensemble. Further values in a row are ignored. NaN is a
// missing feature.
type Scorer struct {
	e *Ensemble
	// One of them is set. There is no interface for both, since calls through it would make the
	// source of rows escape to the heap.
	single *layout[int32]
	double *layout[int64]
}

// CSR is a block of sparse rows: the features and values of row i are Col[p] and Val[p] for p
// from RowPtr[i] to RowPtr[i+1]. Features that the ensemble does not have are ignored. If a
// feature has several values, the last counts.
type CSR struct {
	RowPtr []int64
	Col    []int32
	Val    []float64
}

// Absent is the meaning of features absent from sparse rows.
type Absent uint8

// Meanings of absent features.
const (
	// AbsentIsMissing takes absent features as missing.
	AbsentIsMissing Absent = iota
	// AbsentIsZero takes absent features as 0.
	AbsentIsZero
)

// Scorer lays the ensemble out for prediction. It takes time and memory in proportion to the
// ensemble, so make it once. It panics if the ensemble fails Validate.
func (e *Ensemble) Scorer() *Scorer {
	if err := e.Validate(); err != nil {
		panic(err)
	}
	if e.Single {
		return &Scorer{e: e, single: newLayout[int32](e)}
	}
	return &Scorer{e: e, double: newLayout[int64](e)}
}

// Ensemble returns the ensemble of the scorer.
func (s *Scorer) Ensemble() *Ensemble { return s.e }

// Scores writes to out the scores of one row, a value for each output. Several rows at a time
// are faster: see Dense.
func (s *Scorer) Scores(row, out []float64) {
	src := source{x64: row}
	s.one(&src, out, nil)
}

// Scores32 is Scores for a row of float32.
func (s *Scorer) Scores32(row []float32, out []float64) {
	src := source{x32: row}
	s.one(&src, out, nil)
}

// ScoresSparse is Scores for a sparse row, given by its features and their values.
func (s *Scorer) ScoresSparse(col []int32, val []float64, absent Absent, out []float64) {
	ends := [2]int64{0, int64(len(col))}
	src := source{csr: CSR{RowPtr: ends[:], Col: col, Val: val}, absent: absent, sparse: true}
	s.one(&src, out, nil)
}

// Leaves writes to out, for each tree, the number of the node in which a row ends.
func (s *Scorer) Leaves(row []float64, out []int32) {
	src := source{x64: row}
	s.one(&src, nil, out)
}

// Dense writes to out the scores of the n rows of x: a value for each output, row after row. x
// is row-major with a value for each feature. threads goroutines share the work, with the
// caller's; below 2, the caller's alone does it.
func (s *Scorer) Dense(x []float64, n int, out []float64, threads int) {
	s.run(source{x64: x}, n, out, nil, threads)
}

// Dense32 is Dense for rows of float32.
func (s *Scorer) Dense32(x []float32, n int, out []float64, threads int) {
	s.run(source{x32: x}, n, out, nil, threads)
}

// Sparse is Dense for sparse rows.
func (s *Scorer) Sparse(x CSR, absent Absent, out []float64, threads int) {
	s.run(source{csr: x, absent: absent, sparse: true}, max(len(x.RowPtr)-1, 0), out, nil, threads)
}

// DenseLeaves is Leaves for the n rows of x, which are as for Dense. out gets a node number for
// each tree, row after row.
func (s *Scorer) DenseLeaves(x []float64, n int, out []int32, threads int) {
	s.run(source{x64: x}, n, nil, out, threads)
}

// SparseLeaves is Leaves for sparse rows.
func (s *Scorer) SparseLeaves(x CSR, absent Absent, out []int32, threads int) {
	s.run(source{csr: x, absent: absent, sparse: true}, max(len(x.RowPtr)-1, 0), nil, out, threads)
}

// one takes the first row of the source through the trees.
func (s *Scorer) one(src *source, out []float64, leaves []int32) {
	if s.single != nil {
		s.single.one(src, out, leaves)
	} else {
		s.double.one(src, out, leaves)
	}
}

// run divides the rows among threads. A thread takes the next stretch when it has done one.
func (s *Scorer) run(src source, n int, out []float64, leaves []int32, threads int) {
	src.stride = len(s.e.Features)
	split(n, lanes, threads, func(from, to int) {
		if s.single != nil {
			s.single.rows(&src, from, to, out, leaves)
		} else {
			s.double.rows(&src, from, to, out, leaves)
		}
	})
}
