//go:build linux && !race

package kills

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// shape describes a cluster.
type shape struct {
	taskManagers, slots int
	memory              string // of each task manager
	detection, lease    time.Duration
	flags               []string // further flags of the job manager
	relayed             bool     // the workers reach each other through valves
}

// slotsInAll returns the number of slots of the cluster.
func (s shape) slotsInAll() int { return s.taskManagers * s.slots }

// cluster is a cluster of real processes. The task managers reach the job manager through
// valves, so that they can be disconnected. If the shape says so, workers also reach each other
// through valves.
type cluster struct {
	shape
	t       testing.TB
	story   *story
	dir     string // everything that the processes write lies here
	address string // of the job manager
	web     string // URL of the job manager
	environ []string
	manager *proctest.Cmd // nil while it is not running
	nodes   []*node
	small   map[string]bool // directories on a file system of their own, which a fault can fill
	network string          // the first three bytes of the addresses of relayed nodes
	taken   bool            // a fault of this strike has taken the store away
}

// node is a task manager with its workers.
type node struct {
	name  string
	valve *middlebox.Valve
	peers []*middlebox.Valve // before the ports of its workers; none unless they are relayed
	flags []string           // further flags of the task manager
	cmd   *proctest.Cmd      // nil while the task manager is not running
}

// startCluster starts a cluster and waits until all its slots are free. When the test ends, it
// ends all processes.
func startCluster(t testing.TB, s shape) *cluster {
	t.Helper()
	c := &cluster{shape: s, t: t, story: newStory(), dir: t.TempDir(), nodes: make([]*node, s.taskManagers), small: map[string]bool{}}
	c.environ = []string{"SUPERSTEP_TOKEN_FILE=" + filepath.Join(c.dir, "token"), "TMPDIR=" + filepath.Join(c.dir, "tmp")}
	for _, name := range []string{"tmp", "out", "store", "client"} {
		require.NoError(t, os.Mkdir(filepath.Join(c.dir, name), 0o700))
	}
	t.Cleanup(c.end)
	c.startManager()
	for i := range c.nodes {
		c.nodes[i] = newNode(c, i)
		c.startNode(c.nodes[i])
	}
	c.requireFree()
	return c
}

// newNode returns a node with the given number. Its task manager is not started.
func newNode(c *cluster, number int) *node {
	c.t.Helper()
	valve, err := middlebox.NewValve(c.address)
	require.NoError(c.t, err)
	c.t.Cleanup(valve.Close)
	n := &node{name: fmt.Sprintf("tm%d", number), valve: valve}
	if c.relayed {
		c.relayPeers(n, number)
	}
	return n
}

// clusters numbers the clusters of this process.
var clusters atomic.Int32

// relayPeers gives a node two addresses of the loopback interface that no other node has. Its workers
// listen on one of them, and the valves on the other, which others get to know.
func (c *cluster) relayPeers(n *node, number int) {
	c.t.Helper()
	if number == 0 {
		c.network = fmt.Sprintf("127.%d.%d", 1+os.Getpid()%254, clusters.Add(1)%256)
	}
	listen, advertise := fmt.Sprintf("%s.%d", c.network, 2*number+1), fmt.Sprintf("%s.%d", c.network, 2*number+2)
	const first, ports = 20000, 12 // of workers, and the last of the task manager itself
	n.flags = []string{"--listen", listen, "--advertise", advertise, "--worker-ports", fmt.Sprintf("%d-%d", first, first+ports-1)}
	for i := range ports {
		port := strconv.Itoa(first + i)
		v, err := middlebox.NewValveAt(net.JoinHostPort(advertise, port), net.JoinHostPort(listen, port))
		require.NoError(c.t, err)
		c.t.Cleanup(v.Close)
		n.peers = append(n.peers, v)
	}
}

// end ends all processes, and tells the story if the test has failed.
func (c *cluster) end() {
	kill := func(p *proctest.Cmd) {
		if p != nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	}
	kill(c.manager)
	for _, n := range c.nodes {
		if n != nil {
			kill(n.cmd)
		}
	}
	for _, pid := range c.workers() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if c.t.Failed() || testing.Verbose() {
		c.t.Logf("timeline:\n%s", c.story)
	}
	if c.t.Failed() {
		c.t.Logf("output of the cluster:\n%s", &c.story.output)
	}
}

