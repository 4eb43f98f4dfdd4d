package remote

import (
	"context"
	"crypto/hmac"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/transport"
)

// proxy stands before a worker and does something to the connections to it.
type proxy struct {
	listener net.Listener
	work     sync.WaitGroup
	mu       sync.Mutex
	open     []net.Conn
}

// newProxy forwards connections to address; forward copies from the dialer.
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

// between is a job of two workers with a proxy on the way from 0 to 1.
func between(t *testing.T, change func(int, *Config), forward func(to, from net.Conn)) *job {
	j := newJob(t, 2, change)
	p := newProxy(t, func() string { return j.nets[1].Address() }, forward)
	require.NoError(t, j.nets[0].Connect([]string{"", p.listener.Addr().String()}))
	require.NoError(t, j.nets[1].Connect(j.addresses()))
	return j
}

// flood sends until it fails, and returns the error.
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

// TestCutConnections cuts the connection after a number of bytes: in a frame, between
// two, in rows.
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
			require.Equal(t, 0, lost.Worker)
			if how == "garbage" {
				require.ErrorIs(t, lost, ErrDamaged, "%d %s", after, how)
			} else {
				require.Equal(t, "closed its connection without a good-bye", lost.Reason)
			}
			require.Equal(t, 1, j.failure(0).Worker)
			require.Equal(t, j.failure(0), err, "the sender gets the first failure")
			j.close()
			require.Len(t, j.fails, 2)
		}
	}
}

// TestSilence: a connection on which nothing moves any more is a failure of both
// sides within the detection time.
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
	// Worker 1 closed, which the proxy passes on.
	require.Equal(t, j.failure(0), err)
}

// TestNobodySilent: connections on which nothing is sent stay.
func TestNobodySilent(t *testing.T) {
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

// TestStrangers: what is not of the attempt is refused in words, and ends nothing.
func TestStrangers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		says   string
		logs   string
	}{
		{"secret", func(c *Config) { c.Secret = []byte("another secret that is long") }, "is refused: it does not know the secret of the attempt", "it does not know the secret of the attempt"},
		{"attempt", func(c *Config) { c.Attempt = 2 }, "refused the connection: it is of attempt 2, this is attempt 3", "attempt 2"},
		{"job", func(c *Config) { c.Job = "other" }, "refused the connection: it is a worker of another job", "another job"},
	} {
		var logs syncBuffer
		j := newJob(t, 2, func(w int, cfg *Config) {
			if w == 0 {
				c.change(cfg)
			} else {
				cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &logs})
			}
		})
		j.connect()
		j.listen(at(0, 0, 1), discard())
		err := j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{})
		require.EqualError(t, err, "worker 1 ("+j.nets[1].Address()+") "+c.says, c.name)
		require.ErrorIs(t, err, ErrRefused)
		require.Equal(t, err, error(j.failure(0)))
		j.close()
		require.Len(t, j.fails, 1)
		require.Contains(t, logs.String(), c.logs)
	}
}

// TestNumbers: a worker that is not who it is taken for is refused.
func TestNumbers(t *testing.T) {
	j := newJob(t, 3, nil)
	list := j.addresses()
	list[1], list[2] = list[2], list[1]
	require.NoError(t, j.nets[0].Connect(list))
	err := j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{})
	require.ErrorContains(t, err, "refused the connection: it wants worker 1, this is worker 2")
	require.EqualError(t, j.nets[0].Connect(list), "data network of worker 0: it has the addresses already")
	require.EqualError(t, j.nets[1].Connect(list[:2]), "data network of worker 1: 2 addresses for 3 workers")
}

// TestVersions: a hello of another version is refused before the rest of it is read.
func TestVersions(t *testing.T) {
	j := newJob(t, 2, nil)
	nc := raw(t, j.nets[1])
	_, err := nc.Write([]byte{'S', 'S', 'r', 't', 9, 0, 0, 0})
	require.NoError(t, err)
	err = readReply(nc, nil)
	require.EqualError(t, err, "version 9 of the data protocol does not go with version 2: run the same build everywhere (or its hello was damaged in transit)")
	require.ErrorIs(t, err, ErrRefused)
}

func raw(t *testing.T, n *Network) net.Conn {
	nc, err := net.Dial("tcp", n.Address())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return nc
}

