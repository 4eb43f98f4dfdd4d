package batch

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Appender collects values of T into batches. Its scratch memory is on the Go heap and is
// reused for every batch. The buffers of a batch are allocated from mem with exactly the size
// needed. Only one goroutine at a time may use an Appender.
type Appender[T any] struct {
	mem    memory.Allocator
	schema *arrow.Schema
	cols   []columnAppender
	n      int
	row    T // copy of the argument of Append
}

// columnAppender has the scratch memory of one column.
type columnAppender struct {
	field *codecField
	push  func(c *columnAppender, p unsafe.Pointer) error // p points to the value, which is not null
	nulls int
	valid []byte  // of nullable columns: one bit per row
	data  []byte  // fixed-width values, bits of bools, text or list items
	items []byte  // of sparse columns: items of the list of indices
	ends  []int32 // of lists and text: offsets without the leading 0
	dim   int     // declared number of components or size; 0 if not declared
}

// Appender returns an appender that allocates batches from mem.
func (c *Codec[T]) Appender(mem memory.Allocator) *Appender[T] {
	a := &Appender[T]{mem: mem, schema: c.schema, cols: make([]columnAppender, len(c.fields))}
	for i := range a.cols {
		f := &c.fields[i]
		a.cols[i] = columnAppender{field: f, push: pushFor(f.kind), dim: dimOf(f.dt)}
		if f.array {
			a.cols[i].push = pushArray
		}
	}
	return a
}

// dimOf returns the declared number of components of a vector type, or the declared size of a
// sparse type. It returns 0 if the type declares none.
func dimOf(dt arrow.DataType) int {
	switch kindOf(dt) {
	case kindVector, kindVector32:
		return int(dt.(*arrow.FixedSizeListType).Len())
	case kindSparse:
		return sparseSize(dt)
	}
	return 0
}

// Append adds one row; slices and strings in v are copied. It returns an error and adds nothing
// if a vector does not have the declared number of components, a sparse vector is not valid,
// text is not UTF-8, or a time is out of the range of its type. It also returns an error if a
// column of the batch would exceed 2 GiB of text or 2^31 items, the most that offsets of 32
// bits can address.
func (a *Appender[T]) Append(v T) error {
	// If AppendFrom got the address of v, every v would escape to the heap.
	a.row = v
	return a.AppendFrom(&a.row)
}

// AppendFrom is Append without a copy of the struct. It does not modify v.
func (a *Appender[T]) AppendFrom(v *T) error {
	p := unsafe.Pointer(v)
	for i := range a.cols {
		c := &a.cols[i]
		if err := c.append(unsafe.Add(p, c.field.offset), a.n); err != nil {
			a.undo(i)
			return fmt.Errorf("column %q (%s): %w", c.field.name, c.field.goName, err)
		}
	}
	a.n++
	return nil
}

// undo removes row a.n, which could not be appended to all columns, from the first cols
// columns.
func (a *Appender[T]) undo(cols int) {
	for i := range a.cols[:cols] {
		a.cols[i].truncate(a.n)
	}
}

// Len returns the number of rows appended since the last NewRecord.
func (a *Appender[T]) Len() int { return a.n }

// NewRecord returns the appended rows as a batch, owned by the caller, and empties the
// appender.
func (a *Appender[T]) NewRecord() arrow.Record {
	cols := make([]arrow.Array, len(a.cols))
	for i := range a.cols {
		cols[i] = a.cols[i].finish(a.mem, a.n)
	}
	rec := ownedRecord(a.schema, cols, a.n)
	a.n, a.row = 0, *new(T)
	return rec
}

// Release gives up the scratch memory. The appender must not be used afterwards.
func (a *Appender[T]) Release() { a.cols, a.n = nil, 0 }

// append adds the value of the field at p as row n.
func (c *columnAppender) append(p unsafe.Pointer, n int) error {
	if c.field.pointer {
		if n&7 == 0 {
			c.valid = append(c.valid, 0)
		}
		if p = *(*unsafe.Pointer)(p); p == nil {
			c.nulls++
			c.pushNull(n)
			return nil
		}
		bitutil.SetBit(c.valid, n)
	}
	if c.field.kind == kindBool {
		c.pushBool(n, *(*bool)(p))
		return nil
	}
	if err := c.push(c, p); err != nil {
		if c.field.pointer {
			c.valid = c.valid[:bitutil.BytesForBits(int64(n))]
			clearTail(c.valid, n)
		}
		return err
	}
	return nil
}

func (c *columnAppender) pushBool(n int, v bool) {
	if n&7 == 0 {
		c.data = append(c.data, 0)
	}
	if v {
		bitutil.SetBit(c.data, n)
	}
}

// pushNull adds the bytes of a null value: zeros, or an empty list or text.
func (c *columnAppender) pushNull(n int) {
	switch k := c.field.kind; {
	case k == kindBool:
		c.pushBool(n, false)
	case k == kindString || k == kindBinary || k == kindList || k == kindList32 || k == kindSparse:
		c.ends = append(c.ends, c.lastEnd())
	default:
		for range c.rowBytes() {
			c.data = append(c.data, 0)
		}
	}
}

