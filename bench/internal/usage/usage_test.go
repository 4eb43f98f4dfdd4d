package usage

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// childVariable is the environment variable that makes this program a child process. Its value
// is the number of bytes that the child keeps resident.
const childVariable = "SUPERSTEP_USAGE_TEST_BYTES"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		allocate(n)
		return
	}
	os.Exit(m.Run())
}

// allocate keeps n bytes resident until it returns.
func allocate(n int) {
	held := make([]byte, n)
	for page := 0; page < n; page += 4096 {
		held[page] = 1
	}
	runtime.KeepAlive(held)
}

// TestPeakOf requires that the peak of a child is known if the child holds more memory than
// this process, and unknown otherwise.
func TestPeakOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("what this system reports is not known")
		return
	}
	allocate(64 << 20)
	own, err := PeakRSS()
	require.NoError(t, err)
	for _, size := range []int64{1, own + 64<<20} {
		child := proctest.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+strconv.FormatInt(size, 10))
		require.NoError(t, child.Run())
		peak := PeakOf(child.ProcessState)
		if size == 1 {
			require.Zero(t, peak)
			continue
		}
		require.Greater(t, peak, size)
		require.Less(t, peak, 100*size) // fails if the unit is wrong
	}
}

func TestParsePeak(t *testing.T) {
	n, err := parsePeak("VmPeak:\t  900 kB\nVmHWM:\t   1234 kB\nVmRSS:\t 7 kB\n")
	require.NoError(t, err)
	require.Equal(t, int64(1234*1024), n)
	for _, bad := range []string{"", "VmRSS: 7 kB\n", "VmHWM: 12 MB\n", "VmHWM: x kB\n"} {
		_, err := parsePeak(bad)
		require.Error(t, err, bad)
	}
}

// TestPeakRSS keeps memory resident and requires that the peak includes it.
func TestPeakRSS(t *testing.T) {
	if runtime.GOOS != "linux" {
		_, err := PeakRSS()
		require.Error(t, err)
		return
	}
	const size = 64 << 20
	before, err := PeakRSS()
	require.NoError(t, err)
	allocate(int(before + size))
	after, err := PeakRSS()
	require.NoError(t, err)
	require.Greater(t, after, before+size/2)
}

// TestCPU requires that the processor time of one busy goroutine is close to the wall time, and
// never larger than the wall time multiplied by the number of processors.
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
		t.Log("this system does not report processor time")
		return
	}
	require.Positive(t, used)
	require.LessOrEqual(t, used, time.Duration(runtime.NumCPU()+1)*passed)
}
