package benchresult

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	var got []Line
	err := Read(strings.NewReader("chatter\n\n"+`{"collective":"allreduce","p50_us":12.5,"more":[1]}`+"\n"+`{"raw_gbs":3}`),
		func(l *Line) error { got = append(got, *l); return nil })
	require.NoError(t, err)
	require.Equal(t, []Line{{Collective: "allreduce", P50: 12.5}, {}}, got)
	require.ErrorContains(t, Read(strings.NewReader("\n{"), nil), "line 2: unexpected end")
	require.EqualError(t, Read(strings.NewReader("{}"), func(*Line) error { return errors.New("no") }), "line 1: no")
	require.ErrorContains(t, Read(strings.NewReader("{"+strings.Repeat("1", 2e6)), nil), "too long")
}

func TestMedian(t *testing.T) {
	require.Zero(t, Median(nil))
	x := []float64{9, 1, 4}
	require.Equal(t, 4.0, Median(x))
	require.Equal(t, []float64{9, 1, 4}, x, "Median must not change its argument")
	require.Equal(t, 2.5, Median([]float64{9, 1, 4, 0}))
}

func TestSizeAndDuration(t *testing.T) {
	for bytes, want := range map[int]string{8: "8 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 11 << 10: "11 KiB", 3 << 19: "1.5 MiB", 64 << 20: "64 MiB", 1 << 30: "1 GiB"} {
		require.Equal(t, want, Size(bytes))
	}
	for seconds, want := range map[float64]string{1.6e-7: "0.16 µs", 8.51e-5: "85.1 µs", 2.5e-5: "25.0 µs", 1.234e-3: "1.23 ms", 0.1234: "123 ms", 2.05: "2.05 s"} {
		require.Equal(t, want, Duration(seconds))
	}
}
