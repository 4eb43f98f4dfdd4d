package batch

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// Reader reads rows of batches of one schema into values of T. Only one goroutine at a time may
// use a Reader. Readers are cheap, so each goroutine can have its own.
type Reader[T any] struct {
	schema *arrow.Schema
	cols   []columnReader
	n      int
}

// columnReader copies one column into one field.
type columnReader struct {
	field  *codecField
	col    int
	load   func(c *columnReader, row int, p unsafe.Pointer) // p points to the value, also for pointer fields
	view   view
	copies bool      // whether slices and strings are copied; see Reader.SetCopy
	wide   []float64 // rows wideLo to wideHi-1 of a float32 vector column, converted to float64
	wideLo int
	wideHi int
	dense  int                   // number of components if a sparse column is read into a []float64
	exact  int                   // number of components that every row of a variable vector must have; 0 if any number is allowed
	fresh  func() unsafe.Pointer // for pointer fields: returns a pointer to a new value
}

// Bind matches the fields of T with the columns of a schema, by name; other columns are
// ignored. If T is a single value, it is read from the only column of the schema, or from the
// column named "value" if there are several. A column may have another type than its field if
// the conversion loses nothing: smaller integers are read into larger ones, integers into
// floats that hold them exactly, float32 into float64, any vector of float64 or float32 or
// sparse[size] into []float64, utf8 into []byte, and any timestamp or date32 into time.Time. A
// field with a fixed number of components, which is an array or a slice with dim=n, is read
// from vectors with this number. It is also read from variable vectors, whose lengths are
// checked when a row is read. The error lists all fields without a column, and the existing
// columns.
func (c *Codec[T]) Bind(schema *arrow.Schema) (*Reader[T], error) {
	c = c.For(schema)
	r := &Reader[T]{schema: schema, cols: make([]columnReader, len(c.fields))}
	var problems []string
	for i := range c.fields {
		f := &c.fields[i]
		cr := columnReader{field: f}
		if err := cr.bind(schema); err != nil {
			problems = append(problems, err.Error())
			if c.single && !schema.HasField(f.name) {
				problems = append(problems, fmt.Sprintf("a %v reads the only column there is, or the one named %q; name columns with a struct, or select one first", f.typ, f.name))
			}
		}
		r.cols[i] = cr
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s wants %s; found columns: %s: %s",
			reflect.TypeFor[T](), describe(c.schema), describe(schema), strings.Join(problems, "; "))
	}
	return r, nil
}

func (c *columnReader) bind(schema *arrow.Schema) error {
	name := c.field.name
	switch found := schema.FieldIndices(name); len(found) {
	case 1:
		c.col = found[0]
	case 0:
		if near := spelling.Near(name, fieldNames(schema)); len(near) > 0 {
			return fmt.Errorf("no column %q for %s, did you mean %s?", name, c.field.goName, quoteAll(near, " or "))
		}
		return fmt.Errorf("no column %q for %s", name, c.field.goName)
	default:
		return fmt.Errorf("%d columns are named %q", len(found), name)
	}
	dt := schema.Field(c.col).Type
	base := c.field.typ
	if c.field.pointer {
		base = base.Elem()
		c.fresh = func() unsafe.Pointer { return reflect.New(base).UnsafePointer() }
	}
	from := kindOf(dt)
	if c.load = loadFor(c.field.kind, from); c.field.array && c.load != nil {
		c.load = loadArrayFor(c.field.kind)
	}
	if (c.field.kind == kindList || c.field.kind == kindVector) && from == kindSparse {
		if c.dense = sparseSize(dt); c.dense == 0 {
			return fmt.Errorf("column %q is sparse without a size and cannot fill %s of type %s; declare it sparse[size]", name, c.field.goName, c.field.typ)
		}
	}
	if c.load == nil || !c.dimFits(dt, from) {
		hint := ""
		if from == kindInt64 && (c.field.kind == kindFloat64 || c.field.kind == kindFloat32) {
			hint = "; where the type was inferred from text, name it: CSVOptions.Types, or ReadCSVAs for the fields of a struct"
		}
		return fmt.Errorf("column %q is %s, which does not fit %s of type %s (column type %s)%s",
			name, TypeName(dt), c.field.goName, c.field.typ, TypeName(c.field.dt), hint)
	}
	return nil
}

