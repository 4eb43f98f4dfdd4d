package remote

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

// proxy relays connections to a worker, and can change the bytes that are sent to the worker.
type proxy struct {
	listener net.Listener
	work     sync.WaitGroup
	mu       sync.Mutex
	open     []net.Conn
}

// newProxy returns a proxy that relays connections to the address that address returns. forward
// copies the bytes from the dialer to the worker.
func newProxy(t *testing.T, address func() string, forward func(to, from net.Conn)) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener}
	keep := func(c net.Conn) net.Conn {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open = append(p.open, c)
		return c
	}
	p.work.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address())
			if err != nil {
				near.Close()
				return
			}
			keep(near)
			keep(far)
			p.work.Go(func() { forward(far, near) })
			p.work.Go(func() { io.Copy(near, far); near.(*net.TCPConn).CloseWrite() })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		for _, c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.work.Wait()
	})
	return p
}

// between returns a job of two workers. Connections from worker 0 to worker 1 go through a
// proxy.
func between(t *testing.T, change func(int, *Config), forward func(to, from net.Conn)) *job {
	j := newJob(t, 2, change)
	p := newProxy(t, func() string { return j.nets[1].Address() }, forward)
	require.NoError(t, j.nets[0].Connect([]string{"", p.listener.Addr().String()}))
	require.NoError(t, j.nets[1].Connect(j.addresses()))
	return j
}

// flood sends messages until Send fails, and returns the error.
func (j *job) flood(s transport.Sender) error {
	for {
		if err := s.Send(soon(j.t), transport.Message{Rows: j.rows(100)}); err != nil {
			return err
		}
	}
}

func discard() transport.Receiver {
	return receive(func(m transport.Message) { m.Release() })
}

// TestCutConnections requires that the networks of both workers fail if their connection is
// closed or half-closed, or carries arbitrary bytes, after a number of valid bytes.
func TestCutConnections(t *testing.T) {
	for _, after := range []int64{300, 3000, 3001, 30000, 300003} {
		for _, how := range []string{"cut", "half", "garbage"} {
			j := between(t, nil, func(to, from net.Conn) {
				io.CopyN(to, from, after)
				switch how {
				case "cut":
					to.Close()
					from.Close()
				case "half":
					to.(*net.TCPConn).CloseWrite()
				case "garbage":
					to.Write([]byte(strings.Repeat("garbage ", 1000)))
					io.Copy(to, from)
					to.(*net.TCPConn).CloseWrite()
				}
			})
			j.listen(at(0, 0, 1), discard())
			err := j.flood(j.dial(0, at(0, 0, 1)))
			lost := j.failure(1)
			require.Equal(t, 0, lost.Rank)
			if how == "garbage" {
				require.ErrorIs(t, lost, ErrDamaged, "%d %s", after, how)
			} else {
				require.Equal(t, "closed its connection without a good-bye", lost.Reason)
			}
			require.Equal(t, 1, j.failure(0).Rank)
			require.Equal(t, j.failure(0), err, "Send must return the network's first failure")
			j.close()
			require.Len(t, j.fails, 2)
		}
	}
}

// TestSilence requires that the networks at both ends of a connection fail if bytes no longer
// arrive.
func TestSilence(t *testing.T) {
	release := make(chan struct{})
	j := between(t, func(_ int, c *Config) { c.Detection = 600 * time.Millisecond }, func(to, from net.Conn) {
		io.CopyN(to, from, 20000)
		<-release
	})
	t.Cleanup(func() { close(release) })
	j.listen(at(0, 0, 1), discard())
	s := j.dial(0, at(0, 0, 1))
	err := j.flood(s)
	require.ErrorIs(t, j.failure(1), ErrSilent)
	require.Contains(t, j.failure(1).Error(), "was silent for ")
	// Worker 1 has closed the connection, and the proxy relays its end to worker 0.
	require.Equal(t, j.failure(0), err)
}

// TestIdleConnectionsStayOpen requires that idle connections stay open for longer than the
// detection time.
func TestIdleConnectionsStayOpen(t *testing.T) {
	j := connected(t, 3, func(_ int, c *Config) { c.Detection = 200 * time.Millisecond })
	k := newKeeper(1)
	j.listen(at(0, 0, 2), k)
	s := []transport.Sender{j.dial(0, at(0, 0, 2)), j.dial(1, at(0, 0, 2))}
	for range 3 {
		for _, s := range s {
			require.NoError(t, s.Send(soon(t), transport.Message{}))
			k.next(t)
		}
		<-time.After(500 * time.Millisecond)
	}
	j.noFailures()
}

