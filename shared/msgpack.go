package shared

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// Msgpack returns a codec of any T in the MessagePack format
// (https://github.com/msgpack/msgpack/blob/master/spec.md). Fields of structs are stored by
// name, or by their `msgpack:"name"` tag; unexported fields are not stored. The entries of maps
// are sorted by their encoded keys, so that equal objects are encoded as equal bytes.
//
// A key whose type has unexported fields is unusable, because they would be lost, unless the type
// has methods that encode it (EncodeMsgpack, MarshalMsgpack, MarshalBinary or MarshalText) or the tag
// `msgpack:"-"` leaves the field out. If an object was saved by a program in which the type had
// other fields, restoring it is an error that names them. A renamed field is restored with the tag
// `msgpack:"new,alias:old"`, and a new one is left zero with the tag `msgpack:",omitempty"`.
//
// An object must not point back to itself, directly or through other objects: encoding such an
// object does not end.
func Msgpack[T any]() Codec[T] { return packed[T]{} }

type packed[T any] struct{}

func (packed[T]) Append(dst []byte, v T) (out []byte, err error) {
	at := len(dst)
	defer func() {
		if p := recover(); p != nil {
			out, err = dst[:at], fmt.Errorf("shared: encode %v: %v", reflect.TypeFor[T](), p)
		}
	}()
	raw, err := msgpack.Marshal(&v)
	if err != nil {
		return dst, fmt.Errorf("shared: encode %v: %w", reflect.TypeFor[T](), err)
	}
	if out, err = sortMaps(dst, raw); err != nil {
		return dst[:at], fmt.Errorf("shared: encode %v: %w", reflect.TypeFor[T](), err)
	}
	return out, nil
}

func (c packed[T]) Decode(src []byte) (T, error) { return c.decode(src, false) }

// decode decodes src. If allFields is true, a field of src that T does not have is an error that names it.
func (packed[T]) decode(src []byte, allFields bool) (v T, err error) {
	// The msgpack library allocates as many bytes as a length field announces. So all length
	// fields are first compared with the number of available bytes.
	end, err := skipPacked(src, 0, 0)
	if err == nil && end != len(src) {
		err = fmt.Errorf("%d bytes left over after the value at byte %d", len(src)-end, end)
	}
	if err != nil {
		return v, fmt.Errorf("shared: decode %v: %w", reflect.TypeFor[T](), err)
	}
	defer func() {
		if p := recover(); p != nil {
			var zero T
			v, err = zero, fmt.Errorf("shared: decode %v: %v", reflect.TypeFor[T](), p)
		}
	}()
	d := msgpack.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields(allFields)
	if err := d.Decode(&v); err != nil {
		var zero T
		return zero, fmt.Errorf("shared: decode %v: %w", reflect.TypeFor[T](), err)
	}
	return v, nil
}

// maxPackedDepth bounds how deep arrays and maps are nested. It thereby bounds the stack that a
// decoder needs for hostile bytes.
const maxPackedDepth = 1000

var errPackedShort = errors.New("the bytes end within a value")

// valueHead describes the head of a packed value. The head of an array or map is everything
// before its elements. The head of any other value is the whole value.
type valueHead struct {
	size     int // bytes of the head
	elements int // number of values that follow: n in an array of n, 2n in a map of n entries
	isMap    bool
}

// packedHead reads the head of the value at src[offset:] and checks that src has the bytes that
// the head announces, with at least one byte for every element.
func packedHead(src []byte, offset int) (valueHead, error) {
	rest := src[offset:]
	if len(rest) == 0 {
		return valueHead{}, errPackedShort
	}
	code := rest[0]
	var h valueHead
	switch {
	case code <= 0x7f || code >= 0xe0: // small integers
		h.size = 1
	case code <= 0x8f:
		h = valueHead{1, 2 * int(code&0x0f), true}
	case code <= 0x9f:
		h = valueHead{1, int(code & 0x0f), false}
	case code <= 0xbf: // short string
		h.size = 1 + int(code&0x1f)
	case code == 0xc1:
		return valueHead{}, fmt.Errorf("byte %d: 0xc1 begins no value", offset)
	default:
		form := packedForms[code-0xc0]
		if len(rest) < 1+form.width {
			return valueHead{}, errPackedShort
		}
		n := lengthField(rest[1 : 1+form.width])
		switch form.holds {
		case holdsArray:
			h = valueHead{1 + form.width, n, false}
		case holdsMap:
			h = valueHead{1 + form.width, 2 * n, true}
		default:
			h.size = 1 + form.width + form.fixed + n
		}
	}
	if h.size > len(rest) || h.elements > len(rest)-h.size {
		return valueHead{}, fmt.Errorf("byte %d: a value of %d bytes and %d elements does not fit in the %d bytes left", offset, h.size, h.elements, len(rest))
	}
	return h, nil
}

