//go:build unix

package operators

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"golang.org/x/sys/unix"
)

const killedEnv = "SUPERSTEP_TEST_KILLED_AT"

// TestOutputsOfAKilledProcess sends SIGKILL to a process before one of the disk calls by which
// it makes its outputs visible. The next run must find either all outputs of the killed run or
// none.
func TestOutputsOfAKilledProcess(t *testing.T) {
	if at, err := strconv.Atoi(os.Getenv(killedEnv)); err == nil {
		outputs, err := strconv.Atoi(os.Getenv("OUTPUTS"))
		require.NoError(t, err)
		d := &testDisk{at: at, what: func() error {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}}
		j := multipleOutputs{dir: os.Getenv("DIR"), outputs: outputs, rows: 7}
		require.NoError(t, j.run(d))
		fmt.Println("lived", d.n)
		return
	}
	for _, outputs := range []int{1, 2, 40} {
		j := multipleOutputs{outputs: outputs, rows: 7, dir: t.TempDir()}
		whole := &testDisk{}
		require.NoError(t, j.run(whole))
		first := treeChecksums(t, j.dir)
		finished, undone := 0, 0
		for _, at := range killedAt(whole.n) {
			j.dir = t.TempDir()
			cmd := proctest.Command(os.Args[0], "-test.run=^TestOutputsOfAKilledProcess$")
			cmd.Env = append(os.Environ(), killedEnv+"="+strconv.Itoa(at), "OUTPUTS="+strconv.Itoa(outputs), "DIR="+j.dir)
			said, err := cmd.CombinedOutput()
			require.ErrorContains(t, err, "signal: killed", "%s", said)
			err = j.run(&testDisk{})
			if err == nil {
				undone++
			} else {
				finished++
				require.ErrorContains(t, err, "exists")
			}
			got := treeChecksums(t, j.dir)
			require.True(t, maps.Equal(first, got), "%d outputs, call %d: %v, %v", outputs, at, err, got)
		}
		require.NotZero(t, undone)
		require.NotZero(t, finished)
	}
}
