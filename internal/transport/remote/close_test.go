package remote

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
)

// TestCloseFlushes requires that messages that were sent before Close arrive, and that no
// network fails when another worker closes its network first.
func TestCloseFlushes(t *testing.T) {
	const messages = 50
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		j := connected(t, 3, func(_ int, c *Config) { c.Credits = 200 })
		rows := j.rows(1000)
		var keepers []*keeper
		for w := range 3 {
			k := newKeeper(2 * messages)
			keepers = append(keepers, k)
			j.listen(at(0, 0, w), k)
		}
		send := func(from, to int) {
			s := j.dial(from, at(0, 0, to))
			for range messages {
				rows.Retain()
				require.NoError(t, s.Send(soon(t), transport.Message{Shard: from, Rows: rows}))
			}
		}
		// Each worker sends messages to the workers that close after it, and then closes its
		// network at once.
		for i, w := range order {
			for _, to := range order[i+1:] {
				send(w, to)
			}
			start := time.Now()
			require.NoError(t, j.nets[w].Close())
			require.Less(t, time.Since(start), closeTimeout, "Close must not wait until the other workers close their networks")
			for _, to := range order[i+1:] {
				for range messages {
					m := keepers[to].next(t)
					require.Equal(t, w, m.Shard)
					m.Release()
				}
			}
		}
		rows.Release()
		j.noFailures()
	}
}

// TestSendToAWorkerThatHasLeft requires that Send to a worker that has left returns an error,
// and that the sender's network does not fail.
func TestSendToAWorkerThatHasLeft(t *testing.T) {
	j := connected(t, 3, nil)
	k := newKeeper(2)
	j.listen(at(0, 0, 1), k)
	j.listen(at(0, 0, 2), k.sibling())
	s, other, waits := j.dial(0, at(0, 0, 1)), j.dial(0, at(0, 0, 2)), j.dial(0, at(9, 0, 1))
	require.NoError(t, s.Send(soon(t), transport.Message{}))
	k.next(t)
	waiting := make(chan error, 1)
	go func() { waiting <- waits.Send(soon(t), transport.Message{Rows: j.rows(1)}) }()
	require.NoError(t, j.nets[1].Close())
	err := <-waiting
	require.ErrorIs(t, err, ErrLeft)
	require.EqualError(t, err, "worker 1 ("+j.nets[1].Address()+") has left: it closed its network")
	require.Equal(t, err, s.Send(soon(t), transport.Message{Rows: j.rows(1)}))
	require.NoError(t, other.Send(soon(t), transport.Message{Seq: 7}))
	require.EqualValues(t, 7, k.next(t).Seq)
	j.close()
	j.noFailures()
}

// TestSendOnAConnectionThatHasJustEnded requires that Send names the other worker if the connection ends
// before senders are told why, so that the failure is known to follow from that of the worker. If the network
// has failed meanwhile, Send returns that failure.
func TestSendOnAConnectionThatHasJustEnded(t *testing.T) {
	for _, failed := range []bool{false, true} {
		j := connected(t, 2, nil)
		k := newKeeper(1)
		j.listen(at(0, 0, 1), k)
		s := j.dial(0, at(0, 0, 1))
		require.NoError(t, s.Send(soon(t), transport.Message{}))
		k.next(t)
		n := j.nets[0]
		want := "worker 1 (" + j.nets[1].Address() + ") has left: its connection has ended"
		if failed {
			n.mu.Lock()
			n.err = n.lost(1, "there", "is gone", ErrSilent)
			n.mu.Unlock()
			want = "worker 1 (there) is gone"
		}
		n.peers[1].conn.end()
		err := s.Send(soon(t), transport.Message{})
		var peer *PeerError
		require.ErrorAs(t, err, &peer)
		require.Equal(t, 1, peer.Rank)
		require.EqualError(t, err, want)
		j.close()
	}
}

// TestUseAfterClose requires that calls after Close return ErrClosed, and that a waiting call
// of Send returns ErrClosed too.
func TestUseAfterClose(t *testing.T) {
	j := connected(t, 2, nil)
	s := j.dial(0, at(0, 0, 1))
	waiting := make(chan error, 1)
	go func() { waiting <- s.Send(soon(t), transport.Message{Rows: j.rows(1)}) }()
	require.NoError(t, j.nets[0].Close())
	require.NoError(t, j.nets[1].Close())
	require.ErrorIs(t, <-waiting, transport.ErrClosed)
	require.ErrorIs(t, s.Send(soon(t), transport.Message{Rows: j.rows(1)}), transport.ErrClosed)
	require.ErrorIs(t, j.nets[0].Listen(at(0, 0, 0), discard()), transport.ErrClosed)
	_, err := j.nets[0].Dial(at(0, 0, 0))
	require.ErrorIs(t, err, transport.ErrClosed)
	_, err = j.nets[1].Dial(at(0, 0, 0))
	require.ErrorIs(t, err, transport.ErrClosed)
	require.NoError(t, j.nets[0].Close())
	j.noFailures()
}

