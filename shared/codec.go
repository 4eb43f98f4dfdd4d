package shared

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Codec turns the object of a key into bytes and back. The bytes are used for checkpoints, for
// moves between processes and for fingerprints.
//
// Append appends the bytes of v to dst and returns the extended slice. The same v always gives
// the same bytes. On error Append returns dst unchanged. Decode decodes src, which must be all
// the bytes that one call of Append appended; the result shares no memory with src. For any
// other src, Decode returns an error or a valid value, never panics, and allocates in
// proportion to len(src). Append and Decode may be called concurrently.
type Codec[T any] interface {
	Append(dst []byte, v T) ([]byte, error)
	Decode(src []byte) (T, error)
}

// Float64s returns the codec of []float64: the IEEE 754 bits of each element,
// little-endian, one after the other. An empty slice decodes as nil.
func Float64s() Codec[[]float64] { return float64s{} }

// Float32s returns the codec of []float32: the IEEE 754 bits of each element, little-endian, 4
// bytes each. An empty slice decodes as nil.
func Float32s() Codec[[]float32] { return float32s{} }

// Int64s returns the codec of []int64: two's complement, little-endian, 8 bytes
// each. An empty slice decodes as nil.
func Int64s() Codec[[]int64] { return int64s{} }

// Float64 returns the codec of one float64: its IEEE 754 bits, little-endian.
func Float64() Codec[float64] {
	return scalar[float64]{"float64", math.Float64bits, always(math.Float64frombits)}
}

// Int64 returns the codec of one int64 in 8 bytes, little-endian.
func Int64() Codec[int64] {
	return scalar[int64]{
		"int64",
		func(v int64) uint64 { return uint64(v) },
		func(w uint64) (int64, bool) { return int64(w), true },
	}
}

// Int returns the codec of one int in 8 bytes, little-endian, on 32-bit systems too. Decoding
// fails if the value does not fit an int of this system.
func Int() Codec[int] {
	return scalar[int]{
		"int",
		func(v int) uint64 { return uint64(int64(v)) },
		func(w uint64) (int, bool) { return int(w), int64(int(w)) == int64(w) },
	}
}

// Bool returns the codec of one bool: a byte, 0 or 1.
func Bool() Codec[bool] { return boolean{} }

// String returns the codec of one string: its bytes, which must be UTF-8.
func String() Codec[string] { return text{} }

type float64s struct{}

func (float64s) Append(dst []byte, v []float64) ([]byte, error) {
	dst, room := extend(dst, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(room[8*i:], math.Float64bits(x))
	}
	return dst, nil
}

func (float64s) Decode(src []byte) ([]float64, error) {
	n, err := elements("float64", src, 8)
	if n == 0 {
		return nil, err
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
	}
	return v, nil
}

type float32s struct{}

func (float32s) Append(dst []byte, v []float32) ([]byte, error) {
	dst, room := extend(dst, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(room[4*i:], math.Float32bits(x))
	}
	return dst, nil
}

func (float32s) Decode(src []byte) ([]float32, error) {
	n, err := elements("float32", src, 4)
	if n == 0 {
		return nil, err
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
	return v, nil
}

type int64s struct{}

func (int64s) Append(dst []byte, v []int64) ([]byte, error) {
	dst, room := extend(dst, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(room[8*i:], uint64(x))
	}
	return dst, nil
}

func (int64s) Decode(src []byte) ([]int64, error) {
	n, err := elements("int64", src, 8)
	if n == 0 {
		return nil, err
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
	}
	return v, nil
}

// scalar is the codec of a type T whose values are stored as one 8-byte word. toWord
// converts a value to its word. fromWord converts a word to its value, and returns false if no
// value of T has that word.
type scalar[T any] struct {
	name     string
	toWord   func(T) uint64
	fromWord func(uint64) (T, bool)
}

func (c scalar[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(dst, c.toWord(v)), nil
}

func (c scalar[T]) Decode(src []byte) (T, error) {
	var zero T
	if len(src) != 8 {
		return zero, fmt.Errorf("shared: decode %s: %d bytes, want 8", c.name, len(src))
	}
	w := binary.LittleEndian.Uint64(src)
	v, ok := c.fromWord(w)
	if !ok {
		return zero, fmt.Errorf("shared: decode %s: %#x does not fit", c.name, w)
	}
	return v, nil
}

// always adapts a conversion that is defined for every word to the signature of scalar.fromWord.
func always[T any](convert func(uint64) T) func(uint64) (T, bool) {
	return func(w uint64) (T, bool) { return convert(w), true }
}

type boolean struct{}

func (boolean) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolean) Decode(src []byte) (bool, error) {
	if len(src) != 1 || src[0] > 1 {
		return false, fmt.Errorf("shared: decode bool: % x: want one byte, 0 or 1", src[:min(len(src), 8)])
	}
	return src[0] == 1, nil
}

type text struct{}

func (text) Append(dst []byte, v string) ([]byte, error) {
	if !utf8.ValidString(v) {
		return dst, fmt.Errorf("shared: encode string: %.40q is not UTF-8", v)
	}
	return append(dst, v...), nil
}

func (text) Decode(src []byte) (string, error) {
	if !utf8.Valid(src) {
		return "", fmt.Errorf("shared: decode string: %.40q is not UTF-8", src)
	}
	return string(src), nil
}

// extend makes dst n bytes longer. It returns the longer slice, and its n new bytes as added.
func extend(dst []byte, n int) (extended, added []byte) {
	at := len(dst)
	if cap(dst)-at < n {
		grown := make([]byte, at, max(at+n, 2*cap(dst)))
		copy(grown, dst)
		dst = grown
	}
	dst = dst[:at+n]
	return dst, dst[at:]
}

// elements returns how many elements of width bytes src holds. It returns an error if the
// length of src is not a multiple of width.
func elements(name string, src []byte, width int) (int, error) {
	if len(src)%width != 0 {
		return 0, fmt.Errorf("shared: decode %ss: %d bytes are no multiple of %d", name, len(src), width)
	}
	return len(src) / width, nil
}