func (c *columnAppender) lastEnd() int32 {
	if len(c.ends) == 0 {
		return 0
	}
	return c.ends[len(c.ends)-1]
}

// rowBytes returns the number of bytes per row of a fixed-width column.
func (c *columnAppender) rowBytes() int {
	switch c.field.kind {
	case kindVector:
		return c.dim * arrow.Float64SizeBytes
	case kindVector32:
		return c.dim * arrow.Float32SizeBytes
	}
	return fixedWidth(c.field.dt)
}

// truncate removes all rows of the column after the first n.
func (c *columnAppender) truncate(n int) {
	if c.field.pointer {
		if !bitutil.BitIsSet(c.valid, n) {
			c.nulls--
		}
		c.valid = c.valid[:bitutil.BytesForBits(int64(n))]
		clearTail(c.valid, n)
	}
	switch k := c.field.kind; {
	case k == kindBool:
		c.data = c.data[:bitutil.BytesForBits(int64(n))]
		clearTail(c.data, n)
	case k == kindString || k == kindBinary || k == kindList || k == kindList32 || k == kindSparse:
		c.ends = c.ends[:n]
		end := int(c.lastEnd())
		switch k {
		case kindList:
			end *= arrow.Float64SizeBytes
		case kindList32:
			end *= arrow.Float32SizeBytes
		case kindSparse:
			c.items = c.items[:end*arrow.Int32SizeBytes]
			end *= arrow.Float64SizeBytes
		}
		c.data = c.data[:end]
	default:
		c.data = c.data[:n*c.rowBytes()]
	}
}

// clearTail sets the bits from bit n to the end of its byte to 0, unless n is a multiple of 8.
// Appending a row sets its bit if the bit must be 1, and assumes that it is 0 otherwise.
func clearTail(bits []byte, n int) {
	if n&7 != 0 {
		bits[n>>3] &= 1<<uint(n&7) - 1
	}
}

// finish copies the n rows in the scratch memory to buffers of exactly their size, returns them
// as a column, and empties the scratch memory.
func (c *columnAppender) finish(mem memory.Allocator, n int) arrow.Array {
	var valid *memory.Buffer
	if c.nulls > 0 {
		valid = bufferOf(mem, c.valid)
	}
	var d arrow.ArrayData
	switch c.field.kind {
	case kindString, kindBinary:
		d = ownedData(c.field.dt, n, []*memory.Buffer{valid, c.offsets(mem), bufferOf(mem, c.data)}, nil, c.nulls)
	case kindVector, kindVector32, kindList, kindList32:
		elem := c.field.dt.(arrow.ListLikeType).Elem()
		child := ownedData(elem, len(c.data)/fixedWidth(elem), []*memory.Buffer{nil, bufferOf(mem, c.data)}, nil, 0)
		buffers := []*memory.Buffer{valid}
		if c.field.kind == kindList || c.field.kind == kindList32 {
			buffers = append(buffers, c.offsets(mem))
		}
		d = ownedData(c.field.dt, n, buffers, []arrow.ArrayData{child}, c.nulls)
	case kindSparse:
		d = sparseData(c.field.dt, n, valid, c.nulls, c.offsets(mem), bufferOf(mem, c.items), bufferOf(mem, c.data))
	default:
		d = ownedData(c.field.dt, n, []*memory.Buffer{valid, bufferOf(mem, c.data)}, nil, c.nulls)
	}
	c.nulls, c.valid, c.data, c.items, c.ends = 0, c.valid[:0], c.data[:0], c.items[:0], c.ends[:0]
	return ownedArray(d)
}

func (c *columnAppender) offsets(mem memory.Allocator) *memory.Buffer {
	buf := newBuffer(mem, (len(c.ends)+1)*arrow.Int32SizeBytes)
	offs := castBytes[int32](buf.Bytes())
	offs[0] = 0
	copy(offs[1:], c.ends)
	return buf
}

func bufferOf(mem memory.Allocator, data []byte) *memory.Buffer {
	buf := newBuffer(mem, len(data))
	copy(buf.Bytes(), data)
	return buf
}

// sparseData returns a sparse column in which both lists share one buffer of offsets. It takes
// over the references of the caller to all buffers.
func sparseData(dt arrow.DataType, n int, valid *memory.Buffer, nulls int, offs, indices, values *memory.Buffer) arrow.ArrayData {
	offs.Retain()
	list := func(field int, items *memory.Buffer) arrow.ArrayData {
		lt := dt.(*arrow.StructType).Field(field).Type.(*arrow.ListType)
		child := ownedData(lt.Elem(), items.Len()/fixedWidth(lt.Elem()), []*memory.Buffer{nil, items}, nil, 0)
		return ownedData(lt, n, []*memory.Buffer{nil, offs}, []arrow.ArrayData{child}, 0)
	}
	return ownedData(dt, n, []*memory.Buffer{valid}, []arrow.ArrayData{list(0, indices), list(1, values)}, nulls)
}

