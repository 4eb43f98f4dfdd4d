package parquet

import (
	"encoding/binary"
	"errors"
	"math"
)

// These are kinds of pages, as in the Parquet format.
const (
	pageOfData       = 0
	pageOfDictionary = 2
	pageOfData2      = 3
)

// head is the header of a page; missing fields are -1.
type head struct {
	kind         int64
	size, packed int64 // number of bytes of the page, and of the possibly compressed page in the file
	values       int64
	encoding     int64
	nulls, rows  int64 // only in pages of version 2
	// defined and repeated are, in a page of version 1, the encodings of its definition and
	// repetition levels, and in a page of version 2 the numbers of bytes of these levels.
	defined, repeated int64
	plain             bool // the values of a page of version 2 are not compressed
}

// parseHead returns the head at the beginning of data, and the data after it.
func parseHead(data []byte) (head, []byte, error) {
	h := head{kind: -1, size: -1, packed: -1, values: -1, encoding: -1, nulls: -1, rows: -1, defined: -1, repeated: -1}
	c := compact{data: data}
	c.fields(0, func(id int64, kind byte) bool {
		switch {
		case id == 1:
			return c.numberInto(&h.kind, kind)
		case id == 2:
			return c.numberInto(&h.size, kind)
		case id == 3:
			return c.numberInto(&h.packed, kind)
		case kind != thriftStruct:
			return false
		case id == 5 && h.kind == pageOfData:
			c.numbers([]*int64{1: &h.values, 2: &h.encoding, 3: &h.defined, 4: &h.repeated}, nil)
		case id == 7 && h.kind == pageOfDictionary:
			c.numbers([]*int64{1: &h.values, 2: &h.encoding}, nil)
		case id == 8 && h.kind == pageOfData2:
			c.numbers([]*int64{1: &h.values, 2: &h.nulls, 3: &h.rows, 4: &h.encoding, 5: &h.defined, 6: &h.repeated}, func(id int64, kind byte) {
				h.plain = id == 7 && kind == thriftFalse || h.plain && id != 7
			})
		default:
			return false
		}
		return true
	})
	least := min(h.kind, h.size, h.packed)
	switch h.kind {
	case pageOfData:
		least = min(least, h.values, h.encoding, h.defined, h.repeated)
	case pageOfData2:
		least = min(least, h.values, h.encoding, h.nulls, h.rows, h.defined, h.repeated)
	case pageOfDictionary:
		least = min(least, h.values, h.encoding)
	}
	if c.bad || least < 0 {
		return h, nil, errors.New("the head of a page is damaged")
	}
	return h, c.data, nil
}

// These are the types of Thrift's compact protocol, in which headers of pages are encoded.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt32  = 5
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// compact decodes Thrift's compact protocol. At the end of data it reads zeros and sets bad.
type compact struct {
	data []byte
	bad  bool
}

// take returns the next n bytes.
func (c *compact) take(n uint64) []byte {
	if n > uint64(len(c.data)) {
		c.bad, n = true, uint64(len(c.data))
	}
	taken := c.data[:n]
	c.data = c.data[n:]
	return taken
}

func (c *compact) byte() (b byte) {
	if next := c.take(1); len(next) > 0 {
		b = next[0]
	}
	return b
}

// list reads the header of a list and returns the number and type of its elements.
func (c *compact) list() (n uint64, kind byte) {
	b := c.byte()
	if n = uint64(b >> 4); n == 15 {
		n = c.uvarint()
	}
	return n, b & 15
}

func (c *compact) uvarint() uint64 {
	v, n := binary.Uvarint(c.data)
	if n <= 0 {
		c.data, c.bad = nil, true
		return 0
	}
	c.data = c.data[n:]
	return v
}

func (c *compact) number() int64 {
	v := c.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// numberInto reads a number into *n if kind is the type of 32-bit numbers; otherwise it returns
// false.
func (c *compact) numberInto(n *int64, kind byte) bool {
	if kind != thriftInt32 {
		return false
	}
	if *n = c.number(); *n > math.MaxInt32 || *n < math.MinInt32 {
		c.bad = true
	}
	return true
}

// numbers reads a struct. It stores the number in the field with number id in *fields[id], if
// fields has such an element. For each boolean field it calls onBool if that is not nil; kind
// is the boolean's value.
func (c *compact) numbers(fields []*int64, onBool func(id int64, kind byte)) {
	c.fields(1, func(id int64, kind byte) bool {
		if onBool != nil && (kind == thriftTrue || kind == thriftFalse) {
			onBool(id, kind)
		}
		return id >= 0 && id < int64(len(fields)) && fields[id] != nil && c.numberInto(fields[id], kind)
	})
}

// fields reads a struct. It calls field for each of its fields, and skips the value of the
// field if the call returns false.
func (c *compact) fields(depth int, field func(id int64, kind byte) bool) {
	for id := int64(0); !c.bad; {
		b := c.byte()
		kind := b & 15
		if kind == 0 {
			return
		}
		if id += int64(b >> 4); b>>4 == 0 {
			id = c.number()
		}
		if id < math.MinInt16 || id > math.MaxInt16 { // the library would truncate the id to the id of another field
			c.bad = true
			return
		}
		if !field(id, kind) {
			c.skip(kind, depth)
		}
	}
}

// skip skips a value of the given type. depth is the number of values that contain the value.
func (c *compact) skip(kind byte, depth int) {
	const deepest = 16
	element := func(kind byte) {
		if kind == thriftTrue || kind == thriftFalse {
			kind = thriftByte
		}
		c.skip(kind, depth+1)
	}
	switch {
	case depth > deepest:
		c.bad = true
	case kind == thriftTrue, kind == thriftFalse:
	case kind == thriftByte:
		c.take(1)
	case kind < thriftDouble:
		c.uvarint()
	case kind == thriftDouble:
		c.take(8)
	case kind == thriftBinary:
		c.take(c.uvarint())
	case kind == thriftList, kind == thriftSet:
		for n, of := c.list(); n > 0 && !c.bad; n-- {
			element(of)
		}
	case kind == thriftMap:
		n, b := c.uvarint(), byte(0)
		if n > 0 {
			b = c.byte()
		}
		for ; n > 0 && !c.bad; n-- {
			element(b >> 4)
			element(b & 15)
		}
	case kind == thriftStruct:
		c.fields(depth+1, func(int64, byte) bool { return false })
	default:
		c.bad = true
	}
}
