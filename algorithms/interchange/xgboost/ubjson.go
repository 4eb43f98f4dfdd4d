package xgboost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ubjReader reads the part of Universal Binary JSON, draft 12, that models need. High-precision
// numbers, objects with a type or a count, and typed arrays of anything but numbers are not
// supported. Integers are big-endian. A length that exceeds the rest of the file is an error.
type ubjReader struct {
	data []byte
	at   int
}

func parseUBJSON(data []byte) (any, error) {
	r := &ubjReader{data: data}
	c, err := r.marker()
	var v any
	if err == nil {
		v, err = r.value(c, 0)
	}
	if err == nil && r.at < len(data) {
		err = errors.New("something follows the object")
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", r.at, err)
	}
	return v, nil
}

// marker consumes and returns the next byte that is not padding.
func (r *ubjReader) marker() (byte, error) {
	for r.at < len(r.data) {
		c := r.data[r.at]
		r.at++
		if c != 'N' {
			return c, nil
		}
	}
	return 0, errEnd
}

// bytes consumes and returns the next n bytes.
func (r *ubjReader) bytes(n int) ([]byte, error) {
	if n > len(r.data)-r.at {
		return nil, errEnd
	}
	r.at += n
	return r.data[r.at-n : r.at], nil
}

// width returns the number of bytes of a number, or 0 if the marker is not that of a number.
func width(marker byte) int {
	switch marker {
	case 'i', 'U':
		return 1
	case 'I':
		return 2
	case 'l', 'd':
		return 4
	case 'L', 'D':
		return 8
	}
	return 0
}

