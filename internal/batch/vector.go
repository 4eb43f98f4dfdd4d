package batch

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// SparseVector is a vector of which only the non-zero components are stored.
type SparseVector struct {
	Size    int       // number of components; 0 means unknown
	Indices []int32   // ascending, each from 0 to Size-1
	Values  []float64 // Values[k] is the component with the index Indices[k]
}

// Validate returns an error unless indices and values have equal length, and indices strictly
// ascend and are below the size.
func (v *SparseVector) Validate() error {
	if v.Size < 0 || v.Size > MaxDim {
		return fmt.Errorf("sparse vector has size %d, which is not between 0 and %d", v.Size, MaxDim)
	}
	if len(v.Indices) != len(v.Values) {
		return fmt.Errorf("sparse vector has %d indices but %d values", len(v.Indices), len(v.Values))
	}
	last := int32(-1)
	for k, i := range v.Indices {
		switch {
		case i < 0:
			return fmt.Errorf("sparse vector has the negative index %d at position %d", i, k)
		case i <= last:
			return fmt.Errorf("sparse vector has index %d after %d at position %d; indices must ascend", i, last, k)
		case v.Size > 0 && int(i) >= v.Size:
			return fmt.Errorf("sparse vector has index %d but size %d", i, v.Size)
		}
		last = i
	}
	return nil
}

// Clone returns a copy that shares no memory with v.
func (v SparseVector) Clone() SparseVector {
	return SparseVector{Size: v.Size, Indices: append([]int32(nil), v.Indices...), Values: append([]float64(nil), v.Values...)}
}

// CSR is a view of sparse vectors in compressed sparse row form. Row i has the components
// Indices[Indptr[i]:Indptr[i+1]], with the Values at the same positions. Indptr has one entry
// more than there are rows, and its first entry need not be 0.
type CSR struct {
	Size    int // components per row; 0 if the column declares no size
	Indptr  []int32
	Indices []int32
	Values  []float64
}

// Rows returns the number of rows.
func (c CSR) Rows() int { return len(c.Indptr) - 1 }

// DenseView returns the rows of a vector[dim] column as one flat row-major block of
// len(arr)*dim values. The block shares the memory of the array: it must not be modified, and
// is valid while the array is retained. ok is false if the column has another type or a null
// row.
func DenseView(arr arrow.Array) (data []float64, dim int, ok bool) {
	v := viewOf(arr)
	if v.kind != kindVector || hasNull(&v) {
		return nil, 0, false
	}
	return v.f64, v.dim, true
}

// DenseView32 is DenseView for a vector32[dim] column.
func DenseView32(arr arrow.Array) (data []float32, dim int, ok bool) {
	v := viewOf(arr)
	if v.kind != kindVector32 || hasNull(&v) {
		return nil, 0, false
	}
	return v.f32, v.dim, true
}

// RaggedView returns the rows of a variable vector column: row i is
// values[indptr[i]:indptr[i+1]]. As with DenseView, the result shares the memory of the array,
// and ok is false for another type or a null row.
func RaggedView(arr arrow.Array) (indptr []int32, values []float64, ok bool) {
	v := viewOf(arr)
	if v.kind != kindList || hasNull(&v) {
		return nil, nil, false
	}
	return v.offs, v.f64, true
}

// SparseView returns the rows of a sparse column in CSR form. As with DenseView, the result
// shares the memory of the array, and ok is false for another type or a null row. ok is also
// false if the two lists of the array have different offsets; this package never writes such an
// array.
func SparseView(arr arrow.Array) (CSR, bool) {
	v := viewOf(arr)
	if v.kind != kindSparse || hasNull(&v) {
		return CSR{}, false
	}
	if v.n == 0 {
		return CSR{Size: v.dim, Indptr: []int32{0}}, true
	}
	shift := v.voffs[0] - v.offs[0]
	for i, end := range v.offs {
		if v.voffs[i]-end != shift {
			return CSR{}, false
		}
	}
	c := CSR{Size: v.dim, Indptr: v.offs, Indices: v.idx, Values: v.f64}
	if shift >= 0 {
		c.Values = v.f64[shift:]
	} else {
		c.Indptr, c.Indices = v.voffs, v.idx[-shift:]
	}
	return c, true
}

