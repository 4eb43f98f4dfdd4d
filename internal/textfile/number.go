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

// pow10 has the powers of ten that float64 represents exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// whole10 has the powers of ten that fit in 64 bits.
var whole10 = [...]uint64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// parseFloat parses a decimal number, "inf", "infinity" or "nan", in upper or lower case. If
// the digits form an integer of at most 53 bits, one multiplication or division by a power of
// ten that float64 represents exactly gives the correctly rounded result (Clinger, "How to Read
// Floating Point Numbers Accurately", 1990). Up to 19 digits with a divisor that fits in 64
// bits are divided as integers. All other numbers are left to batch.ParseFloat, which gives the
// same bits in all cases.
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
	// Up to 19 digits cannot overflow mant.
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

// parseNumber is parseFloat for columns in which a NaN is a missing value: it returns errNaN
// for a NaN.
func parseNumber(b []byte) (float64, error) {
	f, err := parseFloat(b)
	if f != f {
		err = errNaN
	}
	return f, err
}

// quotient returns mant / 10^k, correctly rounded, for mant > 0 and 1 <= k <= 19. Both numbers
// are shifted to 64 significant bits and divided as integers. The quotient has at least 62
// bits, and its last bit is set if there is a remainder. So a single rounding to 53 bits is
// correct.
func quotient(mant uint64, k int) float64 {
	divisor := whole10[k]
	a, b := bits.LeadingZeros64(mant), bits.LeadingZeros64(divisor)
	m := mant << a
	q, rest := bits.Div64(m>>1, m<<63, divisor<<b)
	if rest != 0 {
		q |= 1
	}
	// The factor is a power of two. Its exponent is far from the ends of the range of float64,
	// so the product is exact.
	return float64(q) * math.Float64frombits(uint64(1023+b-a-63)<<52)
}

// parseExponent parses an exponent of at most three digits, such as "e-7".
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

// parseInt parses a decimal whole number with an optional sign.
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

// overflow returns the error for text with too many digits: it is a number out of range, or
// text that begins with digits.
func overflow(b []byte) error {
	for _, c := range b {
		if c-'0' > 9 {
			return errNotWhole
		}
	}
	return errRange
}

// parseBool parses the spellings of bool that batch.ParseInto accepts.
func parseBool(b []byte) (bool, error) {
	switch string(b) {
	case "true", "True", "TRUE", "1":
		return true, nil
	case "false", "False", "FALSE", "0":
		return false, nil
	}
	return false, errNotBool
}

// isBoolWord reports whether b is a bool that is not written as a number (0 or 1).
func isBoolWord(b []byte) bool {
	_, err := parseBool(b)
	return err == nil && len(b) > 1
}

// view returns b as a string, which is valid as long as b is not modified.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
