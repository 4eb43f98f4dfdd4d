//go:build linux && !race

package clusters

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// listening returns the TCP ports on which a process listens. It returns the ports of those
// listening sockets in the kernel's table that are open files of the process.
func listening(pid int) []int {
	open := map[string]bool{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // if the process has ended, no files match
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:[") {
			open[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	var ports []int
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			// The columns are described in proc_net_tcp: 1 is the local address, 3 the state, 9
			// the inode.
			field := strings.Fields(line)
			if len(field) < 10 || field[3] != "0A" || !open[field[9]] {
				continue
			}
			_, port, _ := strings.Cut(field[1], ":")
			if n, err := strconv.ParseUint(port, 16, 16); err == nil {
				ports = append(ports, int(n))
			}
		}
	}
	return ports
}

// garbage returns byte sequences that no client would send.
func garbage() [][]byte {
	random := make([]byte, 4096)
	_, _ = rand.Read(random)
	hello, _ := hex.DecodeString("160301007a0100007603034b") // beginning of a TLS ClientHello
	return [][]byte{
		nil, // nothing is sent: the client connects and disconnects
		[]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		[]byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n{"),
		[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\x01\x05\x00\x00\x00\x01"),
		hello,
		[]byte(strings.Repeat("\xff", 1<<16)),
		[]byte(strings.Repeat("\x00", 1<<16)),
		[]byte("\xff\xff\xff\x7f and little else"),
		[]byte("\x00\x00\x00\x08superstep"),
		random,
	}
}

// sendGarbageTo sends all kinds of garbage to a port, each on a new connection. In every second
// round it leaves the connections open, as a client that waits for answers, and returns them.
func sendGarbageTo(port, round int) (held []net.Conn) {
	for i, data := range garbage() {
		c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err != nil {
			continue // the port is closed already
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.Write(data) // the process may have closed the connection
		if (i+round)%2 == 0 && round < 4 {
			held = append(held, c)
			continue
		}
		_ = c.Close()
	}
	return held
}

// sendGarbage sends garbage to every port on which the cluster's processes listen, until stop
// is closed. It returns the number of different worker ports to which it could connect.
func (s *testCluster) sendGarbage(stop <-chan struct{}) (workers int) {
	rounds := map[int]int{}
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for {
		for _, pid := range s.allWorkers() {
			for _, port := range listening(pid) {
				if rounds[port] == 0 {
					workers++
				}
				held = append(held, sendGarbageTo(port, rounds[port])...)
				rounds[port]++
			}
		}
		for _, p := range append(s.tasks, s.manager) {
			for _, port := range listening(p.Process.Pid) {
				held = append(held, sendGarbageTo(port, rounds[port])...)
				rounds[port]++
			}
		}
		select {
		case <-stop:
			return workers
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestGarbageOnEveryPort sends garbage to the ports of job manager, task managers and workers,
// from the moment they listen until the end of the job. The results of the job must have the
// same bits as without garbage.
func TestGarbageOnEveryPort(t *testing.T) {
	t.Parallel()
	for _, secured := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secured), func(t *testing.T) {
			t.Parallel()
			s := startCluster(t, clusterOptions{tls: secured, taskManagers: 2, slots: 2})
			steps := "300"
			if testsize.Soak {
				steps = "3000"
			}
			local := programs.Execute(t, nil, programs.Build(t, "./tests/clusterjobs"), "--progress", "off", "--steps", steps)
			require.Zero(t, local.Code, local.Stderr)
			stop, hit := make(chan struct{}), make(chan int)
			go func() { hit <- s.sendGarbage(stop) }()
			var got programs.Outcome
			for range 2 {
				got = s.run("--parallelism", "4", "--steps", steps, "--pause", "5ms")
				if got.Code != 0 {
					break
				}
			}
			close(stop)
			ports := <-hit
			require.Zero(t, got.Code, got.Stderr)
			require.Equal(t, local.Stdout, got.Stdout)
			require.Equal(t, 4, ports, "garbage must have reached the ports of four workers in two runs")
			s.requireIntact(t)
		})
	}
}

// peak returns the peak resident memory of a process in bytes.
func peak(t testing.TB, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			require.NoError(t, err)
			return n << 10
		}
	}
	require.Fail(t, "the kernel must report the peak")
	return 0
}

// hugeBody sends POST requests with 100 MB, with and without a Content-Length. The answer must
// arrive long before the whole body is sent, and the job manager must not store the body in
// memory.
func hugeBody(t *testing.T, s *testCluster) {
	const size = 100_000_000
	token, err := security.ReadToken(filepath.Join(s.dir, "token"))
	require.NoError(t, err)
	address := strings.TrimPrefix(s.http, "http://")
	before := peak(t, s.manager.Process.Pid)
	for name, header := range map[string]string{
		"length told": fmt.Sprintf("Content-Length: %d", size), "in chunks": "Transfer-Encoding: chunked",
	} {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(waitLimit)))
		_, err = fmt.Fprintf(c, "POST /api/v1/jobs HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", address, token.Reveal(), header)
		require.NoError(t, err)
		sent := make(chan int)
		go func() {
			n := 0
			for piece := fmt.Appendf(nil, "10000\r\n%s\r\n", make([]byte, 0x10000)); n < size; {
				k, err := c.Write(piece)
				n += k
				if err != nil {
					break // the job manager has refused the body and closed the connection
				}
			}
			sent <- n
		}()
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, name)
		require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode, name)
		require.NoError(t, c.Close())
		require.Less(t, <-sent, size/4, "%s: the job manager must not read the body", name)
	}
	require.Less(t, peak(t, s.manager.Process.Pid)-before, int64(32<<20))
}