func hasNull(v *view) bool {
	if v.valid == nil {
		return false
	}
	for i := range v.n {
		if v.null(i) {
			return true
		}
	}
	return false
}

// VectorDim returns the number of components per row that a vector or sparse type declares. It
// returns 0 for a vector type that declares none, and for other types.
func VectorDim(dt arrow.DataType) int { return dimOf(dt) }

// IsNumber reports whether values of a type are numbers, or bools, which count as 0 and 1.
func IsNumber(dt arrow.DataType) bool {
	id := dt.ID()
	return id == arrow.BOOL || arrow.IsInteger(id) || id == arrow.FLOAT32 || id == arrow.FLOAT64
}

// IsVector reports whether a type is one of the vector types.
func IsVector(dt arrow.DataType) bool { return kindOf(dt).isVector() }

// NewVectorArray returns a vector[dim] column of the rows in data, row-major. It copies data
// into memory of mem. It panics if dim is below 1 or the length of data is not a multiple of
// dim.
func NewVectorArray(mem memory.Allocator, data []float64, dim int) arrow.Array {
	return vectorArray(bufferOf(mem, bytesOf(data)), len(data), dim)
}

// WrapVectorArray is NewVectorArray without the copy: the column refers to data, which must not
// be modified afterwards. data remains on the Go heap, and no allocator accounts for it.
func WrapVectorArray(data []float64, dim int) arrow.Array {
	return vectorArray(memory.NewBufferBytes(bytesOf(data)), len(data), dim)
}

func vectorArray(buf *memory.Buffer, n, dim int) arrow.Array {
	dt, err := VectorType(dim)
	if err != nil || n%dim != 0 {
		buf.Release()
		panic(fmt.Sprintf("batch: %d values do not make vectors of %d components", n, dim))
	}
	child := ownedData(arrow.PrimitiveTypes.Float64, n, []*memory.Buffer{nil, buf}, nil, 0)
	return ownedArray(ownedData(dt, n/dim, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0))
}

// WrapArray returns a column of the fixed-width type dt with the values of data. Like
// WrapVectorArray, it does not copy data. T must have the width of dt.
func WrapArray[T any](dt arrow.DataType, data []T) arrow.Array {
	buf := memory.NewBufferBytes(bytesOf(data))
	return ownedArray(ownedData(dt, len(data), []*memory.Buffer{nil, buf}, nil, 0))
}

// NewVariableVectors returns a column of variable vectors, copied into memory of mem. Row i has
// values[offsets[i]:offsets[i+1]].
func NewVariableVectors(mem memory.Allocator, offsets []int32, values []float64) (arrow.Array, error) {
	if len(offsets) == 0 {
		offsets = []int32{0}
	}
	first, last := offsets[0], offsets[len(offsets)-1]
	if first < 0 || int(last) > len(values) || !slices.IsSorted(offsets) {
		return nil, fmt.Errorf("offsets of vectors, from %d to %d, do not ascend within %d values", first, last, len(values))
	}
	offs := newBuffer(mem, len(offsets)*arrow.Int32SizeBytes)
	for i, at := range offsets {
		castBytes[int32](offs.Bytes())[i] = at - first
	}
	items := bufferOf(mem, bytesOf(values[first:last]))
	child := ownedData(arrow.PrimitiveTypes.Float64, int(last-first), []*memory.Buffer{nil, items}, nil, 0)
	return ownedArray(ownedData(VariableVectorType(), len(offsets)-1, []*memory.Buffer{nil, offs}, []arrow.ArrayData{child}, 0)), nil
}