// TestFailedNetworkLeavesQuietly requires that other workers do not consider a worker lost if
// its network has failed because of a third worker and it then closes the network.
func TestFailedNetworkLeavesQuietly(t *testing.T) {
	j := connected(t, 3, nil)
	k := newKeeper(9)
	for w := range 3 {
		j.listen(at(0, 0, w), k.sibling())
	}
	for _, way := range [][2]int{{0, 1}, {1, 0}, {1, 2}, {0, 2}} {
		require.NoError(t, j.dial(way[0], at(0, 0, way[1])).Send(soon(t), transport.Message{}))
		k.next(t)
	}
	j.nets[2].mu.Lock()
	for _, c := range j.nets[2].all { // simulates the death of worker 2
		if c.worker == 1 {
			c.nc.Close()
		}
	}
	j.nets[2].mu.Unlock()
	require.Equal(t, 2, j.failure(1).Rank)
	require.NoError(t, j.nets[1].Close())
	s := j.dial(0, at(0, 0, 1))
	for { // ends when the good-bye of worker 1 has arrived
		if err := s.Send(soon(t), transport.Message{}); err != nil {
			require.ErrorIs(t, err, ErrLeft)
			break
		}
	}
	j.mu.Lock()
	require.Empty(t, j.fails[0])
	j.mu.Unlock()
}

// TestAbandonedNetworkDoesNotWait closes the network of a worker while another worker does not run:
// what passes between them is held. Close must not wait for the other worker if the network was
// abandoned.
func TestAbandonedNetworkDoesNotWait(t *testing.T) {
	j := newJob(t, 2, func(_ int, c *Config) { c.Detection = time.Minute })
	valve, err := middlebox.NewValve(j.nets[1].Address())
	require.NoError(t, err)
	defer valve.Close()
	require.NoError(t, j.nets[0].Connect([]string{"", valve.Address()}))
	require.NoError(t, j.nets[1].Connect(j.addresses()))
	k := newKeeper(9)
	j.listen(at(0, 0, 1), k)
	s := j.dial(0, at(0, 0, 1))
	require.NoError(t, s.Send(soon(t), transport.Message{}))
	k.next(t)
	valve.Hold()
	require.NoError(t, s.Send(soon(t), transport.Message{}))
	j.nets[0].Abandon()
	start := time.Now()
	require.NoError(t, j.nets[0].Close())
	require.Less(t, time.Since(start), closeTimeout/2)
	j.nets[1].Abandon()
	require.NoError(t, j.nets[1].Close())
}

// TestLeaveWhileConnecting requires that a worker, at either end, that closes its network while
// a connection is being made does not count as lost, unless it has sent a frame without a
// good-bye.
func TestLeaveWhileConnecting(t *testing.T) {
	met := func(from *Network, to *Network, worker int) net.Conn {
		nc, err := from.cfg.Port.Dial(soon(t), to.Address(), from.hello(worker))
		require.NoError(t, err)
		return nc
	}
	t.Run("hangs up", func(t *testing.T) {
		j := connected(t, 2, nil)
		require.NoError(t, met(j.nets[0], j.nets[1], 1).Close())
		for { // ends when worker 1 has noticed the end of the connection, so that it accepts worker 0 again
			j.nets[1].mu.Lock()
			_, in := j.nets[1].incoming[0]
			known := len(j.nets[1].all) == 1
			j.nets[1].mu.Unlock()
			if known && !in {
				break
			}
			runtime.Gosched()
		}
		j.noFailures()
	})
	t.Run("after a frame", func(t *testing.T) {
		j := connected(t, 2, nil)
		nc := met(j.nets[0], j.nets[1], 1)
		_, err := nc.Write(numbered(0, frame(kindBeat, true)))
		require.NoError(t, err)
		require.NoError(t, nc.Close())
		require.Equal(t, "closed its connection without a good-bye", j.failure(1).Reason)
		require.Equal(t, j.nets[0].Address(), j.failure(1).Address, "the error must have the address of the worker's port, and not the address of the worker's end of the connection")
	})
	for _, end := range []string{"dialer", "listener"} {
		t.Run(end+" says good-bye", func(t *testing.T) {
			j := connected(t, 2, nil)
			nc := met(j.nets[0], j.nets[1], 1)
			n := j.nets[0]
			n.mu.Lock()
			n.closed = true // simulates that the network is closed after the handshake
			c := n.newConn(nc, 1, "test")
			if end == "listener" {
				n.adopt(c, newIncoming(c))
			} else {
				p := newPeer(n, 1)
				p.conn = c
				n.adopt(c, p)
			}
			n.mu.Unlock()
			c.done.Wait()
			require.False(t, c.lost)
			require.True(t, c.peerLeft, "the other side must answer the good-bye")
			n.mu.Lock()
			n.closed = false // so that the cleanup of the test closes the network
			n.mu.Unlock()
			j.noFailures()
		})
	}
}
