package batch

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// layout is the memory layout of a type. Copying depends on nothing else.
type layout uint8

const (
	layoutFixed  layout = iota // width bytes per value
	layoutBits                 // one bit per value
	layoutText                 // int32 offsets and bytes
	layoutList                 // int32 offsets and one child
	layoutBlock                // fixed-size list: dim child values per value
	layoutStruct               // children with one value per row each
)

// source is one input array in raw form, with its children. The offset of the array is applied
// to its buffers, so that row 0 is the first row of the array. Bitmaps are the exception: row 0
// is bit bitOff.
type source struct {
	layout   layout
	width    int // layoutFixed: bytes per value; layoutBlock: child values per value
	n        int
	bitOff   int
	valid    []byte // nil if no row is null
	data     []byte // layoutFixed: values from row 0 on; layoutBits and layoutText: the whole buffer
	offs     []int32
	children []source
}

// newSource returns the source for an array. Its type may be any nesting of fixed-width types,
// bool, utf8, binary, lists and structs.
func newSource(d arrow.ArrayData) (source, error) {
	s := source{n: d.Len(), bitOff: d.Offset(), valid: validBits(d)}
	switch dt := d.DataType().(type) {
	case *arrow.BooleanType:
		s.layout, s.data = layoutBits, bufferBytes(d, 1)
	case *arrow.StringType, *arrow.BinaryType:
		s.layout, s.offs, s.data = layoutText, offsetsOf(d), bufferBytes(d, 2)
	case *arrow.ListType:
		s.layout, s.offs = layoutList, offsetsOf(d)
		return s, s.open(d.Children(), 0, -1)
	case *arrow.FixedSizeListType:
		s.layout, s.width = layoutBlock, int(dt.Len())
		return s, s.open(d.Children(), d.Offset()*s.width, d.Len()*s.width)
	case *arrow.StructType:
		s.layout = layoutStruct
		return s, s.open(d.Children(), d.Offset(), d.Len())
	default:
		if s.width = fixedWidth(dt); s.width == 0 {
			return s, fmt.Errorf("type %s is not supported", TypeName(dt))
		}
		s.data = window(bufferBytes(d, 1), d.Offset()*s.width, d.Len()*s.width)
	}
	return s, nil
}