// NewSparseArray returns a column of type sparse[c.Size] with the rows of c,
// copied into memory of mem. Rows must be valid sparse vectors.
func NewSparseArray(mem memory.Allocator, c CSR) (arrow.Array, error) {
	dt, err := SparseType(c.Size)
	if err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	first, last := c.Indptr[0], c.Indptr[len(c.Indptr)-1]
	offs := newBuffer(mem, len(c.Indptr)*arrow.Int32SizeBytes)
	for i, p := range c.Indptr {
		castBytes[int32](offs.Bytes())[i] = p - first
	}
	return ownedArray(sparseData(dt, c.Rows(), nil, 0, offs,
		bufferOf(mem, bytesOf(c.Indices[first:last])), bufferOf(mem, bytesOf(c.Values[first:last])))), nil
}

func (c *CSR) validate() error {
	if len(c.Indptr) == 0 || c.Indptr[0] < 0 {
		return fmt.Errorf("sparse rows need at least one row pointer, and none negative")
	}
	for i := range c.Rows() {
		lo, hi := c.Indptr[i], c.Indptr[i+1]
		if hi < lo || int(hi) > len(c.Indices) || int(hi) > len(c.Values) {
			return fmt.Errorf("sparse row %d spans %d to %d of %d indices and %d values", i, lo, hi, len(c.Indices), len(c.Values))
		}
		row := SparseVector{Size: c.Size, Indices: c.Indices[lo:hi], Values: c.Values[lo:hi]}
		if err := row.Validate(); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// Vectors gives access to the rows of a vector column of any kind, which it borrows. For a null
// row, only the result of Null is meaningful.
type Vectors struct {
	v   view
	row []float64
}

// VectorsOf returns the rows of a vector column.
func VectorsOf(arr arrow.Array) *Vectors { return &Vectors{v: viewOf(arr)} }

// Null reports whether a row is null.
func (x *Vectors) Null(i int) bool { return x.v.null(i) }

// Dense returns the components of row i of a column that is not sparse. If they are float64,
// the result shares the memory of the column; otherwise it is valid until the next call.
func (x *Vectors) Dense(i int) []float64 {
	switch x.v.kind {
	case kindVector, kindList:
		return x.v.dense64(i)
	case kindVector32, kindList32:
		x.row = x.row[:0]
		for _, f := range x.v.dense32(i) {
			x.row = append(x.row, float64(f))
		}
		return x.row
	}
	return nil
}

// Sparse returns the indices and values of row i of a sparse column, without checking them. If
// user code made the batch, the indices may not ascend, and the numbers of indices and values
// may differ.
func (x *Vectors) Sparse(i int) ([]int32, []float64) {
	if x.v.kind != kindSparse {
		return nil, nil
	}
	return x.v.sparse(i)
}

// Component returns a component of row i. It is 0 if the row is sparse and does not store the
// component.
func (x *Vectors) Component(i, component int) float64 {
	if x.v.kind != kindSparse {
		return x.Dense(i)[component]
	}
	indices, values := x.v.sparse(i)
	if k := slices.Index(indices, int32(component)); k >= 0 {
		return values[k]
	}
	return 0
}

// FirstNonFinite returns the position of the first NaN or infinity in a float or vector column.
// The search begins at row from. For a sparse vector, component is the index, and for a scalar
// it is 0. Null rows are skipped. bad is false if there is no such value, and for columns of
// other types.
func FirstNonFinite(arr arrow.Array, from int) (row, component int, bad bool) {
	v := viewOf(arr)
	for i := from; i < v.n; i++ {
		if v.null(i) {
			continue
		}
		if c := nonFiniteAt(&v, i); c >= 0 {
			return i, c, true
		}
	}
	return 0, 0, false
}

// nonFiniteAt returns the first component of row i that is not finite, or -1 if all are finite.
func nonFiniteAt(v *view, i int) int {
	switch v.kind {
	case kindFloat64:
		return kernel.NonFinite(window(unsafeSlice[float64](v), i, 1))
	case kindFloat32:
		return kernel.NonFinite(window(unsafeSlice[float32](v), i, 1))
	case kindVector, kindList:
		return kernel.NonFinite(v.dense64(i))
	case kindVector32, kindList32:
		return kernel.NonFinite(v.dense32(i))
	case kindSparse:
		indices, values := v.sparse(i)
		if k := kernel.NonFinite(values); k >= 0 {
			return int(indices[k])
		}
	}
	return -1
}