// stoppedReaders follows a job with much output by gRPC, by HTTP, and with the job's own
// client, whose process is stopped. None of these three clients reads anything.
func stoppedReaders(t *testing.T, s *testCluster) {
	args := []string{"--parallelism", "4", "--steps", "300", "--pause", "5ms", "--bulk", "1000000"}
	local := programs.Execute(t, nil, programs.Build(t, "./tests/clusterjobs"), "--progress", "off", "--steps", "300", "--bulk", "1000000")
	require.Zero(t, local.Code, local.Stderr)
	cmd := proctest.Command(programs.Build(t, "./tests/clusterjobs"), append(args, "--cluster", s.address, "--progress", "json")...)
	cmd.Env = append(os.Environ(), s.environ...)
	owner := &clientRun{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &owner.out, &owner.err
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(owner.ended)
	}()
	s.deployedAll(t)
	c := s.dial(t)
	jobs, err := c.List(t.Context(), &wire.ListRequest{Limit: 1})
	require.NoError(t, err)
	id := jobs.Jobs[0].ID
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 8 {
		_, err := c.Follow(ctx, &wire.FollowRequest{Job: id})
		require.NoError(t, err)
		_, err = c.Logs(ctx, &wire.LogsRequest{Job: id, Worker: -1, Follow: true})
		require.NoError(t, err)
		defer s.unreadEvents(t, id).Close()
	}
	// Other clients must not be delayed, and the job must end although its client is stopped.
	require.Eventually(t, func() bool {
		got := s.client("list", "--state", "finished")
		return strings.Contains(got.Stdout, string(id))
	}, waitLimit, askEvery, "%s", s.output)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Zero(t, owner.wait(t, waitLimit), owner.err.String())
	require.Equal(t, local.Stdout, owner.out.String())
	require.Less(t, peak(t, s.manager.Process.Pid), int64(400<<20))
}

// unreadEvents requests the events of a job by HTTP, and reads only the first line of the
// answer.
func (s *testCluster) unreadEvents(t *testing.T, id wire.JobID) net.Conn {
	t.Helper()
	token, err := security.ReadToken(filepath.Join(s.dir, "token"))
	require.NoError(t, err)
	address := strings.TrimPrefix(s.http, "http://")
	d := net.Dialer{Timeout: 10 * time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
		return c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1) })
	}}
	conn, err := d.Dial("tcp", address)
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "GET /api/v1/jobs/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", id, address, token.Reveal())
	require.NoError(t, err)
	line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "200")
	return conn
}

// TestFullDisk runs a task manager whose disk has no space for executables. The job must fail
// with a message that names the task manager and the reason. Once there is space, the next job
// must succeed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := startCluster(t, clusterOptions{slots: 2})
	dir := filepath.Join(s.dir, "tm0")
	require.NoError(t, os.Mkdir(dir, 0o700))
	cmd := s.taskManager("tm0", "--min-free", "1MiB") // 1 MiB is free, but an executable needs more space
	makeRoom := onSmallDisk(t, cmd, dir)
	s.tasks = append(s.tasks, cmd)
	s.requireFree()
	for range 2 { // in the second round, the cluster must try again
		got := s.run("--parallelism", "2")
		require.Equal(t, 1, got.Code)
		says(t, got.Stderr, "fetch executable", "no space left on device", "tm0")
		s.requireFree()
	}
	makeRoom()
	local := programs.Execute(t, nil, programs.Build(t, "./tests/clusterjobs"), "--progress", "off")
	got := s.run("--parallelism", "2")
	require.Zero(t, got.Code, got.Stderr)
	require.Equal(t, local.Stdout, got.Stdout)
	require.False(t, gone(cmd.Process.Pid))
}

// TestTooLittleSpace requires that a task manager without enough space takes no work, and that
// "superstep nodes" says why. Once there is space, it must take work again by itself.
func TestTooLittleSpace(t *testing.T) {
	t.Parallel()
	s := startCluster(t, clusterOptions{slots: 2})
	dir := filepath.Join(s.dir, "tm0")
	require.NoError(t, os.Mkdir(dir, 0o700))
	cmd := s.taskManager("tm0", "--min-free", "16MiB")
	makeRoom := onSmallDisk(t, cmd, dir)
	s.tasks = append(s.tasks, cmd)
	require.Eventually(t, func() bool {
		return strings.Contains(s.client("nodes").Stdout, "16 MiB are the least (--min-free)")
	}, waitLimit, askEvery, "%s", s.output)
	got := s.run("--parallelism", "2", "--wait-timeout", "1s")
	require.Equal(t, 1, got.Code)
	says(t, got.Stderr, "tm0", "--min-free")
	makeRoom()
	s.requireFree()
	got = s.run("--parallelism", "2")
	require.Zero(t, got.Code, got.Stderr)
}

// onSmallDisk starts a command for which dir is the mount point of a small file system that is
// almost full. The file system exists only in the mount namespace of the command, and
// disappears when the command ends. If the user is not root, the command runs as root in a user
// namespace. makeRoom frees space on the file system.
func onSmallDisk(t testing.TB, cmd *proctest.Cmd, dir string) (makeRoom func()) {
	t.Helper()
	const script = `mount -t tmpfs -o size=192m,mode=0700 superstep-test "$0" && head -c 184M /dev/zero >"$0/filler" && exec "$@"`
	args := append([]string{"sh", "-c", script, dir, cmd.Path}, cmd.Args[1:]...)
	shell, err := exec.LookPath("sh")
	require.NoError(t, err)
	cmd.Path, cmd.Args = shell, args
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	require.NoError(t, cmd.Start())
	return sync.OnceFunc(func() {
		require.NoError(t, os.Remove(fmt.Sprintf("/proc/%d/root%s/filler", cmd.Process.Pid, dir)))
	})
}
