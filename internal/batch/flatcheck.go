package batch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// Arrow's decoder trusts the counts in the metadata of a message and allocates memory
// accordingly. With a damaged count the process runs out of memory, which recover cannot catch.
// So metadata is checked here first: every table, string and vector must lie within the
// received bytes, and every buffer within the body. The tables are defined by Message.fbs and
// Schema.fbs of the Arrow format, and encoded in the FlatBuffers binary format.

// Message header types and field types that the check must distinguish.
const (
	headerSchema      = 1
	headerDictionary  = 2
	headerRecordBatch = 3
	typeTimestamp     = 10
	typeUnion         = 14
)

const maxNesting = 32 // limit of the nesting of types; supported types have at most two levels

var (
	errFlat   = errors.New("its metadata is damaged")
	errShared = errors.New("its metadata refer to the same bytes again and again, which would take many times their memory to decode")
)

// flat checks one FlatBuffer. The first violation sets bad; after that, every read returns
// zero.
type flat struct {
	b    []byte
	left int64 // number of bytes that may still be referenced; see reachTimes
	bad  bool
	pack packed // compressed buffers of the record batch

	end     int64 // end of the bytes read so far
	nodes   int64 // position of the field nodes of the record batch
	buffers int64 // end of the last buffer of the record batch in the body
}

// A FlatBuffer may have any number of references to the same table, string or vector, and the
// decoder makes a copy for each reference. So a small message can need much memory: for
// example, a thousand references to one column whose name has a megabyte. Therefore the
// referenced bytes are added up over all references, and the total may be at most a small
// multiple of the size of the message. Writers hardly ever refer to anything more than once.
const (
	reachTimes = 4
	reachLeast = 1 << 20 // always allowed, also for a small message
	tableBytes = 32      // bytes that are added for a reference to a table; the decoded table is larger
)

func newFlat(b []byte) *flat {
	return &flat{b: b, left: reachLeast + reachTimes*int64(len(b))}
}

// reach adds n bytes to the total of referenced bytes.
func (f *flat) reach(n int64) {
	if f.left -= n; f.left < 0 {
		f.bad = true
	}
}

// err returns an error if there was a violation.
func (f *flat) err() error {
	switch {
	case f.left < 0:
		return errShared
	case f.bad:
		return errFlat
	}
	return nil
}

// shape has the numbers of field nodes and of buffers in a record batch, as its schema implies.
// The decoder reads these numbers of entries, whatever the lengths of the vectors are that
// should hold the entries.
type shape struct{ nodes, buffers int64 }

func shapeOf(fields []arrow.Field) (s shape) {
	for _, f := range fields {
		s = s.and(shapeOfType(f.Type))
	}
	return s
}

func (s shape) and(t shape) shape { return shape{s.nodes + t.nodes, s.buffers + t.buffers} }

// shapeOfType returns the shape of a column of any type, supported or not.
func shapeOfType(dt arrow.DataType) shape {
	s := shape{nodes: 1}
	switch t := dt.(type) {
	case arrow.ExtensionType:
		return shapeOfType(t.StorageType())
	case *arrow.StringType, *arrow.BinaryType, *arrow.LargeStringType, *arrow.LargeBinaryType:
		s.buffers = 3
	case *arrow.FixedSizeListType, *arrow.StructType, *arrow.SparseUnionType:
		s.buffers = 1
	case *arrow.NullType, *arrow.RunEndEncodedType:
	default:
		s.buffers = 2
	}
	if nested, ok := dt.(arrow.NestedType); ok {
		s = s.and(shapeOf(nested.Fields()))
	}
	return s
}

// checkMessage checks the metadata of a message; a record batch must have the shape want. It
// returns the length of the body, which is at most MaxMessage, and the compression of the body.
func checkMessage(meta []byte, want shape) (bodyLen int64, pack packed, err error) {
	return checkMetadata(meta, want, MaxMessage)
}

// checkMetadata is checkMessage with the limit most, in place of MaxMessage, for the length of
// the body.
func checkMetadata(meta []byte, want shape, most int64) (bodyLen int64, pack packed, err error) {
	f := newFlat(meta)
	msg := f.table(int64(f.u32(0)))
	bodyLen = f.scalar64(msg, 3)
	header := f.child(msg, 2)
	switch kind := f.scalar8(msg, 1); {
	case f.bad:
	case header.pos == 0:
		f.bad = true
	case kind == headerSchema:
		f.schema(header)
	case kind == headerRecordBatch:
		err = f.recordBatch(header, bodyLen, want)
	default:
		err = fmt.Errorf("a message of type %d, neither schema nor record batch", kind)
	}
	if bodyLen < 0 {
		f.bad = true
	}
	switch bad := f.err(); {
	case bad != nil:
		return 0, packed{}, bad
	case bodyLen > most:
		return 0, packed{}, fmt.Errorf("a body of %d bytes exceeds the %d that there may be", bodyLen, most)
	}
	return bodyLen, f.pack, err
}

func (f *flat) schema(t flatTable) {
	f.each(t, 1, func(field flatTable) { f.field(field, 0) })
	f.keyValues(t, 2)
	f.vector(t, 3, 8)
}

func (f *flat) field(t flatTable, depth int) {
	if depth > maxNesting {
		f.bad = true
		return
	}
	f.vector(t, 0, 1) // name
	typ := f.child(t, 3)
	switch f.scalar8(t, 2) {
	case typeTimestamp:
		f.vector(typ, 1, 1) // zone
	case typeUnion:
		f.vector(typ, 1, 4)
	}
	if dict := f.child(t, 4); dict.pos != 0 {
		f.child(dict, 1)
	}
	f.each(t, 5, func(child flatTable) { f.field(child, depth+1) })
	f.keyValues(t, 6)
}

