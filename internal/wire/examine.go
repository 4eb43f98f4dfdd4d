package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

const (
	// maxDepth bounds the nesting of a message, as the decoder recurses; our messages stay
	// under a dozen.
	maxDepth = 64
	// maxValues bounds how many values a message has, keys included. An element of an array may
	// take one byte in the encoding and some hundred in memory: the bound keeps a decoded
	// message within a few hundred MB at worst, whoever sends it.
	maxValues = 2 << 20
)

// examine checks that data is exactly one msgpack value, with every length within the remaining
// bytes, and nesting and number of values within the bounds. It allocates nothing. It must run
// before the decoder, which allocates by the lengths that it reads, and recurses over unknown
// fields.
//
// The format is that of github.com/msgpack/msgpack/blob/master/spec.md. Of its
// extensions only the timestamp occurs in messages.
func examine(data []byte) error {
	var open [maxDepth]int // values still to come in each enclosing array or map
	depth, values := 0, 0
	for pos := 0; ; {
		values++
		if values > maxValues {
			return errTooMany
		}
		size, children, err := head(data[pos:])
		if err != nil {
			return err
		}
		if size > len(data)-pos {
			return errTruncated
		}
		pos += size
		if children > 0 {
			if depth == maxDepth {
				return errTooDeep
			}
			open[depth] = children
			depth++
			continue
		}
		for depth > 0 {
			open[depth-1]--
			if open[depth-1] > 0 {
				break
			}
			depth--
		}
		if depth == 0 {
			if pos != len(data) {
				return errTrailing
			}
			return nil
		}
	}
}

// head reads the head of a value. size is the value's size without the values inside it,
// children their number. The size may exceed the rest of data.
func head(data []byte) (size, children int, err error) {
	if len(data) == 0 {
		return 0, 0, errTruncated
	}
	c := data[0]
	switch {
	case msgpcode.IsFixedNum(c):
		return 1, 0, nil
	case msgpcode.IsFixedMap(c):
		return 1, 2 * int(c&msgpcode.FixedMapMask), nil
	case msgpcode.IsFixedArray(c):
		return 1, int(c & msgpcode.FixedArrayMask), nil
	case msgpcode.IsFixedString(c):
		return 1 + int(c&msgpcode.FixedStrMask), 0, nil
	}
	switch c {
	case msgpcode.Nil, msgpcode.False, msgpcode.True:
		return 1, 0, nil
	case msgpcode.Uint8, msgpcode.Int8:
		return 2, 0, nil
	case msgpcode.Uint16, msgpcode.Int16:
		return 3, 0, nil
	case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
		return 5, 0, nil
	case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
		return 9, 0, nil
	case msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.Ext8:
		return timestamp(data)
	}
	width, array, mapping := 0, false, false
	switch c {
	case msgpcode.Str8, msgpcode.Bin8:
		width = 1
	case msgpcode.Str16, msgpcode.Bin16:
		width = 2
	case msgpcode.Str32, msgpcode.Bin32:
		width = 4
	case msgpcode.Array16:
		width, array = 2, true
	case msgpcode.Array32:
		width, array = 4, true
	case msgpcode.Map16:
		width, mapping = 2, true
	case msgpcode.Map32:
		width, mapping = 4, true
	default:
		return 0, 0, fmt.Errorf("0x%02x begins no value of a message", c)
	}
	n, err := length(data[1:], width)
	switch {
	case err != nil:
		return 0, 0, err
	case array:
		return 1 + width, n, nil
	case mapping:
		return 1 + width, 2 * n, nil
	}
	return 1 + width + n, 0, nil
}

// length reads a length of width bytes.
func length(data []byte, width int) (int, error) {
	if len(data) < width {
		return 0, errTruncated
	}
	switch width {
	case 1:
		return int(data[0]), nil
	case 2:
		return int(binary.BigEndian.Uint16(data)), nil
	}
	// int may have 32 bits. The cap does no harm, as data never has more than MaxMessage bytes.
	return int(min(binary.BigEndian.Uint32(data), 1<<29)), nil
}

// timestamp reads the head of extension -1 in one of its three sizes.
func timestamp(data []byte) (size, children int, err error) {
	header, body := 2, 4
	switch data[0] {
	case msgpcode.FixExt8:
		body = 8
	case msgpcode.Ext8:
		header, body = 3, 12
		if len(data) > 1 && data[1] != 12 {
			return 0, 0, fmt.Errorf("an extension of %d bytes is no time", data[1])
		}
	}
	if len(data) < header {
		return 0, 0, errTruncated
	}
	if id := int8(data[header-1]); id != -1 {
		return 0, 0, fmt.Errorf("it has an extension of type %d, which no message uses", id)
	}
	return header + body, 0, nil
}
