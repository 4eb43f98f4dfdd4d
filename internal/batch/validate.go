package batch

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
)

// ErrReleased is the error for a batch for which Released is true.
var ErrReleased = errors.New("it was released already: whoever keeps a batch calls Retain on it")

// Released reports whether the last reference to a batch was released, which also releases its
// columns. Only a caller that held the only reference can rely on the result. It is always
// false for a batch without columns.
func Released(rec arrow.Record) bool { return rec.NumCols() < int64(rec.Schema().NumFields()) }

// maxRows is the largest number of rows of a batch, with or without columns. Its reason is that
// row numbers in Concat, and offsets of text, have 32 bits.
const maxRows = math.MaxInt32

// Validate checks a batch that comes from outside. It must have at most maxRows rows. Every
// column must be of a supported type and as long as the batch, and every buffer as large as the
// rows need. Offsets must ascend within their data, and sparse indices within their size.
// Vectors must have no null components. Columns that are not nullable must have no nulls. A
// batch that passes cannot make the functions of this package panic.
func Validate(rec arrow.Record) error {
	if Released(rec) {
		return ErrReleased
	}
	if n := rec.NumRows(); n < 0 || n > maxRows {
		return fmt.Errorf("%d rows, where a batch holds at most %d", n, maxRows)
	}
	for i := range int(rec.NumCols()) {
		f := rec.Schema().Field(i)
		d := rec.Column(i).Data()
		if int64(d.Len()) != rec.NumRows() {
			return fmt.Errorf("column %s has %d values in a batch of %d rows", quote(f.Name), d.Len(), rec.NumRows())
		}
		if err := validateColumn(f, d); err != nil {
			return fmt.Errorf("column %s: %w", quote(f.Name), err)
		}
	}
	return nil
}

func validateColumn(f arrow.Field, d arrow.ArrayData) error {
	if kindOf(f.Type) == kindInvalid {
		return fmt.Errorf("type %s is not supported", cutText(TypeName(f.Type)))
	}
	if !arrow.TypeEqual(f.Type, d.DataType()) {
		return fmt.Errorf("declared %s, but the values are %s", TypeName(f.Type), TypeName(d.DataType()))
	}
	if err := validateData(d); err != nil {
		return err
	}
	if !f.Nullable {
		if n := countNulls(d); n > 0 {
			return fmt.Errorf("%d nulls in a column that is not nullable", n)
		}
	}
	switch kindOf(f.Type) {
	case kindVector, kindVector32, kindList, kindList32:
		return validateItems(d)
	case kindSparse:
		return validateSparse(d)
	}
	return nil
}

// validateData checks buffers and offsets, recursively.
func validateData(d arrow.ArrayData) error {
	// With larger numbers, the sizes computed below could overflow.
	const most = 1 << 40
	n, off := d.Len(), d.Offset()
	if n < 0 || off < 0 || n > most || off > most {
		return fmt.Errorf("%d values from offset %d", n, off)
	}
	if d.NullN() != 0 {
		raw := bufferBytes(d, 0)
		if len(raw) == 0 && d.NullN() > 0 {
			return fmt.Errorf("%d nulls without a validity bitmap", d.NullN())
		}
		if err := needBytes("validity bitmap", len(raw), (off+n+7)/8, n > 0 && len(raw) > 0); err != nil {
			return err
		}
	}
	switch dt := d.DataType().(type) {
	case *arrow.BooleanType:
		return needBytes("bits", len(bufferBytes(d, 1)), (off+n+7)/8, n > 0)
	case *arrow.StringType, *arrow.BinaryType:
		return validateOffsets(d, len(bufferBytes(d, 2)), "bytes")
	case *arrow.ListType:
		if err := validateChildren(d, 1, 0); err != nil {
			return err
		}
		return validateOffsets(d, d.Children()[0].Len(), "items")
	case *arrow.FixedSizeListType:
		if dt.Len() < 1 {
			return fmt.Errorf("vector of %d components", dt.Len())
		}
		return validateChildren(d, 1, (off+n)*int(dt.Len()))
	case *arrow.StructType:
		return validateChildren(d, dt.NumFields(), off+n)
	default:
		w := fixedWidth(dt)
		if w == 0 {
			return fmt.Errorf("type %s is not supported", cutText(TypeName(dt)))
		}
		return needBytes("values", len(bufferBytes(d, 1)), (off+n)*w, n > 0)
	}
}

