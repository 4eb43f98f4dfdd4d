package batch

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// ParseInto appends the value written in text to a builder of a supported type. The whole text
// must be the value, without blanks around it, and a number must be in the range of its type.
// ParseInto never appends null: the caller decides which texts mean null. On error nothing is
// appended. The error contains the text; the caller should add the position.
//
// ParseInto accepts the texts that AppendValue writes, with the following additions. A bool may
// also be TRUE, True, FALSE, False, 1 or 0. A number may have a leading +. A timestamp may have
// a space instead of T, and no seconds; if the type has a zone, the text may have a zone
// offset, or no zone, which means UTC. A vector may have commas instead of spaces, and no
// brackets. ParseInto does not modify or retain text.
func ParseInto(builder array.Builder, text []byte) error {
	if err := parseInto(builder, text); err != nil {
		return fmt.Errorf("%s is not a %s: %w", quote(text), TypeName(builder.Type()), err)
	}
	return nil
}

var (
	errEmpty   = errors.New("it is empty")
	errSyntax  = errors.New("it has another form")
	errRange   = errors.New("it is out of range")
	errDecimal = errors.New("it is not a decimal number")
)

func parseInto(builder array.Builder, text []byte) error {
	switch b := builder.(type) {
	case *array.StringBuilder:
		b.BinaryBuilder.Append(text)
		return nil
	case *array.Float64Builder:
		x, err := ParseFloat(text, 64)
		if err == nil {
			b.Append(x)
		}
		return err
	case *array.Int64Builder:
		n, err := parseInt(text, math.MinInt64, math.MaxInt64)
		if err == nil {
			b.Append(n)
		}
		return err
	case *array.Float32Builder:
		x, err := ParseFloat(text, 32)
		if err == nil {
			b.Append(float32(x))
		}
		return err
	case *array.BooleanBuilder:
		v, err := parseBool(text)
		if err == nil {
			b.Append(v)
		}
		return err
	case *array.BinaryBuilder:
		raw, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
		if err == nil {
			b.Append(raw)
		}
		return err
	case *array.Date32Builder:
		return parseDateInto(b, text)
	case *array.TimestampBuilder:
		t, err := parseTimestamp(text, b.Type().(*arrow.TimestampType))
		if err == nil {
			b.Append(arrow.Timestamp(t))
		}
		return err
	}
	if done, err := parseSmallInt(builder, text); done {
		return err
	}
	return parseVectorInto(builder, text)
}

// parseSmallInt is ParseInto for the integer types other than int64. done is false for other
// types.
func parseSmallInt(builder array.Builder, text []byte) (done bool, err error) {
	switch b := builder.(type) {
	case *array.Int8Builder:
		return true, intInto(b.Append, text, math.MinInt8, math.MaxInt8)
	case *array.Int16Builder:
		return true, intInto(b.Append, text, math.MinInt16, math.MaxInt16)
	case *array.Int32Builder:
		return true, intInto(b.Append, text, math.MinInt32, math.MaxInt32)
	case *array.Uint8Builder:
		return true, intInto(b.Append, text, 0, math.MaxUint8)
	case *array.Uint16Builder:
		return true, intInto(b.Append, text, 0, math.MaxUint16)
	case *array.Uint32Builder:
		return true, intInto(b.Append, text, 0, math.MaxUint32)
	case *array.Uint64Builder:
		negative, n, err := parseDigits(text)
		if err == nil && negative && n > 0 {
			err = errRange
		}
		if err == nil {
			b.Append(n)
		}
		return true, err
	}
	return false, nil
}

func intInto[T int8 | int16 | int32 | uint8 | uint16 | uint32](add func(T), text []byte, least, most int64) error {
	n, err := parseInt(text, least, most)
	if err == nil {
		add(T(n))
	}
	return err
}

// parseInt returns a decimal integer, which must be from least to most.
func parseInt(text []byte, least, most int64) (int64, error) {
	negative, n, err := parseDigits(text)
	if err != nil {
		return 0, err
	}
	switch {
	case !negative && n <= uint64(most):
		return int64(n), nil
	case negative && n <= uint64(-(least+1))+1 && least < 0:
		return int64(-n), nil
	case negative && n == 0:
		return 0, nil
	}
	return 0, errRange
}

// parseDigits reads an optional sign and decimal digits. It returns whether the sign is -, and
// the absolute value.
func parseDigits(text []byte) (negative bool, n uint64, err error) {
	if len(text) == 0 {
		return false, 0, errEmpty
	}
	if text[0] == '-' || text[0] == '+' {
		negative, text = text[0] == '-', text[1:]
		if len(text) == 0 {
			return false, 0, errDecimal
		}
	}
	const cutoff = math.MaxUint64/10 - 1
	for i, c := range text {
		if !isDigit(c) {
			return false, 0, errDecimal
		}
		if n > cutoff {
			return parseLongDigits(negative, text, i, n)
		}
		n = n*10 + uint64(c-'0')
	}
	return negative, n, nil
}

// parseLongDigits continues parseDigits at text[i], with checks for overflow. n is the value of
// the digits text[:i].
func parseLongDigits(negative bool, text []byte, i int, n uint64) (bool, uint64, error) {
	overflow := false
	for _, c := range text[i:] {
		if !isDigit(c) {
			return false, 0, errDecimal
		}
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			overflow = true
			continue
		}
		n = n*10 + d
	}
	if overflow {
		return false, 0, errRange
	}
	return negative, n, nil
}