// pushFor returns the function that copies a Go value into a column.
func pushFor(k kind) func(*columnAppender, unsafe.Pointer) error {
	switch k {
	case kindInt8, kindUint8:
		return func(c *columnAppender, p unsafe.Pointer) error {
			c.data = append(c.data, *(*byte)(p))
			return nil
		}
	case kindInt16, kindUint16:
		return func(c *columnAppender, p unsafe.Pointer) error {
			*(*[2]byte)(c.extend(2)) = *(*[2]byte)(p)
			return nil
		}
	case kindInt32, kindUint32, kindFloat32:
		return func(c *columnAppender, p unsafe.Pointer) error {
			*(*[4]byte)(c.extend(4)) = *(*[4]byte)(p)
			return nil
		}
	case kindInt64, kindUint64, kindFloat64:
		return func(c *columnAppender, p unsafe.Pointer) error {
			*(*[8]byte)(c.extend(8)) = *(*[8]byte)(p)
			return nil
		}
	case kindTimestamp:
		return pushTime
	case kindString:
		return func(c *columnAppender, p unsafe.Pointer) error {
			s := *(*string)(p)
			if !isASCII(s) && !utf8.ValidString(s) {
				return notText(s)
			}
			return c.pushItems(&c.data, unsafe.Slice(unsafe.StringData(s), len(s)), len(s))
		}
	case kindBinary:
		return func(c *columnAppender, p unsafe.Pointer) error {
			b := *(*[]byte)(p)
			return c.pushItems(&c.data, b, len(b))
		}
	case kindVector, kindList:
		return func(c *columnAppender, p unsafe.Pointer) error {
			s := *(*[]float64)(p)
			return c.pushVector(bytesOf(s), len(s))
		}
	case kindVector32, kindList32:
		return func(c *columnAppender, p unsafe.Pointer) error {
			s := *(*[]float32)(p)
			return c.pushVector(bytesOf(s), len(s))
		}
	case kindSparse:
		return pushSparse
	}
	return nil // kindBool: see pushBool, which needs the row number
}

// extend appends n bytes to c.data and returns them; the caller sets them. If the capacity
// suffices, extend changes only the length. The builtin append would store the pointer of the
// slice again for every value, with the garbage collector's write barrier.
func (c *columnAppender) extend(n int) []byte {
	at := len(c.data)
	if cap(c.data)-at < n {
		c.data = slices.Grow(c.data, n)
	}
	c.data = c.data[:at+n]
	return c.data[at : at+n : at+n]
}

// pushTime appends a time as microseconds since 1970, rounded down.
func pushTime(c *columnAppender, p unsafe.Pointer) error {
	t := *(*time.Time)(p)
	const most = math.MaxInt64 / 1_000_000
	if s := t.Unix(); s >= most || s <= -most {
		return fmt.Errorf("time in the year %d does not fit microseconds in 64 bits", t.Year())
	}
	us := t.UnixMicro()
	*(*[8]byte)(c.extend(8)) = *(*[8]byte)(unsafe.Pointer(&us))
	return nil
}

// pushItems appends a row of n items to a list or text column. items has the bytes of these
// items. pushItems appends them to dst.
func (c *columnAppender) pushItems(dst *[]byte, items []byte, n int) error {
	end := int(c.lastEnd()) + n
	if end > math.MaxInt32 {
		return fmt.Errorf("the batch would hold %d bytes or items, above the 2^31 that Arrow can address; emit smaller batches", end)
	}
	*dst = append(*dst, items...)
	c.ends = append(c.ends, int32(end))
	return nil
}

func (c *columnAppender) pushVector(items []byte, n int) error {
	if c.dim == 0 {
		return c.pushItems(&c.data, items, n)
	}
	if n != c.dim {
		return fmt.Errorf("want %d components for %s, got %d", c.dim, TypeName(c.field.dt), n)
	}
	c.data = append(c.data, items...)
	return nil
}

// pushArray appends a Go array. The elements of an array, unlike the elements of a slice, are
// in the field itself.
func pushArray(c *columnAppender, p unsafe.Pointer) error {
	n := c.rowBytes()
	copy(c.extend(n), unsafe.Slice((*byte)(p), n))
	return nil
}

func pushSparse(c *columnAppender, p unsafe.Pointer) error {
	v := (*SparseVector)(p)
	if err := v.Validate(); err != nil {
		return err
	}
	if c.dim > 0 && v.Size != c.dim && v.Size != 0 {
		return fmt.Errorf("a sparse vector of size %d in a column of %s", v.Size, TypeName(c.field.dt))
	}
	if k := len(v.Indices); c.dim > 0 && k > 0 && int(v.Indices[k-1]) >= c.dim {
		return fmt.Errorf("index %d is not below the size in a column of %s", v.Indices[k-1], TypeName(c.field.dt))
	}
	if err := c.pushItems(&c.items, bytesOf(v.Indices), len(v.Indices)); err != nil {
		return err
	}
	c.data = append(c.data, bytesOf(v.Values)...)
	return nil
}
