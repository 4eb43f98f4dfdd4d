package humanize

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1023.9 KiB", 64 << 20: "64 MiB", 64<<20 + 1: "64.0 MiB",
		1536 << 20: "1.5 GiB", 1<<40 - 1: "1023.9 GiB", math.MaxInt64: "7.9 EiB", -5: "-5 B",
	} {
		require.Equal(t, want, Bytes(n))
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, " 10 ": 10, "0.1b": 0, "1k": 1000, "1KB": 1000, "1kib": 1024, "512 MiB": 512 << 20, "1.5g": 1_500_000_000, "2TiB": 2 << 40} {
		n, ok := ParseBytes(text)
		require.True(t, ok, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "GB", "-1", "1 parsec", "1e400", "1e30", "NaN", "Inf", "9999999TiB", "1..2"} {
		_, ok := ParseBytes(text)
		require.False(t, ok, text)
	}
}

func TestCount(t *testing.T) {
	require.Equal(t, []string{"0 slots", "1 slot", "2 slots"}, []string{Count(0, "slot"), Count(1, "slot"), Count(int64(2), "slot")})
	require.Equal(t, []string{"1 row has", "2 rows have"}, []string{CountOf(1, "row has", "rows have"), CountOf(2, "row has", "rows have")})
}

func TestList(t *testing.T) {
	require.Empty(t, List(nil, ", ", 2))
	require.Equal(t, "a, b", List([]string{"a", "b"}, ", ", 2))
	require.Equal(t, "a; b and 2 more", List([]string{"a", "b", "c", "d"}, "; ", 2))
	require.Equal(t, `"a" and "b\n"`, Quoted([]string{"a", "b\n"}, " and "))
	require.Equal(t, `"x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x" and 1 more`, Quoted(slices.Repeat([]string{"x"}, 13), ", "))
}
