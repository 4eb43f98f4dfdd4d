package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

const (
	// maxDepth bounds the nesting of values in a message, as the decoder is recursive. The
	// messages of this package have fewer than twelve levels.
	maxDepth = 64
	// maxValues bounds the number of values in a message, including the keys of maps. An
	// element of an array may take one byte when encoded and some hundred bytes in memory. With
	// this bound, a decoded message takes at most a few hundred MB, even if the sender is
	// hostile.
	maxValues = 2 << 20
)

// examine returns an error unless data is exactly one msgpack value, no length exceeds the
// remaining bytes, and the nesting and the number of values are within the bounds. It allocates
// no memory. It must be called before the decoder, which allocates memory for the lengths that
// it reads, and skips unknown fields recursively.
//
// The format is specified at github.com/msgpack/msgpack/blob/master/spec.md. The only extension
// that messages use is the timestamp.
func examine(data []byte) error {
	var open [maxDepth]int // for each enclosing array or map, the number of its values that follow
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

// head parses the head of the value at the beginning of data. size is the value's size without
// the values inside it, and children is the number of values inside it. size may exceed the
// length of data.
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

// length returns the length that is encoded in the first width bytes of data.
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
	// int may have 32 bits, so the result is limited. The limit is greater than MaxMessage, so
	// examine refuses a value of this length in any case.
	return int(min(binary.BigEndian.Uint32(data), 1<<29)), nil
}

// timestamp does the same as head for a value of extension -1, a timestamp, which has one of
// three sizes.
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
