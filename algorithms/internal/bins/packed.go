package bins

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// packed has the checked rows of a shard. In the dataset it is one row, whose cells are whole
// columns. So values can be stored by feature, which is the order in which the search for cuts
// and the binning read them. The number of features need not be known when the job is built.
//
// Features are stored in one of three ways. If the dataset has a shard's dense rows contiguous
// in memory, raw is a view of that memory, row-major. Other dense rows are stored in values, by
// feature. For sparse rows, values has the values of the entries by feature, and row has the
// row of each entry.
type packed struct {
	n, d   int
	raw    []float64 // n×d
	values []float32 // d×n by feature, or the values of the entries

	ofValues, ofRow *memory.Buffer // the buffers of values and row; set only by the packer

	feature []int32 // sparse rows: the features that occur, ascending
	start   []int32 // first entry of each feature, then the number of entries
	row     []int32 // row of each entry, ascending within a feature

	label, upper, weight []float64 // each is nil if there is no such column
	margins              []float64 // n×outputs
	groups               []int32   // first row of each group, then n; nil if there are no groups
	dictionaries         []dictionary
}

// The columns of the dataset.
const (
	sizesCell = iota
	rawCell
	valuesCell
	featureCell
	startCell
	rowCell
	labelCell
	upperCell
	weightCell
	marginsCell
	groupsCell
	dictionariesCell
)

var packedSchema = arrow.NewSchema([]arrow.Field{
	{Name: "sizes", Type: batch.VariableVectorType()},
	{Name: "raw", Type: batch.VariableVectorType()},
	{Name: "values", Type: batch.VariableVector32Type()},
	{Name: "feature", Type: arrow.BinaryTypes.Binary},
	{Name: "start", Type: arrow.BinaryTypes.Binary},
	{Name: "row", Type: arrow.BinaryTypes.Binary},
	{Name: "label", Type: batch.VariableVectorType()},
	{Name: "upper", Type: batch.VariableVectorType()},
	{Name: "weight", Type: batch.VariableVectorType()},
	{Name: "margins", Type: batch.VariableVectorType()},
	{Name: "groups", Type: arrow.BinaryTypes.Binary},
	{Name: "dictionaries", Type: arrow.BinaryTypes.Binary},
}, nil)

// dictionariesCodec encodes the dictionaries of a shard.
var dictionariesCodec = shared.Msgpack[[]dictionary]()

// record returns the packed rows as a batch, which the caller owns. The batch refers to the
// memory of p. raw is the array of which p.raw is a view, or nil. The packer has checked that
// no cell has more than 2^31 bytes or values.
func (p *packed) record(raw arrow.Array) (arrow.Record, error) {
	var texts []byte
	if p.dictionaries != nil {
		var err error
		if texts, err = dictionariesCodec.Append(nil, p.dictionaries); err != nil {
			return nil, err
		}
	}
	var cells [dictionariesCell + 1]arrow.Array
	cells[sizesCell] = doublesCell([]float64{float64(p.n), float64(p.d)})
	if raw != nil {
		cells[rawCell] = listCell(raw)
	} else {
		cells[rawCell] = doublesCell(nil)
	}
	cells[valuesCell] = singlesCell(p.values, p.ofValues)
	cells[featureCell] = bytesCell(arrow.Int32Traits.CastToBytes(p.feature))
	cells[startCell] = bytesCell(arrow.Int32Traits.CastToBytes(p.start))
	cells[rowCell] = bytesCell(arrow.Int32Traits.CastToBytes(p.row), p.ofRow)
	cells[labelCell] = doublesCell(p.label)
	cells[upperCell] = doublesCell(p.upper)
	cells[weightCell] = doublesCell(p.weight)
	cells[marginsCell] = doublesCell(p.margins)
	cells[groupsCell] = bytesCell(arrow.Int32Traits.CastToBytes(p.groups))
	cells[dictionariesCell] = bytesCell(texts)
	rec := array.NewRecord(packedSchema, cells[:], 1)
	for _, c := range cells {
		c.Release()
	}
	return rec, nil
}

