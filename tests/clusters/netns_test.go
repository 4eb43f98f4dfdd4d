//go:build linux && !race

package clusters

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// A network consists of hosts. Each host is a network namespace. A bridge, which has its own
// namespace, connects the hosts. The network of the machine is not changed, and deleting the
// namespaces removes the whole network.
//
//	          namespace "net": bridge
//	             │        │        │        one veth pair each
//	namespace "jm"      "tm0"    "tm1"
//	    10.97.0.1   10.97.0.2  10.97.0.3
type network struct {
	t      testing.TB
	prefix string // prefix of the namespaces' names, unique to this process
	hosts  []string
}

const namespacePrefix = "superstep-test-"

// newNetwork makes a network with the given hosts. Making namespaces needs root, and a machine
// or container that lets root make them. If newNetwork cannot make namespaces, it skips the
// test and says why.
func newNetwork(t testing.TB, hosts ...string) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: network namespaces need root; run this test as root to have a cluster across hosts tested")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("NOT RUN: network namespaces need the command ip (iproute2), which is not installed")
	}
	sweepNamespaces(t)
	n := &network{t: t, prefix: fmt.Sprintf("%s%d-", namespacePrefix, os.Getpid()), hosts: hosts}
	if out, err := proctest.Command("ip", "netns", "add", n.prefix+"net").CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ermission denied") || strings.Contains(string(out), "not permitted") {
			t.Skipf("NOT RUN: this machine does not let root make network namespaces: %s", out)
		}
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() {
		for _, host := range append(n.hosts, "net") {
			_ = proctest.Command("ip", "netns", "del", n.prefix+host).Run() // fails if the namespace does not exist
		}
	})
	n.in("net", "link", "add", "bridge", "type", "bridge")
	n.in("net", "link", "set", "bridge", "up")
	for _, host := range hosts {
		n.ip("netns", "add", n.prefix+host)
		n.ip("link", "add", "to-"+host, "netns", n.prefix+"net", "type", "veth", "peer", "name", "eth0", "netns", n.prefix+host)
		n.in("net", "link", "set", "to-"+host, "master", "bridge", "up")
		n.in(host, "link", "set", "lo", "up")
		n.in(host, "address", "add", n.address(host)+"/24", "dev", "eth0")
		n.in(host, "link", "set", "eth0", "up")
	}
	return n
}

// sweepNamespaces deletes namespaces that killed runs of the tests have left.
func sweepNamespaces(t testing.TB) {
	t.Helper()
	found, err := filepath.Glob("/run/netns/" + namespacePrefix + "*")
	require.NoError(t, err)
	for _, path := range found {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), namespacePrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && gone(n) {
			_ = proctest.Command("ip", "netns", "del", filepath.Base(path)).Run() // another run may delete the same namespace
		}
	}
}

