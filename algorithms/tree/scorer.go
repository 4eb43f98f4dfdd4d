package tree

// A Scorer computes what an ensemble gives for rows, fast. It allocates nothing for a row and
// may be used by any number of goroutines. What it gives for a row depends on that row and the
// ensemble alone, to the bit: not on the batch the row is in, the number of threads, or whether
// the row is dense or sparse.
//
// Rows are features in the order of the ensemble; more behind them are not looked at. NaN is a
// missing feature.
type Scorer struct {
	e *Ensemble
	// One of them is the layout. They are no interface, through which what rows come in would
	// have to be allocated.
	single *layout[int32]
	double *layout[int64]
}

// CSR is a block of sparse rows: the features and values of row i are Col[p] and Val[p] for p
// from RowPtr[i] to RowPtr[i+1]. Features that the ensemble does not have are not looked at;
// of several values for a feature the last counts.
type CSR struct {
	RowPtr []int64
	Col    []int32
	Val    []float64
}

// Absent says what sparse rows mean by a feature that they do not hold.
type Absent uint8

// What absent features mean.
const (
	// AbsentIsMissing takes absent features for missing.
	AbsentIsMissing Absent = iota
	// AbsentIsZero takes them for 0.
	AbsentIsZero
)

// Scorer lays the ensemble out for prediction. It takes time and memory in proportion to the
// ensemble, so it is made once. It panics if Validate finds a fault.
func (e *Ensemble) Scorer() *Scorer {
	if err := e.Validate(); err != nil {
		panic(err)
	}
	if e.Single {
		return &Scorer{e: e, single: newLayout[int32](e)}
	}
	return &Scorer{e: e, double: newLayout[int64](e)}
}

// Ensemble returns what the scorer was made of.
func (s *Scorer) Ensemble() *Ensemble { return s.e }

// Scores writes to out what the ensemble gives for one row, a value for each output. Several
// rows at a time are faster: see Dense.
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

// Dense writes to out what the ensemble gives for the n rows of x, which is row-major with a
// value for each feature: a value for each output, row after row. threads goroutines share the
// work, the caller's among them; below 2 it is the caller's alone.
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

// DenseLeaves is Leaves for the n rows of x as Dense has them: out gets the numbers of the
// nodes for each tree, row after row.
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

// run gives blocks of rows to the threads, to each the next when it has done one.
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