// sizesOf returns the number of rows in a frame and the length of packed.values.
func sizesOf(f *comqueue.Frame) (rows, values int, err error) {
	if f.Rows() == 0 {
		return 0, 0, nil
	}
	p, err := unpack(f)
	return p.n, len(p.values), err
}

// unpack returns the packed rows in a frame, as views of its memory. For a shard without rows,
// it returns the zero value.
func unpack(f *comqueue.Frame) (packed, error) {
	if f.Rows() == 0 {
		return packed{}, nil
	}
	if f.Rows() != 1 {
		return packed{}, fmt.Errorf("a shard has %d rows of packed columns, want one", f.Rows())
	}
	rec := arrowrows.Record(f.Batch())
	doubles := func(cell int) []float64 {
		l := rec.Column(cell).(*array.List)
		lo, hi := l.ValueOffsets(0)
		if lo == hi {
			return nil
		}
		return l.ListValues().(*array.Float64).Float64Values()[lo:hi:hi]
	}
	ints := func(cell int) []int32 {
		if b := rec.Column(cell).(*array.Binary).Value(0); len(b) > 0 {
			return arrow.Int32Traits.CastFromBytes(b)
		}
		return nil
	}
	sizes := doubles(sizesCell)
	p := packed{
		n: int(sizes[0]), d: int(sizes[1]), raw: doubles(rawCell),
		feature: ints(featureCell), start: ints(startCell), row: ints(rowCell),
		label: doubles(labelCell), upper: doubles(upperCell), weight: doubles(weightCell), margins: doubles(marginsCell),
		groups: ints(groupsCell),
	}
	l := rec.Column(valuesCell).(*array.List)
	lo, hi := l.ValueOffsets(0)
	p.values = l.ListValues().(*array.Float32).Float32Values()[lo:hi:hi]
	if texts := rec.Column(dictionariesCell).(*array.Binary).Value(0); len(texts) > 0 {
		var err error
		if p.dictionaries, err = dictionariesCodec.Decode(texts); err != nil {
			return packed{}, err
		}
	}
	return p, nil
}

// listCell returns an array with one list, which has all elements of values. It retains values.
func listCell(values arrow.Array) arrow.Array {
	dt := arrow.DataType(batch.VariableVectorType())
	if values.DataType().ID() == arrow.FLOAT32 {
		dt = batch.VariableVector32Type()
	}
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, int32(values.Len())}))
	data := array.NewData(dt, 1, []*memory.Buffer{nil, offsets}, []arrow.ArrayData{values.Data()}, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// doublesCell returns an array with one list, which refers to the memory of values.
func doublesCell(values []float64) arrow.Array {
	child := plain(arrow.PrimitiveTypes.Float64, len(values), memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(values)))
	defer child.Release()
	return listCell(child)
}

// singlesCell does what doublesCell does, for float32. of is the buffer that holds values, or
// nil.
func singlesCell(values []float32, of *memory.Buffer) arrow.Array {
	if of == nil {
		of = memory.NewBufferBytes(arrow.Float32Traits.CastToBytes(values))
	}
	child := plain(arrow.PrimitiveTypes.Float32, len(values), of)
	defer child.Release()
	return listCell(child)
}

// bytesCell returns an array with one binary value, which refers to the memory of b. of[0], if
// given and not nil, is the buffer that holds b.
func bytesCell(b []byte, of ...*memory.Buffer) arrow.Array {
	data := memory.NewBufferBytes(b)
	if len(of) > 0 && of[0] != nil {
		data = of[0]
	}
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, int32(len(b))}))
	cell := array.NewData(arrow.BinaryTypes.Binary, 1, []*memory.Buffer{nil, offsets, data}, nil, 0, 0)
	defer cell.Release()
	return array.MakeFromData(cell)
}

// plain returns an array of n numbers of the type dt, without nulls.
func plain(dt arrow.DataType, n int, values *memory.Buffer) arrow.Array {
	data := array.NewData(dt, n, []*memory.Buffer{nil, values}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}