// TestProofs: without the secret, nobody gets in by knowing everything else, nor with
// the listener's own words.
func TestProofs(t *testing.T) {
	j := newJob(t, 2, nil)
	n := j.nets[1]
	for _, cheat := range []string{"nothing", "echo", "replay"} {
		h := hello{version: protocolVersion, attempt: 3, from: 0, to: 1, workers: 2, summed: true}
		h.job = jobHash("test")
		nc := raw(t, n)
		sent := h.encode()
		_, err := nc.Write(sent)
		require.NoError(t, err)
		var answer [nonceBytes + proofBytes]byte
		require.NoError(t, readReply(nc, answer[:]))
		require.True(t, hmac.Equal(answer[nonceBytes:], n.proof(listenerLabel, sent, answer[:nonceBytes])))
		proof := make([]byte, proofBytes)
		switch cheat {
		case "echo":
			copy(proof, answer[nonceBytes:])
		case "replay":
			copy(proof, n.proof(dialerLabel, sent, make([]byte, nonceBytes)))
		}
		require.NoError(t, reply(nc, nil, proof))
		require.EqualError(t, readReply(nc, nil), "it does not know the secret of the attempt")
		_, err = nc.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	j.noFailures()
}

// TestSilentStrangers: connections that say nothing are bounded, and give way to
// workers.
func TestSilentStrangers(t *testing.T) {
	j := connected(t, 2, nil)
	var idle []net.Conn
	for range 3 * (2 + spareStrangers) {
		idle = append(idle, raw(t, j.nets[1]))
	}
	k := newKeeper(1)
	j.listen(at(0, 0, 1), k)
	require.NoError(t, j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{}))
	k.next(t)
	_, err := idle[0].Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", strings.Repeat("\x00", 500)} {
		nc := raw(t, j.nets[1])
		io.WriteString(nc, text)
		_, err := io.ReadAll(nc)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	j.close()
	j.noFailures()
}

// TestSecondConnection: nobody takes the place of a worker that is there.
func TestSecondConnection(t *testing.T) {
	j := connected(t, 2, nil)
	k := newKeeper(2)
	j.listen(at(0, 0, 1), k)
	s := j.dial(0, at(0, 0, 1))
	require.NoError(t, s.Send(soon(t), transport.Message{}))
	k.next(t)
	nc := raw(t, j.nets[1])
	_, final, err := j.nets[0].ask(soon(t), nc, 1, j.nets[1].Address())
	require.True(t, final)
	require.EqualError(t, err, "worker 0 has a connection already")
	require.NoError(t, s.Send(soon(t), transport.Message{Seq: 1}))
	require.EqualValues(t, 1, k.next(t).Seq)
}

// TestUnreachable: a worker that is not there is a failure when it is needed.
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
	_, err = j.nets[0].Store().Get(soon(t), "x") // worker 0 has it
	require.ErrorContains(t, err, "cannot be reached")
}

func TestBadConfigs(t *testing.T) {
	good := Config{Workers: 2, Secret: testSecret}
	for text, change := range map[string]func(*Config){
		"there is no worker 2 among 2":                           func(c *Config) { c.Worker = 2 },
		"a job has 1 to 65536 workers, not 0":                    func(c *Config) { c.Workers = 0 },
		"a secret of 3 bytes is too short":                       func(c *Config) { c.Secret = []byte("abc") },
		"an attempt has a number from 0 to 2147483647, not -1":   func(c *Config) { c.Attempt = -1 },
		"a detection time of 1ms is less than 50ms":              func(c *Config) { c.Detection = time.Millisecond },
		"it listens on all interfaces: say by which address":     func(c *Config) { c.Listen = "0.0.0.0" },
		"listening at nowhere.invalid:0":                         func(c *Config) { c.Listen = "nowhere.invalid" },
		`the port "http" to advertise is not a number from 1 to`: func(c *Config) { c.Advertise = "host:http" },
		"a connect timeout of -1ns is less than 0":               func(c *Config) { c.ConnectTimeout = -1 },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, text)
	}
	cfg := good
	cfg.Listen, cfg.Advertise = "0.0.0.0", "myhost"
	n, err := New(cfg)
	require.NoError(t, err)
	require.Regexp(t, `^myhost:\d+$`, n.Address())
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

// TestHandshakeIsTriedAgain cuts the first connections in their handshakes: nobody is
// there yet who could be lost.
func TestHandshakeIsTriedAgain(t *testing.T) {
	cuts := make(chan int64, 5)
	for _, after := range []int64{0, 7, 95, 96, 135} { // the hello has 96 bytes, the proof 40
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
