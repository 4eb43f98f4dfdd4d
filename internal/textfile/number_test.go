package textfile

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
)

// decimals draws texts that are numbers, or similar to numbers.
var decimals = rapid.OneOf(
	rapid.Map(rapid.Float64(), func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }),
	rapid.Map(rapid.Float64Range(-1e4, 1e4), func(x float64) string { return strconv.FormatFloat(x, 'f', 17, 64) }),
	rapid.StringMatching(`[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{0,4})?`),
	rapid.StringMatching(`[+-]?(0\.|[1-9]\.)[0-9]{14,18}`),
	rapid.StringMatching(`[+-]?9007199254740[0-9]{3,6}(\.[05]{1,3})?`),
	rapid.SampledFrom([]string{"", "-", ".", "1.", ".5", "-0", "nan", "NaN", "+inf", "-Infinity", "0x1p-2", "1_000", "1e", "1e+", "1e5x",
		"1e400", "-1e400", "1e-400", "18446744073709551615", "0.18446744073709551615", "1e22", "1e23", "9007199254740993e-1", "0e-9", "0.000",
		"1844674407370955161.5", "5e-324", "2.2250738585072011e-308"}),
)

func TestParseFloatIsStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := decimals.Draw(t, "text")
		want, wantErr := batch.ParseFloat([]byte(text), 64)
		got, err := parseFloat([]byte(text))
		require.Equal(t, wantErr, err, text)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s: %v and %v", text, want, got)
		if err == nil {
			direct, _ := strconv.ParseFloat(text, 64)
			require.Equal(t, math.Float64bits(direct), math.Float64bits(got), text)
		}
	})
}

// TestParseFloatRoundsHalfwayToEven tests numbers halfway between two floats, for which any
// rounding error changes the result.
func TestParseFloatRoundsHalfwayToEven(t *testing.T) {
	for _, text := range []string{"9007199254740993", "900719925474099.3", "9007199254740992.5", "9007199254740993.5", "4503599627370496.5",
		"4503599627370497.5", "1801439850948199.25", "1152921504606846.976", "0.5000000000000000001"} {
		want, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		got, err := parseFloat([]byte(text))
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), text)
	}
}

// TestParseFloatBesideHalfway tests numbers of 19 digits that are so close to the middle
// between two floats that only the remainder of the division shows on which side they are.
func TestParseFloatBesideHalfway(t *testing.T) {
	x, seen := uint64(12345), 0
	for range 20_000 {
		x = x*6364136223846793005 + 1442695040888963407
		middle := new(big.Int).SetUint64(x>>11 | 1<<53 | 1) // 54 bits, the last of which is 1
		k := int(x>>3%18) + 1
		// n is the first whole number of 19 digits above middle·10^k·2^shift.
		n := new(big.Int).Mul(middle, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil))
		shift := n.BitLen() - 63
		if shift > 0 {
			n.Rsh(n, uint(shift))
		} else {
			n.Lsh(n, uint(-shift))
		}
		for _, add := range []int64{0, 1} {
			digits := new(big.Int).Add(n, big.NewInt(add)).String()
			if len(digits) != 19 {
				continue
			}
			seen++
			text := digits[:19-k] + "." + digits[19-k:]
			want, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			got, err := parseFloat([]byte(text))
			require.NoError(t, err)
			if math.Float64bits(want) != math.Float64bits(got) {
				require.Failf(t, "the bits must equal the result of strconv", "%s: %v and %v", text, want, got)
			}
		}
	}
	require.Greater(t, seen, 10_000)
}

func TestParseIntAndBoolAreThoseOfBatch(t *testing.T) {
	mem := memory.NewGoAllocator()
	ints, bools := array.NewInt64Builder(mem), array.NewBooleanBuilder(mem)
	defer ints.Release()
	defer bools.Release()
	texts := rapid.OneOf(decimals,
		rapid.StringMatching(`[+-]?0{0,3}(922337203685477580|1844674407370955161)[0-9]{0,3}`),
		rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) }),
		rapid.SampledFrom([]string{"true", "True", "TRUE", "tRUE", "false", "0", "1", "t", "yes", "-9223372036854775808", "9223372036854775808", "12x",
			"99999999999999999999999x"}))
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(texts.Draw(t, "text"))
		wantErr := batch.ParseInto(ints, text)
		got, err := parseInt(text)
		require.Equal(t, wantErr == nil, err == nil, "%s: %v and %v", text, wantErr, err)
		if err == nil {
			require.Equal(t, ints.Value(ints.Len()-1), got)
		}
		wantErr = batch.ParseInto(bools, text)
		truth, err := parseBool(text)
		require.Equal(t, wantErr == nil, err == nil, "%s: %v and %v", text, wantErr, err)
		if err == nil {
			require.Equal(t, bools.Value(bools.Len()-1), truth)
		}
	})
}