// TestConnectionsOfAnotherAttempt requires that a connection with another secret, attempt or
// job is refused with a reason, and that the network of the worker that refuses it does not
// fail.
func TestConnectionsOfAnotherAttempt(t *testing.T) {
	for _, c := range []struct {
		name   string
		port   func(*peerlink.Config)
		change func(*Config)
		says   string
		logs   string
	}{
		{"secret", func(c *peerlink.Config) { c.Secret = []byte("another secret that is long") }, nil, "is refused: the other side does not know the secret", "the other side does not know the secret"},
		{"attempt", nil, func(c *Config) { c.Attempt = 2 }, "refused the connection: attempt 2 of the connection for rows is over: this is attempt 3", "attempt 2"},
		{"job", func(c *peerlink.Config) { c.Job = "other" }, nil, "refused the connection: it is a process of another job", "another job"},
	} {
		var logs syncBuffer
		j := newJobAt(t, 2, func(w int, cfg *peerlink.Config) {
			if w == 1 {
				cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &logs})
			} else if c.port != nil {
				c.port(cfg)
			}
		}, func(w int, cfg *Config) {
			if w == 0 && c.change != nil {
				c.change(cfg)
			}
		})
		j.connect()
		j.listen(at(0, 0, 1), discard())
		err := j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{})
		require.EqualError(t, err, "worker 1 ("+j.nets[1].Address()+") "+c.says, c.name)
		require.ErrorIs(t, err, ErrRefused)
		require.Equal(t, err, error(j.failure(0)))
		require.Eventually(t, func() bool { return strings.Contains(logs.String(), c.logs) }, patience, time.Millisecond)
		j.close()
		require.Len(t, j.fails, 1)
	}
}

// TestNumbers requires that a connection to a worker with another number than the dialer
// expects is refused.
func TestNumbers(t *testing.T) {
	j := newJob(t, 3, nil)
	list := j.addresses()
	list[1], list[2] = list[2], list[1]
	require.NoError(t, j.nets[0].Connect(list))
	err := j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{})
	require.ErrorContains(t, err, "refused the connection: it connects to worker 1, this is worker 2")
	require.EqualError(t, j.nets[0].Connect(list), "data network of worker 0: it has the addresses already")
	require.EqualError(t, j.nets[1].Connect(list[:2]), "data network of worker 1: 2 addresses for 3 workers")
}

// TestSecondConnection requires that a second connection of a connected worker is refused, and
// that the first connection can still be used.
func TestSecondConnection(t *testing.T) {
	j := connected(t, 2, nil)
	k := newKeeper(2)
	j.listen(at(0, 0, 1), k)
	s := j.dial(0, at(0, 0, 1))
	require.NoError(t, s.Send(soon(t), transport.Message{}))
	k.next(t)
	_, err := j.nets[0].cfg.Port.Dial(soon(t), j.nets[1].Address(), j.nets[0].hello(1))
	require.True(t, peerlink.IsFinal(err))
	require.EqualError(t, err, "worker 0 has a connection already")
	require.NoError(t, s.Send(soon(t), transport.Message{Seq: 1}))
	require.EqualValues(t, 1, k.next(t).Seq)
}

// TestUnreachable requires that the network does not fail because of a worker that cannot be
// reached until a sender needs that worker.
func TestUnreachable(t *testing.T) {
	j := newJob(t, 2, func(_ int, c *Config) { c.ConnectTimeout = 200 * time.Millisecond })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone.Close()
	require.NoError(t, j.nets[0].Connect([]string{"", gone.Addr().String()}))
	s := j.dial(0, at(0, 0, 1))
	<-j.nets[0].peers[1].over
	j.noFailures()
	err = s.Send(soon(t), transport.Message{Rows: j.rows(2)})
	require.Equal(t, error(j.failure(0)), err)
	require.ErrorContains(t, err, "cannot be reached: dial tcp ")
}

func TestBadConfigs(t *testing.T) {
	good := Config{Workers: 2, Port: newPort(t, nil)}
	for text, change := range map[string]func(*Config){
		"there is no worker 2 among 2":                         func(c *Config) { c.Worker = 2 },
		"a job has 1 to 65536 workers, not 0":                  func(c *Config) { c.Workers = 0 },
		"it has no port":                                       func(c *Config) { c.Port = nil },
		"an attempt has a number from 0 to 2147483647, not -1": func(c *Config) { c.Attempt = -1 },
		"a detection time of 1ms is less than 50ms":            func(c *Config) { c.Detection = time.Millisecond },
		"a connect timeout of -1ns is less than 0":             func(c *Config) { c.ConnectTimeout = -1 },
		"a secret of 3 bytes is too short": func(c *Config) {
			c.Port = newPort(t, func(p *peerlink.Config) { p.Secret = []byte("abc") })
		},
		"it listens on all interfaces: say by which address": func(c *Config) {
			c.Port = newPort(t, func(p *peerlink.Config) { p.Listen = "0.0.0.0" })
		},
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, text)
	}
	n, err := New(good)
	require.NoError(t, err)
	_, err = New(good)
	require.ErrorContains(t, err, "attempt 0 of the connection for rows is here already")
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())
}

// syncBuffer is a buffer for logs.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestHandshakeIsTriedAgain ends the first connections during their handshakes. The dialer must
// connect again, and no worker may count as lost.
func TestHandshakeIsTriedAgain(t *testing.T) {
	cuts := make(chan int64, 5)
	for _, after := range []int64{0, 7, 99, 100, 143} { // number of bytes before the end: the hello has 100 bytes, and the proof has 44
		cuts <- after
	}
	j := between(t, nil, func(to, from net.Conn) {
		select {
		case after := <-cuts:
			io.CopyN(to, from, after)
			to.Close()
			from.Close()
		default:
			io.Copy(to, from)
			to.(*net.TCPConn).CloseWrite()
		}
	})
	k := newKeeper(1)
	j.listen(at(0, 0, 1), k)
	require.NoError(t, j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{Seq: 3}))
	require.EqualValues(t, 3, k.next(t).Seq)
	require.Empty(t, cuts)
	j.close()
	j.noFailures()
}
