package collective_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// partVariable is an environment variable with a part in JSON. If it is set, the test binary
// runs as a process of a group.
const partVariable = "SUPERSTEP_TEST_PART"

// part is the task of one process of a group: it repeats one operation on each of its ranks,
// for a number of rounds or until the group fails.
type part struct {
	Process   int
	Hosts     [][]int
	Store     string
	Group     string
	Attempt   uint32
	Detection time.Duration
	Operation string // AllReduce, AllGather or Barrier
	N         int    // number of elements
	Rounds    int    // number of rounds; 0 means until the group fails
	Rejoin    bool   // whether the process tries to join the same attempt again after a failure
}

// report is a message of a process to the test. A process sends three reports: that it has
// joined the group, how its ranks ended, and which resources are left after it has closed the
// group.
type report struct {
	Joined bool
	Ends   []rankEnd
	Closed bool
	Leaked string // stacks of goroutines that are left; "" if there are none
	Fds    int    // number of open sockets that are left
	Rejoin string // error of the attempt to join again
}

// rankEnd says how a rank ended.
type rankEnd struct {
	Text     string // text of the error; "" if there was no error
	Peer     int    // rank that the error names; −1 if it names no rank
	Timeout  bool
	Rounds   int
	WasWrong bool // whether a result was wrong
}

// runPart runs a part, given as JSON, in this process and returns the exit code.
func runPart(text string) int {
	go endWithTest()
	var p part
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.play(json.NewEncoder(os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "part:", err)
		return 1
	}
	return 0
}

// endWithTest ends this process when the test's process has ended. It notices this by EOF on
// standard input, which is a pipe from the test's process. Without endWithTest many parts would
// continue for ever.
func endWithTest() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func (p *part) config() collective.TCPConfig {
	size := 0
	for _, ranks := range p.Hosts {
		size += len(ranks)
	}
	return collective.TCPConfig{
		Store: collective.FileStore(p.Store), Size: size, Hosts: p.Hosts,
		Group: p.Group, Attempt: p.Attempt, Detection: p.Detection,
	}
}

func (p *part) play(out *json.Encoder) error {
	sockets, goroutines := openSockets(), goleak.IgnoreCurrent()
	ranks := p.Hosts[p.Process]
	g, err := collective.NewTCPGroup(context.Background(), ranks[0], p.config())
	if err != nil {
		return err
	}
	if err := out.Encode(report{Joined: true}); err != nil {
		return err
	}
	ends := make([]rankEnd, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() { ends[i] = p.loop(g.Rank(r)) })
	}
	wg.Wait()
	if err := out.Encode(report{Ends: ends}); err != nil {
		return err
	}
	last := report{Closed: true}
	if err := g.Close(); err != nil && p.Rounds > 0 {
		last.Leaked = "closing: " + err.Error()
	}
	if err := goleak.Find(goroutines); err != nil {
		last.Leaked += err.Error()
	}
	last.Fds = openSockets() - sockets
	if p.Rejoin {
		cfg := p.config()
		cfg.JoinTimeout = 500 * time.Millisecond
		again, err := collective.NewTCPGroup(context.Background(), ranks[0], cfg)
		if err != nil {
			last.Rejoin = err.Error()
		} else {
			last.Rejoin = "welcome"
			again.Close()
		}
	}
	return out.Encode(last)
}

// loop repeats the operation on one rank. It compares the result of every round with the
// expected result.
func (p *part) loop(c *collective.Comm) rankEnd {
	step := p.operation(c)
	for k := 0; p.Rounds == 0 || k < p.Rounds; k++ {
		right, err := step(k)
		if err != nil {
			e := rankEnd{Text: err.Error(), Peer: -1, Timeout: errors.Is(err, collective.ErrTimeout), Rounds: k}
			var peer *collective.PeerError
			if errors.As(err, &peer) {
				e.Peer = peer.Rank
			}
			return e
		}
		if !right {
			c.Close(errors.New("a wrong result"))
			return rankEnd{Peer: -1, Rounds: k, WasWrong: true}
		}
	}
	return rankEnd{Peer: -1, Rounds: p.Rounds}
}