// dimFits reports whether a column has the dimension or size that its field declares.
func (c *columnReader) dimFits(dt arrow.DataType, from kind) bool {
	want := dimOf(c.field.dt)
	if want > 0 && (from == kindList || from == kindList32) {
		c.exact = want
		return true
	}
	return want == 0 || !from.isVector() || dimOf(dt) == want
}

// LengthError is the error of a row whose variable vector does not have as many components as
// the field into which it is read.
type LengthError struct {
	Column, Field string
	Row           int // row number in the batch
	Want, Got     int
}

// Error describes the error, with its column and row.
func (e *LengthError) Error() string {
	return fmt.Sprintf("column %q in row %d: %v", e.Column, e.Row, e.Why())
}

// Why returns the description of the error without column and row.
func (e *LengthError) Why() error {
	return fmt.Errorf("want %d components for %s, got %d", e.Want, e.Field, e.Got)
}

// checkLength returns an error if the vector in row i does not have the length of its field.
func (c *columnReader) checkLength(i int) error {
	if got := int(c.view.offs[i+1] - c.view.offs[i]); got != c.exact {
		return &LengthError{Column: c.field.name, Field: c.field.goName, Row: i, Want: c.exact, Got: got}
	}
	return nil
}

// SetCopy makes Read copy strings, byte slices and vectors, so that the values may be modified,
// and remain valid after the batch is released. Read then allocates memory for each such field
// of a row.
func (r *Reader[T]) SetCopy(on bool) {
	for i := range r.cols {
		r.cols[i].copies = on
	}
}

// Reset makes rec the current batch, which is borrowed until the next Reset. Its schema must be
// equal to the schema given to Bind.
func (r *Reader[T]) Reset(rec arrow.Record) error {
	if rec.Schema() != r.schema && !rec.Schema().Equal(r.schema) {
		return fmt.Errorf("batch has columns (%s), the reader was bound to (%s)", describe(rec.Schema()), describe(r.schema))
	}
	r.n = int(rec.NumRows())
	for i := range r.cols {
		r.cols[i].reset(rec.Column(r.cols[i].col))
	}
	return nil
}

func (c *columnReader) reset(arr arrow.Array) {
	c.view = viewOf(arr)
	c.wide, c.wideLo, c.wideHi = nil, 0, 0
}

// widenedValues bounds how many values are converted to float64 together if rows are read in
// order. A single row may have more values. The number is bounded because the converted values
// of a whole batch might not fit in memory.
const widenedValues = 1 << 12

// widen sets c.wide to a new slice that begins with row i. The old slice cannot be reused,
// because rows that were returned refer to it. If row i follows the last row of the old slice,
// the new slice includes rows after row i.
func (c *columnReader) widen(i int) {
	first := c.wideStart(i)
	last := i + 1
	for i == c.wideHi && last < c.view.n && c.wideStart(last+1)-first <= widenedValues {
		last++
	}
	from := c.view.f32[first:c.wideStart(last)]
	c.wide, c.wideLo, c.wideHi = make([]float64, len(from)), i, last
	for k, x := range from {
		c.wide[k] = float64(x)
	}
}

// wideStart returns the index of the first value of row i.
func (c *columnReader) wideStart(i int) int {
	if c.view.kind == kindList32 {
		return int(c.view.offs[i])
	}
	return i * c.view.dim
}

// Len returns the number of rows of the current batch.
func (r *Reader[T]) Len() int { return r.n }

// Read fills dst with row i of the batch. Fields of T that are not columns keep their values.
// Strings and slices in dst alias the batch (see SetCopy): they must not be modified, and are
// valid as long as the batch is retained. Read allocates nothing for scalar fields. It
// allocates once for each non-null pointer field, and for each sparse column that is read into
// a []float64. A null for a field that is not a pointer is an error that names column and row.
// If a vector does not have the length of its field, the error is a *LengthError. After an
// error, dst is partly filled.
func (r *Reader[T]) Read(i int, dst *T) error {
	if uint(i) >= uint(r.n) {
		return fmt.Errorf("row %d is outside a batch of %d rows", i, r.n)
	}
	base := unsafe.Pointer(dst)
	for k := range r.cols {
		c := &r.cols[k]
		p := unsafe.Add(base, c.field.offset)
		null := c.view.valid != nil && c.view.null(i)
		if null && !c.field.pointer {
			return fmt.Errorf("column %q is null in row %d, but %s is not a pointer", c.field.name, i, c.field.goName)
		}
		if c.exact > 0 && !null {
			if err := c.checkLength(i); err != nil {
				return err
			}
		}
		if c.field.pointer {
			c.readPointer(i, (*unsafe.Pointer)(p))
			continue
		}
		c.load(c, i, p)
	}
	return nil
}