// number returns the number that has the type of marker and the bytes b.
func number(marker byte, b []byte) float64 {
	switch marker {
	case 'i':
		return float64(int8(b[0]))
	case 'U':
		return float64(b[0])
	case 'I':
		return float64(int16(binary.BigEndian.Uint16(b)))
	case 'l':
		return float64(int32(binary.BigEndian.Uint32(b)))
	case 'L':
		return float64(int64(binary.BigEndian.Uint64(b)))
	case 'd':
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// length reads a length, which consists of the marker of an integer type and the integer. Each
// counted element takes at least least bytes. It is an error if the rest of the file is too
// short for so many elements.
func (r *ubjReader) length(least int) (int, error) {
	c, err := r.marker()
	if err != nil {
		return 0, err
	}
	if w := width(c); w == 0 || c == 'd' || c == 'D' {
		return 0, fmt.Errorf("found %q, want the type of a length", c)
	}
	b, err := r.bytes(width(c))
	if err != nil {
		return 0, err
	}
	n := number(c, b)
	if n < 0 || n > float64((len(r.data)-r.at)/least) {
		return 0, fmt.Errorf("a length is %.0f, and %d bytes are left", n, len(r.data)-r.at)
	}
	return int(n), nil
}

func (r *ubjReader) value(marker byte, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	if w := width(marker); w > 0 {
		b, err := r.bytes(w)
		if err != nil {
			return nil, err
		}
		return number(marker, b), nil
	}
	switch marker {
	case '{':
		return r.object(depth)
	case '[':
		return r.array(depth)
	case 'S':
		return r.string()
	case 'T':
		return true, nil
	case 'F':
		return false, nil
	case 'Z':
		return nil, nil
	case 'C':
		b, err := r.bytes(1)
		if err != nil {
			return nil, err
		}
		return float64(b[0]), nil
	}
	return nil, fmt.Errorf("no value begins with %q", marker)
}

func (r *ubjReader) string() (string, error) {
	n, err := r.length(1)
	if err != nil {
		return "", err
	}
	b, err := r.bytes(n)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", errors.New("the text is not UTF-8")
	}
	return string(b), nil
}

func (r *ubjReader) object(depth int) (any, error) {
	made := map[string]any{}
	for {
		c, err := r.marker()
		switch {
		case err != nil:
			return nil, err
		case c == '}':
			return made, nil
		case c == '$' || c == '#':
			return nil, errors.New("objects with a type or a count are not read")
		}
		r.at-- // the marker is part of the length of a key
		key, err := r.string()
		if err != nil {
			return nil, err
		}
		if _, ok := made[key]; ok {
			return nil, fmt.Errorf("the member %s occurs twice", shorten(key))
		}
		if c, err = r.marker(); err != nil {
			return nil, err
		}
		if made[key], err = r.value(c, depth+1); err != nil {
			return nil, err
		}
	}
}

func (r *ubjReader) array(depth int) (any, error) {
	c, err := r.marker()
	if err != nil {
		return nil, err
	}
	left := -1 // number of remaining elements; negative means that ] ends the array
	switch c {
	case '$':
		return r.typed()
	case '#':
		if left, err = r.length(1); err != nil {
			return nil, err
		}
	default:
		r.at--
	}
	numbers := []float64{}
	var list []any
	for ; left != 0; left-- {
		c, err := r.marker()
		if err != nil {
			return nil, err
		}
		if c == ']' && left < 0 {
			break
		}
		v, err := r.value(c, depth+1)
		if err != nil {
			return nil, err
		}
		if number, ok := asNumber(v); ok && list == nil {
			numbers = append(numbers, number)
			continue
		}
		if list == nil {
			list = mixed(numbers)
		}
		list = append(list, v)
	}
	if list != nil {
		return list, nil
	}
	return numbers, nil
}

// typed reads an array of numbers of one type.
func (r *ubjReader) typed() (any, error) {
	b, err := r.bytes(2)
	if err != nil {
		return nil, err
	}
	w := width(b[0])
	if w == 0 || b[1] != '#' {
		return nil, fmt.Errorf("an array has the type %q and %q behind it: want a type of numbers and a count", b[0], b[1])
	}
	n, err := r.length(w)
	if err != nil {
		return nil, err
	}
	made := make([]float64, n)
	for i := range made {
		made[i] = number(b[0], r.data[r.at:])
		r.at += w
	}
	return made, nil
}

// appendUBJSON appends a value in the form that XGBoost writes. All lengths have 64 bits, and
// the arrays of a tree's nodes are typed.
func appendUBJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendBinaryText(append(b, 'S'), v)
	case int:
		return binary.BigEndian.AppendUint64(append(b, 'L'), uint64(v))
	case []float32:
		b = appendHead(b, 'd', len(v))
		for _, x := range v {
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	case []int32:
		b = appendHead(b, 'l', len(v))
		for _, x := range v {
			b = binary.BigEndian.AppendUint32(b, uint32(x))
		}
		return b
	case []int64:
		b = appendHead(b, 'L', len(v))
		for _, x := range v {
			b = binary.BigEndian.AppendUint64(b, uint64(x))
		}
		return b
	case []uint8:
		return append(appendHead(b, 'U', len(v)), v...)
	case []int:
		return appendSeries(b, v)
	case []string:
		return appendSeries(b, v)
	case []any:
		return appendSeries(b, v)
	case float32:
		return binary.BigEndian.AppendUint32(append(b, 'd'), math.Float32bits(v))
	}
	b = append(b, '{')
	for _, m := range v.(members) {
		b = appendUBJSON(appendBinaryText(b, m.name), m.value)
	}
	return append(b, '}')
}

// appendHead appends the beginning of an array of n numbers of one type.
func appendHead(b []byte, marker byte, n int) []byte {
	return binary.BigEndian.AppendUint64(append(b, '[', '$', marker, '#', 'L'), uint64(n))
}

// appendSeries appends an array in which each element has its own type.
func appendSeries[T any](b []byte, list []T) []byte {
	b = binary.BigEndian.AppendUint64(append(b, '[', '#', 'L'), uint64(len(list)))
	for _, v := range list {
		b = appendUBJSON(b, any(v))
	}
	return b
}

func appendBinaryText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(append(b, 'L'), uint64(len(s))), s...)
}