// ParseFloat returns the float of 32 or 64 bits that is nearest to a decimal number. A number
// too close to 0 becomes 0, and a number too large for the type is an error. The text may also
// be NaN, Inf or Infinity, in upper or lower case and with an optional sign. Hexadecimal floats
// and underscores, which strconv would accept, are errors.
func ParseFloat(text []byte, bits int) (float64, error) {
	if len(text) == 0 {
		return 0, errEmpty
	}
	for _, c := range text {
		if !isDigit(c) && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return parseFloatWord(text)
		}
	}
	x, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), bits)
	if err != nil {
		// The error of strconv refers to the bytes of the caller, so it is not returned.
		if errors.Is(err, strconv.ErrRange) {
			return 0, errRange
		}
		return 0, errDecimal
	}
	return x, nil
}

func parseFloatWord(text []byte) (float64, error) {
	word, sign := text, 1
	if text[0] == '-' || text[0] == '+' {
		word = text[1:]
		if text[0] == '-' {
			sign = -1
		}
	}
	switch {
	case foldEqual(word, "nan") && len(word) == len(text):
		return math.NaN(), nil
	case foldEqual(word, "inf") || foldEqual(word, "infinity"):
		return math.Inf(sign), nil
	}
	return 0, errDecimal
}

func foldEqual(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, c := range text {
		if c|0x20 != lower[i] {
			return false
		}
	}
	return true
}

func parseBool(text []byte) (bool, error) {
	switch string(text) {
	case "true", "TRUE", "True", "1":
		return true, nil
	case "false", "FALSE", "False", "0":
		return false, nil
	case "":
		return false, errEmpty
	}
	return false, errSyntax
}

func parseDateInto(b *array.Date32Builder, text []byte) error {
	days, rest, err := parseDate(text)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return errSyntax
	case days < math.MinInt32 || days > math.MaxInt32:
		return errRange
	}
	b.Append(arrow.Date32(days))
	return nil
}

// parseVectorInto handles the vector types. Components are parsed twice, once to check them and
// once to append them, so that the builder is unchanged after an error.
func parseVectorInto(builder array.Builder, text []byte) error {
	k := kindOf(builder.Type())
	if !k.isVector() {
		return fmt.Errorf("values of this type cannot be read from text")
	}
	bits := 64
	if k == kindVector32 || k == kindList32 {
		bits = 32
	}
	inner, err := vectorBody(text)
	if err != nil {
		return err
	}
	if k == kindSparse {
		return parseSparseInto(builder.(*array.StructBuilder), inner)
	}
	n := 0
	for rest := inner; len(rest) > 0; n++ {
		var item []byte
		item, rest = nextItem(rest)
		if _, err := ParseFloat(item, bits); err != nil {
			return fmt.Errorf("component %d, %s: %w", n, quote(item), err)
		}
	}
	if dim := dimOf(builder.Type()); dim > 0 && n != dim {
		return fmt.Errorf("it has %d components", n)
	}
	list := builder.(array.ListLikeBuilder)
	list.Append(true)
	for rest := inner; len(rest) > 0; {
		var item []byte
		item, rest = nextItem(rest)
		x, _ := ParseFloat(item, bits)
		switch b := list.ValueBuilder().(type) {
		case *array.Float64Builder:
			b.Append(x)
		case *array.Float32Builder:
			b.Append(float32(x))
		}
	}
	return nil
}

// vectorBody returns text without outer blanks and brackets.
func vectorBody(text []byte) ([]byte, error) {
	text = trimBlanks(text)
	if len(text) == 0 {
		return nil, errEmpty
	}
	if text[0] != '[' {
		return text, nil
	}
	if text[len(text)-1] != ']' {
		return nil, errors.New("it has no closing bracket")
	}
	return trimBlanks(text[1 : len(text)-1]), nil
}

func trimBlanks(s []byte) []byte { return bytes.Trim(s, " \t") }

// nextItem returns the first component of s, and the rest after the separator, which is blanks
// or a comma with optional blanks around it. After a trailing comma the last item is empty,
// which the caller reports as an error.
func nextItem(s []byte) (item, rest []byte) {
	end := bytes.IndexAny(s, " \t,")
	if end < 0 {
		return s, nil
	}
	item, rest = s[:end], bytes.TrimLeft(s[end:], " \t")
	if len(rest) > 0 && rest[0] == ',' {
		rest = bytes.TrimLeft(rest[1:], " \t")
		if len(rest) == 0 {
			return nil, nil
		}
	}
	return item, rest
}

func parseSparseInto(b *array.StructBuilder, inner []byte) error {
	size, last, n := sparseSize(b.Type()), int64(-1), 0
	for rest := inner; len(rest) > 0; n++ {
		var item []byte
		item, rest = nextItem(rest)
		i, _, err := parsePair(item)
		switch {
		case err != nil:
			return fmt.Errorf("component %d, %s: %w", n, quote(item), err)
		case i <= last:
			return fmt.Errorf("index %d after %d; indices must ascend", i, last)
		case size > 0 && i >= int64(size):
			return fmt.Errorf("index %d is not below the size", i)
		}
		last = i
	}
	indices, values := b.FieldBuilder(0).(*array.ListBuilder), b.FieldBuilder(1).(*array.ListBuilder)
	b.Append(true)
	indices.Append(true)
	values.Append(true)
	for rest := inner; len(rest) > 0; {
		var item []byte
		item, rest = nextItem(rest)
		i, x, _ := parsePair(item)
		indices.ValueBuilder().(*array.Int32Builder).Append(int32(i))
		values.ValueBuilder().(*array.Float64Builder).Append(x)
	}
	return nil
}

// parsePair parses index:value.
func parsePair(item []byte) (int64, float64, error) {
	colon := bytes.IndexByte(item, ':')
	if colon < 0 {
		return 0, 0, errors.New("it is not index:value")
	}
	i, err := parseInt(item[:colon], 0, math.MaxInt32)
	if err != nil {
		return 0, 0, err
	}
	x, err := ParseFloat(item[colon+1:], 64)
	return i, x, err
}