// operation returns a function that executes round k of the operation and reports whether the
// result is right.
func (p *part) operation(c *collective.Comm) func(k int) (bool, error) {
	size, r := c.Size(), c.Rank()
	switch p.Operation {
	case "AllReduce":
		x := make([]float64, p.N)
		return func(k int) (bool, error) {
			for i := range x {
				x[i] = float64((r + 1) * (i%7 + k%5))
			}
			err := collective.AllReduce(c, &collective.Reduction[float64]{
				Name: "x", Op: collective.Sum[float64](), Whole: x, Out: x,
			})
			sum := size * (size + 1) / 2
			for i := range x {
				if err == nil && x[i] != float64(sum*(i%7+k%5)) {
					return false, nil
				}
			}
			return true, err
		}
	case "AllGather":
		in, out := make([]int64, p.N), make([]int64, p.N*size)
		return func(k int) (bool, error) {
			for i := range in {
				in[i] = int64(r + k + i)
			}
			err := collective.AllGather(c, in, out)
			for i := range out {
				if err == nil && out[i] != int64(i/p.N+k+i%p.N) {
					return false, nil
				}
			}
			return true, err
		}
	default:
		return func(int) (bool, error) { return true, collective.Barrier(c) }
	}
}

// openSockets returns the number of open sockets of this process.
func openSockets() int {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return 0
	}
	n := 0
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// child is a process of a group that a test has started.
type child struct {
	cmd  *proctest.Cmd
	says *json.Decoder
}

// spawn starts the processes of a group and waits until all have joined. Each process gets a
// copy of all in which its own number is set.
func spawn(t *testing.T, all part) []*child {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	children := make([]*child, len(all.Hosts))
	for h := range all.Hosts {
		mine := all
		mine.Process = h
		text, err := json.Marshal(mine)
		require.NoError(t, err)
		cmd := proctest.Command(binary)
		cmd.Env = append(os.Environ(), partVariable+"="+string(text))
		cmd.Stderr = os.Stderr
		_, err = cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		children[h] = &child{cmd, json.NewDecoder(bufio.NewReader(out))}
		t.Cleanup(func() {
			cmd.Process.Signal(syscall.SIGCONT)
			cmd.Process.Kill()
			io.Copy(io.Discard, out)
			cmd.Wait()
		})
	}
	for _, c := range children {
		require.True(t, c.next(t).Joined)
	}
	return children
}

// next waits for the next report of the process and returns it.
func (c *child) next(t *testing.T) report {
	t.Helper()
	var r report
	require.NoError(t, c.says.Decode(&r))
	return r
}

func (c *child) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(s))
}

// after waits for the duration d of a test case.
func after(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// requireSurvivors waits until all children except the victim have failed. The errors of all
// their ranks must name the same rank, which must be one of the victim's. If rank 0 is not a
// rank of the victim, its process decides which failure came first, and all errors must have
// the same text. requireSurvivors returns the text of the first error.
func requireSurvivors(t *testing.T, children []*child, hosts [][]int, victim int) string {
	t.Helper()
	var first rankEnd
	for h, c := range children {
		if h == victim {
			continue
		}
		for _, e := range c.next(t).Ends {
			require.False(t, e.WasWrong, "no result may be wrong")
			require.Contains(t, hosts[victim], e.Peer, "process %d: %s", h, e.Text)
			require.Contains(t, e.Text, fmt.Sprintf("rank %d", e.Peer))
			if first.Text == "" {
				first = e
			}
			require.Equal(t, first.Peer, e.Peer, "%s\n%s", first.Text, e.Text)
			if !slices.Contains(hosts[victim], 0) {
				require.Equal(t, first.Text, e.Text)
			}
		}
	}
	return first.Text
}

// requireGone waits until all children except the victim have closed their groups, and requires
// that no goroutines and sockets are left.
func requireGone(t *testing.T, children []*child, victim int) {
	t.Helper()
	for h, c := range children {
		if h == victim {
			continue
		}
		last := c.next(t)
		require.True(t, last.Closed)
		require.Empty(t, last.Leaked, "process %d must have no goroutines left", h)
		require.Zero(t, last.Fds, "process %d must have no open sockets", h)
		require.NoError(t, c.cmd.Wait())
	}
}
