package tree

// A Scorer computes the scores of rows in a fast way. It does not allocate for a row, and any
// number of goroutines may use it. All bits of the score of a row depend only on that row and
// the ensemble. They do not depend on the batch to which the row belongs, the number of
// threads, or whether the row is dense or sparse.
//
// A row has the values of the features in the order of the ensemble. Further values in a row
// are ignored. NaN means a missing feature.
type Scorer struct {
	e *Ensemble
	// One of single and double is set. They are not hidden behind an interface, because calls
	// through an interface would make source escape to the heap.
	single *layout[int32]
	double *layout[int64]
}

// CSR is a block of sparse rows in compressed form: the features and values of row i are Col[p]
// and Val[p] for p from RowPtr[i] to RowPtr[i+1]−1. Features that the ensemble does not have
// are ignored. If a feature has several values in a row, the last one is used.
type CSR struct {
	RowPtr []int64
	Col    []int32
	Val    []float64
}

// Absent says how features absent from sparse rows are treated.
type Absent uint8

const (
	// AbsentIsMissing treats absent features as missing.
	AbsentIsMissing Absent = iota
	// AbsentIsZero treats absent features as 0.
	AbsentIsZero
)

// Scorer returns a scorer of the ensemble. It takes time and memory in proportion to the size
// of the ensemble, so call it once and keep the result. It panics if the ensemble fails
// Validate.
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

// Scores writes to out the scores of one row, a value for each output. For many rows Dense is
// faster.
func (s *Scorer) Scores(row, out []float64) {
	src := source{x64: row}
	s.one(&src, out, nil)
}

// Scores32 does what Scores does, for a row of float32 values.
func (s *Scorer) Scores32(row []float32, out []float64) {
	src := source{x32: row}
	s.one(&src, out, nil)
}

// ScoresSparse does what Scores does, for a sparse row with the features col and their values
// val.
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
// is row-major with a value for each feature. The work is divided among threads goroutines, of
// which the caller's is one. If threads is below 2, the caller's goroutine does all the work.
func (s *Scorer) Dense(x []float64, n int, out []float64, threads int) {
	s.run(source{x64: x}, n, out, nil, threads)
}

// Dense32 does what Dense does, for rows of float32 values.
func (s *Scorer) Dense32(x []float32, n int, out []float64, threads int) {
	s.run(source{x32: x}, n, out, nil, threads)
}

// Sparse does what Dense does, for sparse rows.
func (s *Scorer) Sparse(x CSR, absent Absent, out []float64, threads int) {
	s.run(source{csr: x, absent: absent, sparse: true}, max(len(x.RowPtr)-1, 0), out, nil, threads)
}

// DenseLeaves does what Leaves does, for each of the n rows of x, which are as in Dense. It
// writes a node number for each tree to out, row after row.
func (s *Scorer) DenseLeaves(x []float64, n int, out []int32, threads int) {
	s.run(source{x64: x}, n, nil, out, threads)
}

// SparseLeaves does what DenseLeaves does, for sparse rows.
func (s *Scorer) SparseLeaves(x CSR, absent Absent, out []int32, threads int) {
	s.run(source{csr: x, absent: absent, sparse: true}, max(len(x.RowPtr)-1, 0), nil, out, threads)
}

// one passes the first row of src through the trees.
func (s *Scorer) one(src *source, out []float64, leaves []int32) {
	if s.single != nil {
		s.single.one(src, out, leaves)
	} else {
		s.double.one(src, out, leaves)
	}
}

// run divides the rows among threads goroutines. A goroutine takes the next range of rows when
// it has finished one.
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