// open sets the children of s. The array uses rows start to start+n-1 of the children, or all
// their rows if n is negative.
func (s *source) open(children []arrow.ArrayData, start, n int) error {
	s.children = make([]source, len(children))
	for i, child := range children {
		if n >= 0 {
			part := array.NewSliceData(child, int64(start), int64(start+n))
			defer part.Release()
			child = part
		}
		var err error
		if s.children[i], err = newSource(child); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) isValid(i int) bool {
	return s.valid == nil || bitutil.BitIsSet(s.valid, s.bitOff+i)
}

// sink is one output array. Copying reads the sources twice: measure adds up the sizes, alloc
// allocates buffers of exactly these sizes, and put copies. So no buffer is ever grown, and the
// peak memory is the size of the result.
type sink struct {
	dt      arrow.DataType
	layout  layout
	width   int
	rows    int  // measured number of rows
	text    int  // measured number of bytes of layoutText
	hasNull bool // measured: whether some source may have nulls

	at       int // number of rows copied so far
	atEnd    int // number of bytes of text, or of rows of the child, copied so far
	valid    *memory.Buffer
	data     *memory.Buffer
	offs     *memory.Buffer
	children []sink
}

func newSink(dt arrow.DataType, like *source) sink {
	s := sink{dt: dt, layout: like.layout, width: like.width}
	if nested, ok := dt.(arrow.NestedType); ok {
		for i, f := range nested.Fields() {
			s.children = append(s.children, newSink(f.Type, &like.children[i]))
		}
	}
	return s
}

// measure adds rows start to start+n-1 of a source to the measured sizes.
func (s *sink) measure(from *source, start, n int) {
	s.rows += n
	s.hasNull = s.hasNull || from.valid != nil
	switch s.layout {
	case layoutText:
		s.text += int(from.offs[start+n] - from.offs[start])
	case layoutList:
		lo, hi := int(from.offs[start]), int(from.offs[start+n])
		s.children[0].measure(&from.children[0], lo, hi-lo)
	case layoutBlock:
		s.children[0].measure(&from.children[0], start*s.width, n*s.width)
	case layoutStruct:
		for i := range s.children {
			s.children[i].measure(&from.children[i], start, n)
		}
	}
}

// measureTake adds the given rows of a source to the measured sizes.
func (s *sink) measureTake(from *source, rows []int32) {
	switch s.layout {
	case layoutText:
		for _, i := range rows {
			s.text += int(from.offs[i+1] - from.offs[i])
		}
	case layoutList:
		for _, i := range rows {
			lo, hi := int(from.offs[i]), int(from.offs[i+1])
			s.children[0].measure(&from.children[0], lo, hi-lo)
		}
	case layoutBlock:
		for _, i := range rows {
			s.children[0].measure(&from.children[0], int(i)*s.width, s.width)
		}
	case layoutStruct:
		for i := range s.children {
			s.children[i].measureTake(&from.children[i], rows)
		}
	}
	s.rows += len(rows)
	s.hasNull = s.hasNull || from.valid != nil
}

// check returns an error if 32-bit offsets cannot address the measured sizes.
func (s *sink) check() error {
	if s.text > math.MaxInt32 {
		return fmt.Errorf("%d bytes of text exceed the 2 GiB that one batch can hold; use smaller batches", s.text)
	}
	if s.layout == layoutList && s.children[0].rows > math.MaxInt32 {
		return fmt.Errorf("%d list items exceed the 2^31 that one batch can hold; use smaller batches", s.children[0].rows)
	}
	for i := range s.children {
		if err := s.children[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// alloc allocates buffers of offsets from the allocator offsets, and all other buffers from
// mem.
func (s *sink) alloc(mem, offsets memory.Allocator) {
	if s.hasNull {
		s.valid = newBuffer(mem, int(bitutil.BytesForBits(int64(s.rows))))
		clear(s.valid.Bytes())
	}
	switch s.layout {
	case layoutFixed:
		s.data = newBuffer(mem, s.rows*s.width)
	case layoutBits:
		s.data = newBuffer(mem, int(bitutil.BytesForBits(int64(s.rows))))
		clear(s.data.Bytes())
	case layoutText:
		s.data = newBuffer(mem, s.text)
	}
	if s.layout == layoutText || s.layout == layoutList {
		s.offs = newBuffer(offsets, (s.rows+1)*arrow.Int32SizeBytes)
		castBytes[int32](s.offs.Bytes())[0] = 0
	}
	for i := range s.children {
		s.children[i].alloc(mem, offsets)
	}
}

// release releases the buffers that alloc allocated.
func (s *sink) release() {
	for _, b := range []*memory.Buffer{s.valid, s.data, s.offs} {
		if b != nil {
			b.Release()
		}
	}
	for i := range s.children {
		s.children[i].release()
	}
}

func newBuffer(mem memory.Allocator, size int) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(size)
	return buf
}

// put appends rows start to start+n-1 of a source.
func (s *sink) put(from *source, start, n int) {
	if n == 0 {
		return
	}
	s.putValid(from, start, n)
	switch s.layout {
	case layoutFixed:
		copy(s.data.Bytes()[s.at*s.width:], from.data[start*s.width:(start+n)*s.width])
	case layoutBits:
		bitutil.CopyBitmap(from.data, from.bitOff+start, n, s.data.Bytes(), s.at)
	case layoutText:
		lo, hi := int(from.offs[start]), int(from.offs[start+n])
		s.putOffsets(from, start, n)
		copy(s.data.Bytes()[s.atEnd:], from.data[lo:hi])
		s.atEnd += hi - lo
	case layoutList:
		lo, hi := int(from.offs[start]), int(from.offs[start+n])
		s.putOffsets(from, start, n)
		s.children[0].put(&from.children[0], lo, hi-lo)
		s.atEnd += hi - lo
	case layoutBlock:
		s.children[0].put(&from.children[0], start*s.width, n*s.width)
	case layoutStruct:
		for i := range s.children {
			s.children[i].put(&from.children[i], start, n)
		}
	}
	s.at += n
}

func (s *sink) putOffsets(from *source, start, n int) {
	dst := castBytes[int32](s.offs.Bytes())[s.at+1 : s.at+1+n]
	shift := int32(s.atEnd) - from.offs[start]
	for i, end := range from.offs[start+1 : start+1+n] {
		dst[i] = end + shift
	}
}

func (s *sink) putValid(from *source, start, n int) {
	switch {
	case s.valid == nil:
	case from.valid == nil:
		bitutil.SetBitsTo(s.valid.Bytes(), int64(s.at), int64(n), true)
	case n == 1:
		bitutil.SetBitTo(s.valid.Bytes(), s.at, from.isValid(start))
	default:
		bitutil.CopyBitmap(from.valid, from.bitOff+start, n, s.valid.Bytes(), s.at)
	}
}

// putTake appends the given rows of a source.
func (s *sink) putTake(from *source, rows []int32) {
	if s.valid != nil {
		bits := s.valid.Bytes()
		for k, i := range rows {
			if from.isValid(int(i)) {
				bitutil.SetBit(bits, s.at+k)
			}
		}
	}
	switch s.layout {
	case layoutFixed:
		gather(s.data.Bytes()[s.at*s.width:], from.data, s.width, rows)
	case layoutBits:
		bits := s.data.Bytes()
		for k, i := range rows {
			if bitutil.BitIsSet(from.data, from.bitOff+int(i)) {
				bitutil.SetBit(bits, s.at+k)
			}
		}
	case layoutText:
		s.takeText(from, rows)
	case layoutList:
		offs := castBytes[int32](s.offs.Bytes())[s.at+1:]
		for k, i := range rows {
			lo, hi := int(from.offs[i]), int(from.offs[i+1])
			s.children[0].put(&from.children[0], lo, hi-lo)
			s.atEnd += hi - lo
			offs[k] = int32(s.atEnd)
		}
	case layoutBlock:
		s.takeBlocks(from, rows)
	case layoutStruct:
		for i := range s.children {
			s.children[i].putTake(&from.children[i], rows)
		}
	}
	s.at += len(rows)
}

func (s *sink) takeText(from *source, rows []int32) {
	offs, text, end := castBytes[int32](s.offs.Bytes())[s.at+1:], s.data.Bytes(), s.atEnd
	for k, i := range rows {
		end += copy(text[end:], from.data[from.offs[i]:from.offs[i+1]])
		offs[k] = int32(end)
	}
	s.atEnd = end
}

func (s *sink) takeBlocks(from *source, rows []int32) {
	kid, in := &s.children[0], &from.children[0]
	if kid.layout == layoutFixed && kid.valid == nil {
		w := s.width * kid.width
		gather(kid.data.Bytes()[kid.at*kid.width:], in.data, w, rows)
		kid.at += len(rows) * s.width
		return
	}
	for _, i := range rows {
		kid.put(in, int(i)*s.width, s.width)
	}
}

// gather sets dst[k] = src[rows[k]] for values of w bytes.
func gather(dst, src []byte, w int, rows []int32) {
	switch w {
	case 1:
		gatherOf[uint8](dst, src, rows)
	case 2:
		gatherOf[uint16](dst, src, rows)
	case 4:
		gatherOf[uint32](dst, src, rows)
	case 8:
		gatherOf[uint64](dst, src, rows)
	default:
		for k, i := range rows {
			copy(dst[k*w:(k+1)*w], src[int(i)*w:(int(i)+1)*w])
		}
	}
}

func gatherOf[T any](dst, src []byte, rows []int32) {
	out, in := castBytes[T](dst), castBytes[T](src)
	out = out[:len(rows)]
	for k, i := range rows {
		out[k] = in[i]
	}
}

// finish returns the buffers as array data, owned by the caller. A validity bitmap without a
// null is dropped, so that equal rows have equal buffers, whatever sources they were copied
// from.
func (s *sink) finish() arrow.ArrayData {
	nulls := 0
	if s.valid != nil {
		nulls = s.rows - bitutil.CountSetBits(s.valid.Bytes(), 0, s.rows)
		if nulls == 0 {
			s.valid.Release()
			s.valid = nil
		}
	}
	var buffers []*memory.Buffer
	switch s.layout {
	case layoutFixed, layoutBits:
		buffers = []*memory.Buffer{s.valid, s.data}
	case layoutText:
		buffers = []*memory.Buffer{s.valid, s.offs, s.data}
	case layoutList:
		buffers = []*memory.Buffer{s.valid, s.offs}
	default:
		buffers = []*memory.Buffer{s.valid}
	}
	children := make([]arrow.ArrayData, len(s.children))
	for i := range s.children {
		children[i] = s.children[i].finish()
	}
	return ownedData(s.dt, s.rows, buffers, children, nulls)
}

// ownedData returns array data that takes over the caller's references to buffers and children.
func ownedData(dt arrow.DataType, n int, buffers []*memory.Buffer, children []arrow.ArrayData, nulls int) arrow.ArrayData {
	d := array.NewData(dt, n, buffers, children, nulls, 0)
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return d
}

// ownedArray returns an array that takes over the caller's reference to d.
func ownedArray(d arrow.ArrayData) arrow.Array {
	defer d.Release()
	return array.MakeFromData(d)
}

// ownedRecord returns a record that takes over the caller's references to cols. The columns
// must fit the schema and all have the given number of rows.
func ownedRecord(schema *arrow.Schema, cols []arrow.Array, rows int) arrow.Record {
	defer releaseAll(cols)
	return array.NewRecord(schema, cols, int64(rows))
}

func releaseAll(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}
