package textfile

import (
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/superstep-ml/superstep/internal/batch"
)

var (
	errNotWhole = errors.New("it is not a whole number")
	errRange    = errors.New("it is out of range")
	errNotBool  = errors.New("it is neither true nor false")
	errNaN      = errors.New("it is not a number")
)

// pow10 are the powers of ten that are exact as float64.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// whole10 are the powers of ten that fit 64 bits.
var whole10 = [...]uint64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// parseFloat reads a decimal number, "inf", "infinity" or "nan" in any case. A number of at
// most 53 bits times or over an exact power of ten needs a single rounding and so is exact at
// once (Clinger, "How to Read Floating Point Numbers Accurately", 1990); one of up to 19 digits
// over a power that fits in 64 bits is divided as an integer. The rest is left to
// batch.ParseFloat, which gives the same bits in all cases.
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
	if digits == 0 || digits > 19 {
		return batch.ParseFloat(b, 64)
	}
	if i < len(b) {
		e, ok := parseExponent(b[i:])
		if !ok {
			return batch.ParseFloat(b, 64)
		}
		exp += e
	}
	var f float64
	switch {
	case mant <= 1<<53 && 0 <= exp && exp <= 22:
		f = float64(mant) * pow10[exp]
	case mant <= 1<<53 && -22 <= exp && exp < 0:
		f = float64(mant) / pow10[-exp]
	case -19 <= exp && exp < 0:
		f = quotient(mant, -exp)
	default:
		return batch.ParseFloat(b, 64)
	}
	if neg {
		f = -f
	}
	return f, nil
}

// parseNumber is parseFloat for columns in which a NaN is a missing value.
func parseNumber(b []byte) (float64, error) {
	f, err := parseFloat(b)
	if f != f {
		err = errNaN
	}
	return f, err
}

// quotient returns mant / 10^k, correctly rounded, for mant > 0 and 1 <= k <= 19. Both are
// shifted to 64 significant bits and divided as integers. This gives at least 62 bits of
// quotient, and a last bit that says whether there is a remainder: enough for a single rounding
// to 53 bits.
func quotient(mant uint64, k int) float64 {
	divisor := whole10[k]
	a, b := bits.LeadingZeros64(mant), bits.LeadingZeros64(divisor)
	m := mant << a
	q, rest := bits.Div64(m>>1, m<<63, divisor<<b)
	if rest != 0 {
		q |= 1
	}
	// The scale is a power of two far from the ends of the exponent's range.
	return float64(q) * math.Float64frombits(uint64(1023+b-a-63)<<52)
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

// overflow distinguishes a number that is too long from text that begins with digits.
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

// isBoolWord reports whether b is a truth value that is not also a number.
func isBoolWord(b []byte) bool {
	_, err := parseBool(b)
	return err == nil && len(b) > 1
}

// view returns b as a string, valid as long as b is not modified.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
