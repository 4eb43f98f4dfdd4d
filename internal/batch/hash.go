package batch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"
)

// Hash applies xxh3 to the following encoding. Each value is a tag byte followed by a body, and
// the values of several columns are concatenated. All numbers are little endian.
//
//	null       0
//	bool       1, 8 bytes: 0 or 1
//	integer    2, 8 bytes: the value widened to 64 bits (sign-extended if signed)
//	float      3, 8 bytes: float64 bits; -0 as +0, every NaN as 0x7ff8000000000000
//	text       4, 8 bytes: the length, then the bytes (utf8 and binary)
//	date       5, 8 bytes: days since 1970
//	timestamp  6, 8 bytes: the stored count, in the column's unit
//
// So equal integers of different width have the same hash, and so do a float32 and the float64
// of the same value. The texts "a", "bc" and the texts "ab", "c" of two columns have different
// encodings. The encoding decides which shard a row belongs to, so the results of jobs depend
// on it, and it never changes.
const (
	tagNull byte = iota
	tagBool
	tagInteger
	tagFloat
	tagText
	tagDate
	tagTimestamp
)

const canonicalNaN = 0x7ff8000000000000

// CheckHashable returns an error unless all columns exist and have types that can be hashed,
// which are all types but vectors.
func CheckHashable(schema *arrow.Schema, cols []int) error {
	return checkKeys(schema, cols, "hash key")
}

func checkKeys(schema *arrow.Schema, cols []int, what string) error {
	for _, c := range cols {
		if c < 0 || c >= schema.NumFields() {
			return fmt.Errorf("%s: no column %d among %d columns", what, c, schema.NumFields())
		}
		f := schema.Field(c)
		if k := kindOf(f.Type); k == kindInvalid || k.isVector() {
			return fmt.Errorf("%s: column %q is %s; a key must be a bool, number, text, date or timestamp", what, f.Name, TypeName(f.Type))
		}
	}
	return nil
}

// Hash writes the hash of the given columns of every row to dst, which must have one element
// per row. The hash is xxh3 with seed 0 of the encoding above. Without columns, it is the hash
// of the empty string.
func Hash(rec arrow.Record, cols []int, dst []uint64) error {
	if int64(len(dst)) != rec.NumRows() {
		return fmt.Errorf("hash: %d places for %d rows", len(dst), rec.NumRows())
	}
	if err := CheckHashable(rec.Schema(), cols); err != nil {
		return err
	}
	views := make([]view, len(cols))
	for i, c := range cols {
		views[i] = viewOf(rec.Column(c))
	}
	var scratch [256]byte
	buf := scratch[:0]
	for row := range dst {
		buf = buf[:0]
		for i := range views {
			buf = appendKey(buf, &views[i], row)
		}
		dst[row] = xxh3.Hash(buf)
	}
	return nil
}

// Keys encodes the values in the key columns of rows of one batch.
type Keys struct{ views []view }

// Reset sets the batch, which is borrowed, and its key columns.
func (k *Keys) Reset(rec arrow.Record, cols []int) error {
	if err := CheckHashable(rec.Schema(), cols); err != nil {
		return err
	}
	k.views = k.views[:0]
	for _, c := range cols {
		k.views = append(k.views, viewOf(rec.Column(c)))
	}
	return nil
}

// Append appends the key of a row to dst. Equal keys have equal bytes, different keys different
// bytes, so the bytes can be a map key.
func (k *Keys) Append(dst []byte, row int) []byte {
	for i := range k.views {
		dst = appendKey(dst, &k.views[i], row)
	}
	return dst
}

func appendKey(dst []byte, v *view, row int) []byte {
	if v.valid != nil && v.null(row) {
		return append(dst, tagNull)
	}
	switch v.kind {
	case kindBool:
		var b uint64
		if v.bool(row) {
			b = 1
		}
		return appendTagged(dst, tagBool, b)
	case kindFloat64:
		return appendTagged(dst, tagFloat, floatKey(at[float64](v, row)))
	case kindFloat32:
		return appendTagged(dst, tagFloat, floatKey(float64(at[float32](v, row))))
	case kindString, kindBinary:
		text := v.text(row)
		return append(appendTagged(dst, tagText, uint64(len(text))), text...)
	case kindDate32:
		return appendTagged(dst, tagDate, uint64(v.integer(row)))
	case kindTimestamp:
		return appendTagged(dst, tagTimestamp, uint64(v.integer(row)))
	default:
		return appendTagged(dst, tagInteger, uint64(v.integer(row)))
	}
}

func appendTagged(dst []byte, tag byte, body uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, tag), body)
}

// floatKey returns the bits of x, with -0 replaced by +0, and every NaN by the same NaN. So
// equal floats have equal bits.
func floatKey(x float64) uint64 {
	switch {
	case x == 0:
		return 0
	case x != x:
		return canonicalNaN
	}
	return math.Float64bits(x)
}

// ShardOf returns the shard of a row with the given hash: the hash modulo shards, which must be
// positive.
func ShardOf(hash uint64, shards int) int { return int(hash % uint64(shards)) }
