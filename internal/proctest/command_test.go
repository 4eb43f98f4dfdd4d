//go:build linux

package proctest

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// roleVariable is the environment variable that says what the test binary does in place of running
// the tests.
const roleVariable = "SUPERSTEP_PROCTEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "parent":
		parent()
	case "child":
		// The child runs until it is killed. It does not read its standard input, so it does
		// not notice when the input ends.
		os.Stdout.WriteString("up\n")
		select {}
	case "echo":
		os.Stdout.WriteString("out " + os.Getenv("GORACE"))
		os.Stderr.WriteString("err")
		os.Exit(3)
	default:
		os.Exit(m.Run())
	}
}

// parent starts a child, and then ends in the way that a line of its standard input names.
func parent() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	child := Command(self)
	child.Env = append(os.Environ(), roleVariable+"=child")
	child.Stdout = os.Stdout
	if err := child.Start(); err != nil {
		panic(err)
	}
	order, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.TrimSpace(order) {
	case "panic":
		panic("as told")
	case "exit":
		os.Exit(1)
	case "stop":
		_ = syscall.Kill(child.Process.Pid, syscall.SIGSTOP)
		os.Exit(1)
	}
}

// parentWithPipes returns a command that runs parent, with its standard input and output. The
// command is not started yet.
func parentWithPipes(t *testing.T) (p *Cmd, in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p = Command(self)
	p.Env = append(os.Environ(), roleVariable+"=parent")
	in, err = p.StdinPipe()
	require.NoError(t, err)
	out, err = p.StdoutPipe()
	require.NoError(t, err)
	return p, in, out
}

// TestChildrenEndWithTheirParent ends a process in every way in which it runs no cleanup, and
// requires that its child ends too. The test sees that because the output, to which both processes
// write, ends only when both have ended.
func TestChildrenEndWithTheirParent(t *testing.T) {
	for _, end := range []string{"panic", "exit", "stop", "kill"} {
		t.Run(end, func(t *testing.T) {
			p, in, out := parentWithPipes(t)
			require.NoError(t, p.Start())
			lines := bufio.NewReader(out)
			said, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "up\n", said)
			if end == "kill" {
				require.NoError(t, p.Process.Kill())
			} else {
				_, err = io.WriteString(in, end+"\n")
				require.NoError(t, err)
			}
			_, err = io.Copy(io.Discard, lines)
			require.NoError(t, err)
			require.Error(t, p.Wait())
		})
	}
}

// TestAnEndingThreadEndsNoChild calls Start in a goroutine whose thread ends with it. It requires
// that the program still runs afterwards.
func TestAnEndingThreadEndsNoChild(t *testing.T) {
	p, in, out := parentWithPipes(t)
	started := make(chan error)
	tid := 0
	var start func()
	start = func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		if tid = syscall.Gettid(); tid == os.Getpid() {
			go start() // the main thread never ends: try again on another thread
			select {}
		}
		started <- p.Start()
	}
	go start()
	require.NoError(t, <-started)
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "up\n", said)
	for unix.Tgkill(os.Getpid(), tid, 0) == nil {
		runtime.Gosched()
	}
	_, err = io.WriteString(in, "exit\n")
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.Error(t, p.Wait())
	require.Equal(t, 1, p.ProcessState.ExitCode(), "the process must exit by itself, not be killed by the signal")
}

func TestOutput(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(roleVariable, "echo")
	out, err := CommandContext(t.Context(), self).CombinedOutput()
	require.ErrorContains(t, err, "exit status 3")
	require.Equal(t, "out atexit_sleep_ms=0err", string(out))
	t.Setenv("GORACE", "history_size=3")
	out, err = Command(self).Output()
	require.Error(t, err)
	require.Equal(t, "out history_size=3", string(out), "GORACE must not be changed if it is set")
	_, err = Command("/no/such/program").CombinedOutput()
	require.ErrorIs(t, err, os.ErrNotExist)
}