func (f *flat) keyValues(t flatTable, slot int) {
	f.each(t, slot, func(kv flatTable) {
		f.vector(kv, 0, 1)
		f.vector(kv, 1, 1)
	})
}

func (f *flat) recordBatch(t flatTable, bodyLen int64, want shape) error {
	_, nodes := f.vector(t, 1, 16)
	if _, n := f.vector(t, 2, 16); nodes != want.nodes || n != want.buffers {
		return fmt.Errorf("it has %d field nodes and %d buffers, where the schema needs %d and %d", nodes, n, want.nodes, want.buffers)
	}
	return f.body(t, bodyLen)
}

// body checks the field nodes and buffers of a record batch, as far as that is possible without
// its schema.
func (f *flat) body(t flatTable, bodyLen int64) error {
	f.nodes, _ = f.vector(t, 1, 16)
	start, n := f.vector(t, 2, 16)
	left := bodyLen
	for i := range n {
		offset, length := f.i64(start+16*i), f.i64(start+16*i+8)
		if offset < 0 || length < 0 || offset > bodyLen || length > bodyLen-offset || length > left {
			f.bad = true
			return nil
		}
		left -= length
		f.buffers = max(f.buffers, offset+length)
	}
	if c := f.child(t, 3); c.pos != 0 {
		f.pack = packed{is: true, codec: f.scalar8(c, 0), buffers: start, count: n}
		if method := f.scalar8(c, 1); method != 0 {
			return fmt.Errorf("its body is compressed by the method %d, which is not known", method)
		}
	}
	f.vector(t, 4, 8)
	return nil
}

// flatTable has the positions of a table and its vtable, both of which lie within the checked
// bytes. The zero value stands for an absent table, whose fields are all absent.
type flatTable struct{ pos, vtable, vlen, size int64 }

func (f *flat) table(pos int64) flatTable {
	f.reach(tableBytes)
	t := flatTable{pos: pos, vtable: pos - int64(int32(f.u32(pos)))}
	t.vlen, t.size = int64(f.u16(t.vtable)), int64(f.u16(t.vtable+2))
	if f.bad || pos == 0 || t.vlen < 4 || t.vlen%2 != 0 || !f.within(t.vtable, t.vlen) || !f.within(pos, t.size) {
		f.bad = true
		return flatTable{}
	}
	return t
}

// at returns the position of the field in the given slot of t, or 0 if the field is absent.
// size is the size of the field in bytes.
func (f *flat) at(t flatTable, slot int, size int64) int64 {
	entry := 4 + 2*int64(slot)
	if f.bad || t.pos == 0 || entry+2 > t.vlen {
		return 0
	}
	o := int64(f.u16(t.vtable + entry))
	if o == 0 {
		return 0
	}
	if o+size > t.size {
		f.bad = true
		return 0
	}
	return t.pos + o
}

func (f *flat) scalar8(t flatTable, slot int) byte {
	if pos := f.at(t, slot, 1); pos != 0 {
		return f.b[pos]
	}
	return 0
}

func (f *flat) scalar64(t flatTable, slot int) int64 {
	if pos := f.at(t, slot, 8); pos != 0 {
		return f.i64(pos)
	}
	return 0
}

// child returns the table to which the field in a slot refers.
func (f *flat) child(t flatTable, slot int) flatTable {
	if pos := f.at(t, slot, 4); pos != 0 {
		return f.table(pos + int64(f.u32(pos)))
	}
	return flatTable{}
}

// vector returns the position of the first element, and the number of elements, of the vector
// or string to which the field in a slot refers. size is the size of an element in bytes.
func (f *flat) vector(t flatTable, slot int, size int64) (start, n int64) {
	pos := f.at(t, slot, 4)
	if pos == 0 {
		return 0, 0
	}
	start = pos + int64(f.u32(pos))
	n = int64(f.u32(start))
	start += 4
	if f.bad || !f.within(start, n*size) {
		f.bad = true
		return 0, 0
	}
	if f.reach(n * size); f.bad {
		return 0, 0
	}
	return start, n
}

// each calls visit for every table in the vector to which the field in a slot refers.
func (f *flat) each(t flatTable, slot int, visit func(flatTable)) {
	start, n := f.vector(t, slot, 4)
	for i := int64(0); i < n && !f.bad; i++ {
		pos := start + 4*i
		visit(f.table(pos + int64(f.u32(pos))))
	}
}

func (f *flat) within(pos, n int64) bool {
	if pos < 0 || n < 0 || pos > int64(len(f.b)) || n > int64(len(f.b))-pos {
		return false
	}
	f.end = max(f.end, pos+n)
	return true
}

func (f *flat) bytes(pos, n int64) []byte {
	if f.bad || !f.within(pos, n) {
		f.bad = true
		return make([]byte, 8)[:n]
	}
	return f.b[pos : pos+n]
}

func (f *flat) u16(pos int64) uint16 { return binary.LittleEndian.Uint16(f.bytes(pos, 2)) }
func (f *flat) u32(pos int64) uint32 { return binary.LittleEndian.Uint32(f.bytes(pos, 4)) }
func (f *flat) i64(pos int64) int64  { return int64(binary.LittleEndian.Uint64(f.bytes(pos, 8))) }