// start starts a program of the cluster.
func (c *cluster) start(name string, args ...string) (*proctest.Cmd, *transcript) {
	c.t.Helper()
	cmd := proctest.Command(programs.Build(c.t, "./cmd/superstep"), append(args, "--token-file", filepath.Join(c.dir, "token"), "--log-level", "info")...)
	said := new(transcript)
	cmd.Stdout, cmd.Stderr = said, &labelled{name: name, to: &c.story.output}
	cmd.Env = append(os.Environ(), c.environ...)
	require.NoError(c.t, cmd.Start())
	return cmd, said
}

var (
	managerLine = regexp.MustCompile(`(?m)^job manager at (\S+)$`)
	webLine     = regexp.MustCompile(`(?m)^HTTP at http://(\S+)$`)
)

// startManager starts the job manager. If it ran before, it gets the same addresses.
func (c *cluster) startManager() {
	c.t.Helper()
	listen, web := "127.0.0.1:0", "127.0.0.1:0"
	if c.address != "" {
		listen, web = c.address, c.web
	}
	args := []string{"jobmanager", "--listen", listen, "--http", web, "--dir", filepath.Join(c.dir, "jm"),
		"--detection", c.detection.String(), "--lease", c.lease.String()}
	cmd, said := c.start("jm", append(args, c.flags...)...)
	c.manager = cmd
	require.Eventually(c.t, func() bool {
		at, on := managerLine.FindStringSubmatch(said.String()), webLine.FindStringSubmatch(said.String())
		if at != nil && on != nil {
			c.address, c.web = at[1], on[1]
		}
		return at != nil && on != nil
	}, waitLimit, 5*time.Millisecond, "the job manager must come up: %s", &c.story.output)
}

// startNode starts a task manager that is not running.
func (c *cluster) startNode(n *node) {
	c.t.Helper()
	args := []string{"taskmanager", "--jobmanager", n.valve.Address(), "--name", n.name,
		"--slots", strconv.Itoa(c.slots), "--memory", c.memory, "--dir", filepath.Join(c.dir, n.name)}
	n.cmd, _ = c.start(n.name, append(args, n.flags...)...)
}

// killManager kills the job manager.
func (c *cluster) killManager() {
	_ = c.manager.Process.Kill()
	_ = c.manager.Wait()
}

// killNode kills a task manager, but not its workers.
func (n *node) killNode() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// killWorkers kills the given processes, which may have ended.
func killWorkers(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// client runs a client command of superstep and waits until it has ended.
func (c *cluster) client(args ...string) programs.Outcome {
	return programs.Execute(c.t, c.environ, programs.Build(c.t, "./cmd/superstep"), append(args, "--cluster", c.address)...)
}

// requireFree waits until all slots of the cluster are free.
func (c *cluster) requireFree() {
	c.t.Helper()
	var o struct{ TaskManagers, Slots, Free int }
	require.Eventually(c.t, func() bool {
		return c.ask(c.t.Context(), "overview", &o) == nil && o.Slots == c.slotsInAll() && o.Free == o.Slots
	}, waitLimit, 5*time.Millisecond, "all slots must become free: %+v", &o)
}

// submission is a job and its client.
type submission struct {
	c        *cluster
	cmd      *proctest.Cmd
	out, err transcript
	ended    chan struct{}
}

// submit starts the client of a job of the program killjobs.
func (c *cluster) submit(args ...string) *submission {
	c.t.Helper()
	s := &submission{c: c, ended: make(chan struct{})}
	s.cmd = proctest.Command(programs.Build(c.t, "./tests/killjobs"), append(args, "--cluster", c.address, "--progress", "json")...)
	s.cmd.Env = append(os.Environ(), c.environ...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.err
	require.NoError(c.t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	c.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		if c.t.Failed() {
			c.t.Logf("standard error of the client:\n%s", &s.err)
		}
	})
	return s
}

// wait waits until the client has ended and returns its exit code.
func (s *submission) wait() int {
	s.c.t.Helper()
	ctx, cancel := context.WithTimeout(s.c.t.Context(), waitLimit)
	defer cancel()
	select {
	case <-s.ended:
	case <-ctx.Done():
		require.FailNow(s.c.t, "the job must end", "not within %v", waitLimit)
	}
	return s.cmd.ProcessState.ExitCode()
}