// ip runs the command ip and requires that it succeeds.
func (n *network) ip(args ...string) {
	n.t.Helper()
	out, err := proctest.Command("ip", args...).CombinedOutput()
	require.NoError(n.t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// in runs the command ip in the namespace of a host.
func (n *network) in(host string, args ...string) {
	n.t.Helper()
	n.ip(append([]string{"-n", n.prefix + host}, args...)...)
}

// address returns the address of a host.
func (n *network) address(host string) string {
	for i, h := range n.hosts {
		if h == host {
			return fmt.Sprintf("10.97.0.%d", i+1)
		}
	}
	require.Fail(n.t, "the network must have the host", host)
	return ""
}

// link sets the link of a host to state, which is "up" or "down". If the link is down, the
// host's own interface stays up, but no packet passes, as if a cable were unplugged.
func (n *network) link(host, state string) { n.in("net", "link", "set", "to-"+host, state) }

// command returns a command that runs a program on a host. The process of the command becomes
// the program's process, so it has the same PID.
func (n *network) command(host, path string, args ...string) *proctest.Cmd {
	return proctest.Command("ip", append([]string{"netns", "exec", n.prefix + host, path}, args...)...)
}

// networkCluster is a cluster with the job manager and its clients on one host, and one task
// manager on each other host.
type networkCluster struct {
	*network
	dir      string
	output   *transcript
	programs []*proctest.Cmd // processes of the job manager and the task managers
}

// startNetworkCluster starts the cluster as a user does: with certificates for the job manager's
// address, and a token that is copied to the other hosts.
func startNetworkCluster(t testing.TB, n *network) *networkCluster {
	t.Helper()
	s := &networkCluster{network: n, dir: t.TempDir(), output: new(transcript)}
	made := programs.Execute(t, nil, programs.Build(t, "./cmd/superstep"), "tls", "init", filepath.Join(s.dir, "tls"), "--host", n.address("jm"))
	require.Zero(t, made.Code, made.Stderr)
	t.Cleanup(func() {
		for _, p := range s.programs {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if t.Failed() {
			t.Logf("output of the cluster:\n%s", s.output)
		}
	})
	token := filepath.Join(s.dir, "token")
	up := new(transcript)
	s.start("jm", up, append([]string{"jobmanager", "--listen", n.address("jm") + ":6123", "--http", "off",
		"--dir", filepath.Join(s.dir, "jm"), "--token-file", token}, s.flags("jobmanager")...)...)
	require.Eventually(t, func() bool { return managerLine.MatchString(up.String()) }, waitLimit, 10*time.Millisecond, "%s", s.output)
	for _, host := range n.hosts[1:] {
		data, err := os.ReadFile(token)
		require.NoError(t, err)
		copied := filepath.Join(s.dir, "token-"+host)
		require.NoError(t, os.WriteFile(copied, data, 0o600))
		s.start(host, s.output, append([]string{"taskmanager", "--jobmanager", n.address("jm") + ":6123", "--name", host,
			"--slots", "2", "--memory", "1GiB", "--dir", filepath.Join(s.dir, host), "--listen", n.address(host),
			"--token-file", copied}, s.flags("taskmanager")...)...)
	}
	s.requireFree()
	return s
}

// flags returns the flags that name a role's certificates.
func (s *networkCluster) flags(role string) []string {
	at := func(name string) string { return filepath.Join(s.dir, "tls", name) }
	return []string{"--tls-ca", at("ca.pem"), "--tls-cert", at(role + ".pem"), "--tls-key", at(role + "-key.pem")}
}

// start starts a job manager or task manager on a host.
func (s *networkCluster) start(host string, out *transcript, args ...string) {
	s.t.Helper()
	cmd := s.command(host, programs.Build(s.t, "./cmd/superstep"), args...)
	cmd.Stdout, cmd.Stderr = out, s.output
	require.NoError(s.t, cmd.Start())
	s.programs = append(s.programs, cmd)
}

// client returns the command that runs a client.
func (s *networkCluster) client(path string, args ...string) *proctest.Cmd {
	args = append(args, "--cluster", s.address("jm")+":6123", "--token-file", filepath.Join(s.dir, "token"))
	cmd := s.command("jm", path, append(args, s.flags("client")...)...)
	cmd.Dir = programs.Root()
	return cmd
}

// run runs a client and waits until it has ended.
func (s *networkCluster) run(path string, args ...string) programs.Outcome {
	return within(s.t, waitLimit, s.client(path, args...))
}

// requireFree waits until every slot is free.
func (s *networkCluster) requireFree() {
	s.t.Helper()
	slots := 2 * (len(s.hosts) - 1)
	want := fmt.Sprintf("\n%d of %d slots are free", slots, slots)
	require.Eventually(s.t, func() bool {
		return strings.Contains(s.run(programs.Build(s.t, "./cmd/superstep"), "nodes").Stdout, want)
	}, waitLimit, askEvery, "want %s: %s", want, s.output)
}

// TestAcrossHosts runs jobs over TLS across hosts and requires the same output as in local
// runs. Then it cuts links, as apart and cut describe.
func TestAcrossHosts(t *testing.T) {
	t.Parallel()
	s := startNetworkCluster(t, newNetwork(t, "jm", "tm0", "tm1"))
	s.sameOutput()
	cuts := []string{"tm1"}
	if testsize.Soak {
		cuts = []string{"tm1", "tm0", "jm", "tm0", "tm1"}
	}
	for _, host := range cuts {
		t.Run("cut "+host, func(t *testing.T) { s.cut(t, host) })
	}
	t.Run("workers apart", s.apart)
}

// part disconnects two hosts from each other if isolated is "on", and reconnects them if it is
// "off". The third host can still reach both, because isolated ports of a bridge can only reach
// ports that are not isolated.
func (n *network) part(one, other, isolated string) {
	n.t.Helper()
	for _, host := range []string{one, other} {
		n.in("net", "link", "set", "to-"+host, "type", "bridge_slave", "isolated", isolated)
	}
}

// apart disconnects the task managers from each other while a job runs. The job manager can
// still reach both, so the workers must report that they lost each other.
func (s *networkCluster) apart(t *testing.T) {
	c, workers := s.running(t)
	s.part("tm0", "tm1", "on")
	defer s.part("tm0", "tm1", "off")
	began := time.Now()
	require.Equal(t, 1, c.wait(t, waitLimit))
	t.Logf("the client ended %v after the cut", time.Since(began).Round(time.Millisecond))
	says(t, lastError(c), "worker ", "(10.97.0.", "was silent", "on task manager tm")
	requireGone(t, workers)
	s.part("tm0", "tm1", "off")
	s.requireFree()
	s.sameOutput()
}

// iterates matches progress of a queue that has completed a superstep.
var iterates = regexp.MustCompile(`"superstep":[1-9]`)

// running starts a job that runs for a long time. It returns the client and the PIDs of the
// workers once the job iterates.
func (s *networkCluster) running(t *testing.T) (c *clientRun, workers []int) {
	t.Helper()
	cmd := s.client(programs.Build(t, "./tests/clusterjobs"), "--parallelism", "4", "--progress", "json", "--steps", "1000000", "--pause", "1ms", "--restart", "none")
	c = &clientRun{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &c.out, &c.err
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-c.ended
	})
	require.Eventually(t, func() bool { return iterates.MatchString(c.err.String()) }, waitLimit, 5*time.Millisecond, "%s", &c.err)
	for _, p := range s.programs[1:] {
		workers = append(workers, workersOf(t, p.Process.Pid)...)
	}
	require.Len(t, workers, 2)
	return c, workers
}

// lastError returns the last error message of a client.
func lastError(c *clientRun) string {
	said := c.err.String()
	return said[max(strings.LastIndex(said, "error: "), 0):]
}

// requireGone waits until processes have ended, which must take at most about the time of a
// lease.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, waitLimit, 20*time.Millisecond, "process %d must end", pid)
	}
}