// The units that the length field of a MessagePack format counts.
const (
	holdsBytes = iota
	holdsArray
	holdsMap
)

// packedForms describes the formats with first bytes 0xc0 to 0xdf, indexed by that byte minus
// 0xc0: the number of bytes of the length field, the number of bytes that always follow the
// length field, and what the length field counts.
var packedForms = [32]struct{ width, fixed, holds int }{
	0x00: {},                                             // nil
	0x02: {},                                             // false
	0x03: {},                                             // true
	0x04: {width: 1}, 0x05: {width: 2}, 0x06: {width: 4}, // bin 8, 16, 32
	0x07: {width: 1, fixed: 1}, 0x08: {width: 2, fixed: 1}, 0x09: {width: 4, fixed: 1}, // ext 8, 16, 32
	0x0a: {fixed: 4}, 0x0b: {fixed: 8}, // float 32, 64
	0x0c: {fixed: 1}, 0x0d: {fixed: 2}, 0x0e: {fixed: 4}, 0x0f: {fixed: 8}, // uint 8, 16, 32, 64
	0x10: {fixed: 1}, 0x11: {fixed: 2}, 0x12: {fixed: 4}, 0x13: {fixed: 8}, // int 8, 16, 32, 64
	0x14: {fixed: 2}, 0x15: {fixed: 3}, 0x16: {fixed: 5}, 0x17: {fixed: 9}, 0x18: {fixed: 17}, // fixext 1, 2, 4, 8, 16
	0x19: {width: 1}, 0x1a: {width: 2}, 0x1b: {width: 4}, // str 8, 16, 32
	0x1c: {width: 2, holds: holdsArray}, 0x1d: {width: 4, holds: holdsArray},
	0x1e: {width: 2, holds: holdsMap}, 0x1f: {width: 4, holds: holdsMap},
}

// lengthField reads a big-endian field of 0, 1, 2 or 4 bytes.
func lengthField(b []byte) int {
	switch len(b) {
	case 1:
		return int(b[0])
	case 2:
		return int(binary.BigEndian.Uint16(b))
	case 4:
		return int(binary.BigEndian.Uint32(b))
	}
	return 0
}

// skipPacked returns the index in src at which the value that starts at src[offset] ends.
func skipPacked(src []byte, offset, depth int) (int, error) {
	if depth > maxPackedDepth {
		return 0, fmt.Errorf("byte %d: values are nested more than %d deep", offset, maxPackedDepth)
	}
	h, err := packedHead(src, offset)
	if err != nil {
		return 0, err
	}
	offset += h.size
	for range h.elements {
		if offset, err = skipPacked(src, offset, depth+1); err != nil {
			return 0, err
		}
	}
	return offset, nil
}

// sortMaps appends the value in src to dst, with the entries of every map in the order of their
// encoded keys.
func sortMaps(dst, src []byte) ([]byte, error) {
	dst, _, err := appendSorted(dst, src, 0, 0)
	return dst, err
}

// appendSorted appends the value at src[offset:] to dst like sortMaps. It returns the extended
// dst and the index in src at which the value ends.
func appendSorted(dst, src []byte, offset, depth int) ([]byte, int, error) {
	if depth > maxPackedDepth {
		return dst, 0, fmt.Errorf("values are nested more than %d deep", maxPackedDepth)
	}
	h, err := packedHead(src, offset)
	if err != nil {
		return dst, 0, err
	}
	dst = append(dst, src[offset:offset+h.size]...)
	offset += h.size
	begin := len(dst)
	var entries []packedEntry
	for i := range h.elements {
		from := len(dst)
		if dst, offset, err = appendSorted(dst, src, offset, depth+1); err != nil {
			return dst, 0, err
		}
		if !h.isMap {
			continue
		}
		if i%2 == 0 {
			entries = append(entries, packedEntry{from: from - begin, value: len(dst) - begin})
		} else {
			entries[len(entries)-1].to = len(dst) - begin
		}
	}
	if len(entries) > 1 {
		reorder(dst[begin:], entries)
	}
	return dst, offset, nil
}

// packedEntry has the positions of one map entry in the bytes: its key is at [from, value) and
// its value at [value, to).
type packedEntry struct{ from, value, to int }

// reorder sorts map entries, which are consecutive in b, by their encoded keys. Entries with
// equal encoded keys are sorted by value. A map can have several such entries if their keys are
// NaN.
func reorder(b []byte, entries []packedEntry) {
	byKey := func(x, y packedEntry) int {
		if c := bytes.Compare(b[x.from:x.value], b[y.from:y.value]); c != 0 {
			return c
		}
		return bytes.Compare(b[x.value:x.to], b[y.value:y.to])
	}
	if slices.IsSortedFunc(entries, byKey) {
		return
	}
	slices.SortFunc(entries, byKey)
	old := bytes.Clone(b)
	b = b[:0]
	for _, e := range entries {
		b = append(b, old[e.from:e.to]...)
	}
}
