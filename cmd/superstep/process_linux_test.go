package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// underWay is a running command and the processes of its ranks.
type underWay struct {
	*proctest.Cmd
	out    io.ReadCloser
	errOut strings.Builder
	temp   string // the directory for its temporary files
	ranks  []int  // process ids of the ranks other than 0
}

// begin starts the command with three ranks and waits for its first result.
func begin(t *testing.T) *underWay {
	self, err := os.Executable()
	require.NoError(t, err)
	u := &underWay{temp: t.TempDir()}
	u.Cmd = proctest.Command(self, "bench", "collective", "-p", "3", "-b", "8", "-e", "1G", "-f", "2", "-n", "300", "--json")
	u.Env = append(os.Environ(), "SUPERSTEP_TEST_COMMAND=1", "TMPDIR="+u.temp)
	u.Stderr = &u.errOut
	u.out, err = u.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, u.Start())
	_, err = bufio.NewReaderSize(u.out, 16).ReadString('\n')
	require.NoError(t, err)
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", u.Process.Pid))
	require.NoError(t, err)
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", u.Process.Pid, thread.Name()))
		require.NoError(t, err)
		for _, pid := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			u.ranks = append(u.ranks, n)
		}
	}
	require.Len(t, u.ranks, 2)
	return u
}

// requireOver requires that the command fails, its ranks end, and no temporary files remain.
func (u *underWay) requireOver(t *testing.T) {
	_, _ = io.Copy(io.Discard, u.out)
	require.Error(t, u.Wait())
	require.Eventually(t, func() bool {
		for _, pid := range u.ranks {
			if gone(pid) {
				continue
			}
			return false
		}
		return true
	}, 30*time.Second, 10*time.Millisecond, "some of the processes %v of ranks have not ended", u.ranks)
	left, err := os.ReadDir(u.temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// gone reports whether a process has ended. A zombie counts as ended.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

func TestInterruptionsLeaveNothing(t *testing.T) {
	u := begin(t)
	require.NoError(t, u.Process.Signal(os.Interrupt))
	u.requireOver(t)
	require.Equal(t, 1, u.ProcessState.ExitCode(), u.errOut.String())
	require.Equal(t, 1, strings.Count(u.errOut.String(), "\n"), u.errOut.String())
	require.Contains(t, u.errOut.String(), "interrupt")
}

func TestAReaderThatHasEnough(t *testing.T) {
	u := begin(t)
	require.NoError(t, u.out.Close())
	u.requireOver(t)
	require.Equal(t, 1, u.ProcessState.ExitCode(), u.errOut.String())
	require.NotContains(t, u.errOut.String(), "panic")
}

func TestRanksThatAreKilled(t *testing.T) {
	u := begin(t)
	require.NoError(t, syscall.Kill(u.ranks[0], syscall.SIGKILL))
	u.requireOver(t)
	require.Equal(t, 1, u.ProcessState.ExitCode(), u.errOut.String())
	require.Contains(t, u.errOut.String(), "rank")
	require.Equal(t, 1, strings.Count(u.errOut.String(), "\n"), "the error must be printed once, although two ranks see it: %s", u.errOut.String())
}

func TestRanksOfACommandThatIsKilled(t *testing.T) {
	u := begin(t)
	require.NoError(t, u.Process.Kill())
	u.requireOver(t)
}

// TestCauseOfRanks requires that causeOf adds the cause of the context, such as an interrupt,
// to an error that does not contain this cause.
func TestCauseOfRanks(t *testing.T) {
	interrupt, lost := errors.New("interrupt"), errors.New("rank 2 closed its connection")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, causeOf(ctx, nil))
	require.Equal(t, lost, causeOf(ctx, lost))
	cancel(interrupt)
	require.NoError(t, causeOf(ctx, nil))
	require.EqualError(t, causeOf(ctx, lost), "interrupt (rank 2 closed its connection)")
	require.Equal(t, interrupt, causeOf(ctx, interrupt))
}