func needBytes(what string, got, want int, matters bool) error {
	if matters && got < want {
		return fmt.Errorf("%s buffer of %d bytes, need %d", what, got, want)
	}
	return nil
}

func validateChildren(d arrow.ArrayData, count, rows int) error {
	if len(d.Children()) != count {
		return fmt.Errorf("%s with %d child arrays, need %d", TypeName(d.DataType()), len(d.Children()), count)
	}
	for _, c := range d.Children() {
		if c.Len() < rows {
			return fmt.Errorf("child array of %d values, need %d", c.Len(), rows)
		}
		if err := validateData(c); err != nil {
			return err
		}
	}
	return nil
}

func validateOffsets(d arrow.ArrayData, limit int, what string) error {
	n, off := d.Len(), d.Offset()
	raw := castBytes[int32](bufferBytes(d, 1))
	if n == 0 && len(raw) <= off {
		return nil
	}
	if len(raw) < off+n+1 {
		return fmt.Errorf("%d offsets, need %d", len(raw), off+n+1)
	}
	last := int32(0)
	for i, o := range raw[off : off+n+1] {
		if o < last || int(o) > limit {
			return fmt.Errorf("offset %d of row %d, after %d, of %d %s", o, i, last, limit, what)
		}
		last = o
	}
	return nil
}

// validateItems returns an error if a row that is not null has a null component.
func validateItems(d arrow.ArrayData) error {
	child := d.Children()[0]
	items := validBits(child)
	if items == nil {
		return nil
	}
	rows, dim, offs := validBits(d), 0, []int32(nil)
	if dt, ok := d.DataType().(*arrow.FixedSizeListType); ok {
		dim = int(dt.Len())
	} else {
		offs = offsetsOf(d)
	}
	for i := range d.Len() {
		lo, hi := (d.Offset()+i)*dim, (d.Offset()+i+1)*dim
		if offs != nil {
			lo, hi = int(offs[i]), int(offs[i+1])
		}
		if rows != nil && bitutil.BitIsNotSet(rows, d.Offset()+i) {
			continue
		}
		if bitutil.CountSetBits(items, child.Offset()+lo, hi-lo) < hi-lo {
			return fmt.Errorf("row %d has a null component; fill it in first", i)
		}
	}
	return nil
}

func validateSparse(d arrow.ArrayData) error {
	for _, list := range d.Children() {
		if err := validateItems(list); err != nil {
			return err
		}
	}
	v := viewData(d)
	for i := range v.n {
		if v.null(i) {
			continue
		}
		for _, list := range d.Children() {
			if bits := validBits(list); bits != nil && bitutil.BitIsNotSet(bits, list.Offset()+d.Offset()+i) {
				return fmt.Errorf("row %d: the indices or values of a sparse vector are null", i)
			}
		}
		indices, values := v.sparse(i)
		row := SparseVector{Size: v.dim, Indices: indices, Values: values}
		if err := row.Validate(); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// Normalize checks a batch by Validate, and returns it with its schema in normal form (see
// NormalizeSchema). The result shares the memory of rec. Batches that come from files are
// passed to Normalize before the engine uses them.
func Normalize(rec arrow.Record) (arrow.Record, error) {
	if err := Validate(rec); err != nil {
		return nil, err
	}
	schema, err := NormalizeSchema(rec.Schema())
	if err != nil {
		return nil, err
	}
	cols := make([]arrow.Array, rec.NumCols())
	for i := range cols {
		d := retype(rec.Column(i).Data(), schema.Field(i).Type)
		d.SetNullN(countNulls(d))
		cols[i] = ownedArray(d)
	}
	return ownedRecord(schema, cols, int(rec.NumRows())), nil
}

// retype returns the values of d with the type dt, which has the same layout. It sets the null
// count of list items to 0, because Validate has checked that rows that are not null have no
// null items.
func retype(d arrow.ArrayData, dt arrow.DataType) *array.Data {
	var children []arrow.ArrayData
	if nested, ok := dt.(arrow.NestedType); ok {
		for i, f := range nested.Fields() {
			child := retype(d.Children()[i], f.Type)
			child.SetNullN(0)
			defer child.Release()
			children = append(children, child)
		}
	}
	return array.NewData(dt, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
}
