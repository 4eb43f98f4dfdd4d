package membership

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// If the environment variable roleVariable is set, the test binary runs as one process of a
// group. The value is a role in JSON.
const roleVariable = "MEMBERSHIP_TEST_ROLE"

// role is the configuration of a process in a test.
type role struct {
	Process, Processes int
	Store, Group       string
	Detection          time.Duration
}

// seen is a message that a process sends to the test. The first message says that the process
// has joined; the second message has the group's cause.
type seen struct {
	Joined       bool
	Text         string
	Rank         int
	Address      string
	Reason       string
	Timeout      bool
	AfterFailing string // error that Fail returned for a later failure of the process
	Rejoin       string // error of another attempt to join
}

func TestMain(m *testing.M) {
	if r := os.Getenv(roleVariable); r != "" {
		if err := runProcess(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runProcess runs one process of a group; text is its role in JSON. The process joins, makes
// progress until the group fails, and prints the cause. It ends when its standard input is
// closed.
func runProcess(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	op := &Operation{Hash: 7, Text: "AllReduce"}
	var moved atomic.Uint64
	cfg := Config{
		Process: r.Process, Processes: r.Processes, Ranks: []int{r.Process}, Size: r.Processes,
		Store: FileStore(r.Store), Group: r.Group, Attempt: 1, DataAddress: "127.0.0.1:" + strconv.Itoa(9000+r.Process),
		Detection: r.Detection,
		State: func() []State {
			return []State{{Rank: r.Process, Seq: 1, Op: op, Progress: moved.Add(1)}}
		},
	}
	ctx := context.Background()
	port, err := peerlink.Listen(peerlink.Config{})
	if err != nil {
		return err
	}
	defer port.Close()
	cfg.Port = port
	m, err := Join(ctx, cfg)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(seen{Joined: true}); err != nil {
		return err
	}
	<-m.Failed()
	s := seen{Text: m.Err().Error(), Timeout: errors.Is(m.Err(), ErrTimeout)}
	var peer *PeerError
	if errors.As(m.Err(), &peer) {
		s.Rank, s.Address, s.Reason = peer.Rank, peer.Address, peer.Reason
	}
	s.AfterFailing = m.Fail(errors.New("what a zombie says")).Error()
	if r.Process == s.Rank && r.Process != 0 {
		cfg.JoinTimeout = time.Second
		if again, err := Join(ctx, cfg); err != nil {
			s.Rejoin = err.Error()
		} else {
			again.Close()
		}
	}
	if err := out.Encode(s); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	m.Close()
	return err
}

// child is a process that the test has started.
type child struct {
	cmd  *proctest.Cmd
	in   io.Closer
	says *json.Decoder
}

// spawn starts a group of n processes and waits until all of them have joined.
func spawn(t *testing.T, n int, detection time.Duration) []*child {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	group := make([]*child, n)
	for p := range n {
		text, err := json.Marshal(role{Process: p, Processes: n, Store: dir, Group: t.Name(), Detection: detection})
		require.NoError(t, err)
		cmd := proctest.Command(binary)
		cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		group[p] = &child{cmd, in, json.NewDecoder(bufio.NewReader(out))}
		t.Cleanup(func() {
			in.Close()
			cmd.Process.Signal(syscall.SIGCONT)
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
	for _, c := range group {
		require.True(t, c.next(t).Joined)
	}
	return group
}

func (c *child) next(t *testing.T) seen {
	t.Helper()
	var s seen
	require.NoError(t, c.says.Decode(&s))
	return s
}

func (c *child) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(s))
}

// pause waits for d. The tests use it only for times that are part of a test case.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// agree requires that the cause of all processes except dead is the failure of process dead,
// with the given reason. If the coordinator survives, all causes must have the same text.
func agree(t *testing.T, group []*child, dead int, reason string) []seen {
	t.Helper()
	var all []seen
	for p, c := range group {
		if p == dead {
			continue
		}
		s := c.next(t)
		require.Equal(t, dead, s.Rank, s.Text)
		require.Contains(t, s.Reason, reason)
		require.Equal(t, "127.0.0.1:"+strconv.Itoa(9000+dead), s.Address)
		require.Contains(t, s.Text, "in AllReduce #1", "the error must name the operation in which the failure was noticed")
		require.Equal(t, s.Text, s.AfterFailing)
		if dead != 0 && len(all) > 0 {
			require.Equal(t, all[0].Text, s.Text)
		}
		all = append(all, s)
	}
	return all
}

func TestKilledProcess(t *testing.T) {
	const detection = time.Hour // so long that silence cannot be the reason for the detection
	type testCase struct {
		n, dead int
		delay   time.Duration
	}
	cases := []testCase{{2, 0, 0}, {2, 1, 50 * time.Millisecond}, {3, 2, 5 * time.Millisecond}, {4, 3, 0}, {4, 0, 5 * time.Millisecond}}
	rounds := 1
	if testsize.Soak {
		rounds, cases = 5, nil
		for n := 2; n <= 4; n++ {
			for dead := range n {
				for _, delay := range []time.Duration{0, 5, 50} {
					cases = append(cases, testCase{n, dead, delay * time.Millisecond})
				}
			}
		}
	}
	for _, c := range cases {
		for range rounds {
			t.Run(fmt.Sprintf("%d of %d after %v", c.dead, c.n, c.delay), func(t *testing.T) {
				group := spawn(t, c.n, detection)
				pause(c.delay)
				start := time.Now()
				group[c.dead].signal(t, syscall.SIGKILL)
				agree(t, group, c.dead, "closed its connection")
				t.Logf("known after %v", time.Since(start))
			})
		}
	}
}

func TestStoppedProcess(t *testing.T) {
	const detection = 1500 * time.Millisecond
	cases := [][2]int{{3, 2}, {3, 0}}
	if testsize.Soak {
		cases = [][2]int{{2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}, {4, 3}}
	}
	for _, c := range cases {
		n, dead := c[0], c[1]
		t.Run(fmt.Sprintf("%d of %d", dead, n), func(t *testing.T) {
			t.Parallel()
			group := spawn(t, n, detection)
			start := time.Now()
			group[dead].signal(t, syscall.SIGSTOP)
			all := agree(t, group, dead, "was silent for")
			t.Logf("known after %v", time.Since(start))
			for _, s := range all {
				require.True(t, s.Timeout)
			}

			// When the stopped process continues, it gets the cause of the others, and its own
			// messages are ignored.
			group[dead].signal(t, syscall.SIGCONT)
			zombie := group[dead].next(t)
			require.Equal(t, dead, zombie.Rank, zombie.Text)
			require.Contains(t, zombie.Reason, "was silent for")
			require.Equal(t, zombie.Text, zombie.AfterFailing)
			if dead != 0 {
				require.Equal(t, all[0].Text, zombie.Text)
				require.Contains(t, zombie.Rejoin, "the group has failed: "+zombie.Text)
			}
		})
	}
}

// TestStoppedGroup stops all processes for longer than the detection time. The first process
// that continues has received nothing for that time, but must not declare the others dead.
func TestStoppedGroup(t *testing.T) {
	t.Parallel()
	const detection = 1200 * time.Millisecond
	rounds := 1
	if testsize.Soak {
		rounds = 10
	}
	group := spawn(t, 3, detection)
	for range rounds {
		for _, c := range group {
			c.signal(t, syscall.SIGSTOP)
		}
		pause(detection * 3 / 2)
		for _, c := range group {
			c.signal(t, syscall.SIGCONT)
		}
		pause(detection)
	}
	group[1].signal(t, syscall.SIGKILL)
	agree(t, group, 1, "closed its connection")
}

// TestStarvedProcess stops the processes in turn, several times, each time for a quarter of the
// detection time. The group must not fail, as no process is silent for the detection time.
func TestStarvedProcess(t *testing.T) {
	t.Parallel()
	const detection = 1500 * time.Millisecond
	rounds := 2
	if testsize.Soak {
		rounds = 20
	}
	group := spawn(t, 3, detection)
	for range rounds {
		for _, c := range group {
			c.signal(t, syscall.SIGSTOP)
			pause(detection / 4)
			c.signal(t, syscall.SIGCONT)
			pause(detection / 16)
		}
	}
	group[2].signal(t, syscall.SIGKILL)
	agree(t, group, 2, "closed its connection")
}