func (c *columnReader) readPointer(i int, p *unsafe.Pointer) {
	if c.view.null(i) {
		*p = nil
		return
	}
	v := c.fresh()
	c.load(c, i, v)
	*p = v
}

// Record returns a batch of the given rows, owned by the caller.
func (c *Codec[T]) Record(mem memory.Allocator, rows []T) (arrow.Record, error) {
	app := c.Appender(mem)
	defer app.Release()
	for i := range rows {
		if err := app.AppendFrom(&rows[i]); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return app.NewRecord(), nil
}

// Rows returns all rows of a batch as values that share no memory with it.
func (c *Codec[T]) Rows(rec arrow.Record) ([]T, error) {
	r, err := c.Bind(rec.Schema())
	if err != nil {
		return nil, err
	}
	r.SetCopy(true)
	if err := r.Reset(rec); err != nil {
		return nil, err
	}
	rows := make([]T, r.Len())
	for i := range rows {
		if err := r.Read(i, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

type loader = func(c *columnReader, row int, p unsafe.Pointer)

// number has the types of values in fixed-width columns, which are also the types of the fields
// that such columns are read into.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// loadFor returns the function that reads a column of kind from into a field of column kind to,
// or nil if that could lose information.
func loadFor(to, from kind) loader {
	switch to {
	case kindBool:
		if from == kindBool {
			return func(c *columnReader, i int, p unsafe.Pointer) { *(*bool)(p) = c.view.bool(i) }
		}
	case kindInt8:
		return pick(from, loaders{kindInt8: load[int8, int8]})
	case kindInt16:
		return pick(from, loaders{kindInt8: load[int8, int16], kindInt16: load[int16, int16], kindUint8: load[uint8, int16]})
	case kindInt32:
		return pick(from, loaders{kindInt8: load[int8, int32], kindInt16: load[int16, int32], kindInt32: load[int32, int32],
			kindUint8: load[uint8, int32], kindUint16: load[uint16, int32]})
	case kindInt64:
		return pick(from, integersInto[int64](loaders{kindInt64: load[int64, int64]}))
	case kindUint8:
		return pick(from, loaders{kindUint8: load[uint8, uint8]})
	case kindUint16:
		return pick(from, loaders{kindUint8: load[uint8, uint16], kindUint16: load[uint16, uint16]})
	case kindUint32:
		return pick(from, loaders{kindUint8: load[uint8, uint32], kindUint16: load[uint16, uint32], kindUint32: load[uint32, uint32]})
	case kindUint64:
		return pick(from, loaders{kindUint8: load[uint8, uint64], kindUint16: load[uint16, uint64],
			kindUint32: load[uint32, uint64], kindUint64: load[uint64, uint64]})
	case kindFloat32:
		return pick(from, loaders{kindFloat32: load[float32, float32], kindInt8: load[int8, float32], kindInt16: load[int16, float32],
			kindUint8: load[uint8, float32], kindUint16: load[uint16, float32]})
	case kindFloat64:
		return pick(from, integersInto[float64](loaders{kindFloat32: load[float32, float64], kindFloat64: load[float64, float64]}))
	case kindString:
		return pick(from, loaders{kindString: loadString})
	case kindBinary:
		return pick(from, loaders{kindString: loadBytes, kindBinary: loadBytes})
	case kindTimestamp:
		return pick(from, loaders{kindTimestamp: loadTime, kindDate32: loadDate})
	case kindVector, kindList:
		return pick(from, loaders{kindVector: loadDense, kindList: loadDense, kindVector32: loadWidened, kindList32: loadWidened, kindSparse: loadDensified})
	case kindVector32, kindList32:
		return pick(from, loaders{kindVector32: loadDense32, kindList32: loadDense32})
	case kindSparse:
		return pick(from, loaders{kindSparse: loadSparse})
	}
	return nil
}

type loaders map[kind]loader

func pick(from kind, of loaders) loader { return of[from] }

// integersInto adds to l the loaders from integers of at most 32 bits to D, a 64-bit integer or
// float64, which holds them exactly.
func integersInto[D number](l loaders) loaders {
	l[kindInt8], l[kindInt16], l[kindInt32] = load[int8, D], load[int16, D], load[int32, D]
	l[kindUint8], l[kindUint16], l[kindUint32] = load[uint8, D], load[uint16, D], load[uint32, D]
	return l
}

func load[S, D number](c *columnReader, i int, p unsafe.Pointer) { *(*D)(p) = D(at[S](&c.view, i)) }

func loadString(c *columnReader, i int, p unsafe.Pointer) {
	text := c.view.text(i)
	if c.copies {
		*(*string)(p) = string(text)
		return
	}
	*(*string)(p) = unsafe.String(unsafe.SliceData(text), len(text))
}

func loadBytes(c *columnReader, i int, p unsafe.Pointer) {
	*(*[]byte)(p) = lend(c, c.view.text(i))
}

// lend returns s, or a copy if c.copies is set. The result is never nil, because nil means
// null.
func lend[T any](c *columnReader, s []T) []T {
	if c.copies || s == nil {
		return append(make([]T, 0, len(s)), s...)
	}
	return s
}

func loadDense(c *columnReader, i int, p unsafe.Pointer) {
	*(*[]float64)(p) = lend(c, c.view.dense64(i))
}

func loadDense32(c *columnReader, i int, p unsafe.Pointer) {
	*(*[]float32)(p) = lend(c, c.view.dense32(i))
}

func loadWidened(c *columnReader, i int, p unsafe.Pointer) {
	if i < c.wideLo || i >= c.wideHi {
		c.widen(i)
	}
	first := c.wideStart(c.wideLo)
	lo, hi := c.wideStart(i)-first, c.wideStart(i+1)-first
	*(*[]float64)(p) = lend(c, c.wide[lo:hi:hi])
}

func loadDensified(c *columnReader, i int, p unsafe.Pointer) {
	dense := make([]float64, c.dense)
	indices, values := c.view.sparse(i)
	for k, at := range indices {
		dense[at] = values[k]
	}
	*(*[]float64)(p) = dense
}

// loadArrayFor returns the function that reads into a field that is an array, where to is the
// column kind of the field. It reads from every kind of column for which loadFor has a
// function. The number of components was checked by bind, or is checked by Read.
func loadArrayFor(to kind) loader {
	if to == kindVector32 {
		return func(c *columnReader, i int, p unsafe.Pointer) {
			row := c.view.dense32(i)
			copy(unsafe.Slice((*float32)(p), len(row)), row)
		}
	}
	return func(c *columnReader, i int, p unsafe.Pointer) {
		switch c.view.kind {
		case kindVector32, kindList32:
			row := c.view.dense32(i)
			to := unsafe.Slice((*float64)(p), len(row))
			for k, x := range row {
				to[k] = float64(x)
			}
		case kindSparse:
			to := unsafe.Slice((*float64)(p), c.dense)
			clear(to)
			indices, values := c.view.sparse(i)
			for k, at := range indices {
				to[at] = values[k]
			}
		default:
			row := c.view.dense64(i)
			copy(unsafe.Slice((*float64)(p), len(row)), row)
		}
	}
}

func loadSparse(c *columnReader, i int, p unsafe.Pointer) {
	indices, values := c.view.sparse(i)
	*(*SparseVector)(p) = SparseVector{Size: c.view.dim, Indices: lend(c, indices), Values: lend(c, values)}
}

// loadTime reads a timestamp of any unit as a time.Time in UTC. The zone of the column is
// ignored: it matters only for display, and zone tables differ between machines.
func loadTime(c *columnReader, i int, p unsafe.Pointer) {
	t := at[int64](&c.view, i)
	*(*time.Time)(p) = timeOf(t, c.view.dt.(*arrow.TimestampType).Unit)
}

func timeOf(t int64, unit arrow.TimeUnit) time.Time {
	perSecond := unitsPerSecond(unit)
	s, frac := floorDiv(t, perSecond)
	return time.Unix(s, frac*(1_000_000_000/perSecond)).UTC()
}

func loadDate(c *columnReader, i int, p unsafe.Pointer) {
	*(*time.Time)(p) = time.Unix(int64(at[int32](&c.view, i))*86400, 0).UTC()
}

func unitsPerSecond(unit arrow.TimeUnit) int64 {
	switch unit {
	case arrow.Second:
		return 1
	case arrow.Millisecond:
		return 1_000
	case arrow.Microsecond:
		return 1_000_000
	}
	return 1_000_000_000
}

// floorDiv returns quotient and remainder with 0 <= remainder < b.
func floorDiv(a, b int64) (q, r int64) {
	q, r = a/b, a%b
	if r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}
