package peak

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	n, err := parse("VmPeak:\t  900 kB\nVmHWM:\t   1234 kB\nVmRSS:\t 7 kB\n")
	require.NoError(t, err)
	require.Equal(t, int64(1234*1024), n)
	for _, bad := range []string{"", "VmRSS: 7 kB\n", "VmHWM: 12 MB\n", "VmHWM: x kB\n"} {
		_, err := parse(bad)
		require.Error(t, err, bad)
	}
}

// TestRSS holds memory and looks whether it shows.
func TestRSS(t *testing.T) {
	if runtime.GOOS != "linux" {
		_, err := RSS()
		require.Error(t, err)
		return
	}
	const size = 64 << 20
	before, err := RSS()
	require.NoError(t, err)
	held := make([]byte, before+size)
	for i := range held {
		held[i] = byte(i)
	}
	after, err := RSS()
	require.NoError(t, err)
	require.Greater(t, after, before+size/2)
	runtime.KeepAlive(held)
}
