package usage

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParsePeak(t *testing.T) {
	n, err := parsePeak("VmPeak:\t  900 kB\nVmHWM:\t   1234 kB\nVmRSS:\t 7 kB\n")
	require.NoError(t, err)
	require.Equal(t, int64(1234*1024), n)
	for _, bad := range []string{"", "VmRSS: 7 kB\n", "VmHWM: 12 MB\n", "VmHWM: x kB\n"} {
		_, err := parsePeak(bad)
		require.Error(t, err, bad)
	}
}

// TestPeakRSS holds memory and looks whether it shows.
func TestPeakRSS(t *testing.T) {
	if runtime.GOOS != "linux" {
		_, err := PeakRSS()
		require.Error(t, err)
		return
	}
	const size = 64 << 20
	before, err := PeakRSS()
	require.NoError(t, err)
	held := make([]byte, before+size)
	for i := range held {
		held[i] = byte(i)
	}
	after, err := PeakRSS()
	require.NoError(t, err)
	require.Greater(t, after, before+size/2)
	runtime.KeepAlive(held)
}

// TestCPU: one goroutine at work uses about as much time as passes, never more
// than all processors have.
func TestCPU(t *testing.T) {
	before, began := CPU(), time.Now()
	x := uint64(1)
	for time.Since(began) < 50*time.Millisecond {
		for range 10_000 {
			x = x*6364136223846793005 + 1
		}
	}
	used, passed := CPU()-before, time.Since(began)
	runtime.KeepAlive(x)
	if used == 0 {
		t.Log("this system does not tell processor time")
		return
	}
	require.Positive(t, used)
	require.LessOrEqual(t, used, time.Duration(runtime.NumCPU()+1)*passed)
}