// sameOutput runs programs on the cluster and locally, and requires the same output.
func (s *networkCluster) sameOutput() {
	t := s.t
	for _, pkg := range []string{"./tests/clusterjobs", "./examples/kmeans"} {
		path := programs.Build(t, pkg)
		here := programs.Execute(t, nil, path, "--parallelism", "4", "--progress", "off")
		require.Zero(t, here.Code, here.Stderr)
		there := s.run(path, "--parallelism", "4", "--progress", "off")
		require.Zero(t, there.Code, "%s\n%s", there.Stderr, s.output)
		require.Equal(t, withoutTimes(here.Stdout), withoutTimes(there.Stdout), pkg)
	}
}

// cut disconnects a host from the network while a job runs. The client's error must name the
// lost task manager. Workers on the disconnected host must end when the lease of their task
// manager lapses. Once the link is up again, the task manager must register again.
func (s *networkCluster) cut(t *testing.T, host string) {
	c, workers := s.running(t)
	s.link(host, "down")
	defer s.link(host, "up")
	began := time.Now()
	require.Equal(t, 1, c.wait(t, waitLimit))
	took := time.Since(began)
	t.Logf("the client ended %v after the cut", took.Round(time.Millisecond))
	lost := "task manager " + host
	if host == "jm" {
		lost = "task manager tm" // the error may name either task manager
	}
	says(t, lastError(c), lost, "was silent")
	requireGone(t, workers)
	t.Logf("the workers had ended %v after the cut", time.Since(began).Round(time.Millisecond))

	s.link(host, "up")
	s.requireFree()
	s.sameOutput()
}
