package textfile

import (
	"errors"
	"math"
	"unsafe"

	"github.com/superstep-ml/superstep/internal/batch"
)

var (
	errNotWhole = errors.New("it is not a whole number")
	errRange    = errors.New("it is out of range")
	errNotBool  = errors.New("it is neither true nor false")
)

// pow10 are the powers of ten that are exact as float64.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseFloat reads a decimal number, "inf", "infinity" or "nan" in any case. A
// number of at most 53 bits times or over an exact power of ten needs a single
// rounding and so is exact at once (Clinger, "How to Read Floating Point
// Numbers Accurately", 1990); the rest is left to batch.ParseFloat, which
// gives the same bits for all.
func parseFloat(b []byte) (float64, error) {
	i, neg := 0, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		i = 1
	}
	var mant uint64
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	digits, exp := i-first, 0
	if i < len(b) && b[i] == '.' {
		i++
		point := i
		for i < len(b) && b[i]-'0' <= 9 {
			mant = mant*10 + uint64(b[i]-'0')
			i++
		}
		exp = point - i
		digits -= exp
	}
	// Up to 19 digits cannot have overflowed mant.
	if digits == 0 || digits > 19 || mant > 1<<53 {
		return batch.ParseFloat(b, 64)
	}
	if i < len(b) {
		e, ok := parseExponent(b[i:])
		if !ok {
			return batch.ParseFloat(b, 64)
		}
		exp += e
	}
	if exp < -22 || exp > 22 {
		return batch.ParseFloat(b, 64)
	}
	f := float64(mant)
	if exp < 0 {
		f /= pow10[-exp]
	} else {
		f *= pow10[exp]
	}
	if neg {
		f = -f
	}
	return f, nil
}

// parseExponent reads "e-7" and the like, of at most three digits.
func parseExponent(b []byte) (int, bool) {
	if b[0]|0x20 != 'e' {
		return 0, false
	}
	b = b[1:]
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 3 {
		return 0, false
	}
	e := 0
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		e = e*10 + int(c-'0')
	}
	if neg {
		e = -e
	}
	return e, true
}

// parseInt reads a decimal whole number with an optional sign.
func parseInt(b []byte) (int64, error) {
	i, neg := 0, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		i = 1
	}
	if i == len(b) {
		return 0, errNotWhole
	}
	var v uint64
	for _, c := range b[i:] {
		d := uint64(c - '0')
		if d > 9 {
			return 0, errNotWhole
		}
		if v > (math.MaxUint64-9)/10 {
			return 0, overflow(b[i:])
		}
		v = v*10 + d
	}
	switch {
	case neg && v <= 1<<63:
		return -int64(v), nil
	case !neg && v < 1<<63:
		return int64(v), nil
	}
	return 0, errRange
}

// overflow tells a number that is too long from text that begins with digits.
func overflow(b []byte) error {
	for _, c := range b {
		if c-'0' > 9 {
			return errNotWhole
		}
	}
	return errRange
}

// parseBool reads the spellings of batch.ParseInto.
func parseBool(b []byte) (bool, error) {
	switch string(b) {
	case "true", "True", "TRUE", "1":
		return true, nil
	case "false", "False", "FALSE", "0":
		return false, nil
	}
	return false, errNotBool
}

// isBoolWord says that b is a truth value which is not a number as well.
func isBoolWord(b []byte) bool {
	_, err := parseBool(b)
	return err == nil && len(b) > 1
}

// view is b as a string, valid as long as b is not modified.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
