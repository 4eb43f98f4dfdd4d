package batch

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
)

// FormatValue returns the text of one value, as AppendValue writes it.
func FormatValue(arr arrow.Array, row int) string { return string(AppendValue(nil, arr, row)) }

// AppendValue appends the text of one value to dst, and allocates nothing if the capacity of
// dst suffices. ParseInto reads the same value from the text, except that every NaN becomes
// math.NaN(). The texts are:
//
//	null         nothing
//	bool         true, false
//	integers     decimal
//	floats       the shortest decimal that reads back exactly, with an exponent
//	             below 1e-4 and from 1e21 on; NaN, +Inf, -Inf
//	utf8         as it is
//	binary       base64, standard alphabet with padding
//	date32       2006-01-02
//	timestamp    RFC 3339 in UTC, with as many decimals as needed;
//	             without Z if the type has no time zone
//	vectors      [1 2.5 3]
//	sparse       [0:1 7:2.5], index:value
//
// For columns of other types, the text is the text that Arrow gives.
func AppendValue(dst []byte, arr arrow.Array, row int) []byte {
	v := viewOf(arr)
	if v.kind == kindInvalid {
		return append(dst, arr.ValueStr(row)...)
	}
	return v.appendValue(dst, row)
}

// Printer appends texts of the values of one column. It is faster than AppendValue in a loop,
// because it prepares the access to the column only once.
type Printer struct{ v view }

// NewPrinter returns a printer for a column of a supported type. The column is borrowed.
func NewPrinter(arr arrow.Array) Printer { return Printer{viewOf(arr)} }

// Null reports whether the value of a row is null.
func (p *Printer) Null(row int) bool { return p.v.null(row) }

// Append appends the text of the value in a row to dst.
func (p *Printer) Append(dst []byte, row int) []byte { return p.v.appendValue(dst, row) }

func (v *view) appendValue(dst []byte, row int) []byte {
	if v.null(row) {
		return dst
	}
	switch v.kind {
	case kindBool:
		return strconv.AppendBool(dst, v.bool(row))
	case kindUint64:
		return strconv.AppendUint(dst, at[uint64](v, row), 10)
	case kindFloat32:
		return appendFloat(dst, float64(at[float32](v, row)), 32)
	case kindFloat64:
		return appendFloat(dst, at[float64](v, row), 64)
	case kindString:
		return append(dst, v.text(row)...)
	case kindBinary:
		return base64.StdEncoding.AppendEncode(dst, v.text(row))
	case kindDate32:
		return appendDate(dst, v.integer(row))
	case kindTimestamp:
		return appendTimestamp(dst, v.integer(row), v.dt.(*arrow.TimestampType))
	case kindVector, kindList:
		return appendDense(dst, v.dense64(row), 64)
	case kindVector32, kindList32:
		return appendDense(dst, v.dense32(row), 32)
	case kindSparse:
		indices, values := v.sparse(row)
		return appendSparse(dst, indices, values)
	case kindInvalid:
		return dst
	default:
		return strconv.AppendInt(dst, v.integer(row), 10)
	}
}

func appendFloat(dst []byte, x float64, bits int) []byte {
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, x, format, -1, bits)
}

func appendDense[F float32 | float64](dst []byte, values []F, bits int) []byte {
	dst = append(dst, '[')
	for i, x := range values {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendFloat(dst, float64(x), bits)
	}
	return append(dst, ']')
}

func appendSparse(dst []byte, indices []int32, values []float64) []byte {
	dst = append(dst, '[')
	for k, i := range indices {
		if k > 0 {
			dst = append(dst, ' ')
		}
		dst = append(strconv.AppendInt(dst, int64(i), 10), ':')
		dst = appendFloat(dst, values[k], 64)
	}
	return append(dst, ']')
}
