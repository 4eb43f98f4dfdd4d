package membership

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMessagesBeforeACloseAreReceived requires that the last messages of a peer that has closed
// the connection are received, even if a write to the peer has failed before.
func TestMessagesBeforeACloseAreReceived(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("on other systems, received bytes are lost when the connection is reset")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	peer, err := l.Accept()
	require.NoError(t, err)
	words, err := appendFrame(nil, 0, bye{})
	require.NoError(t, err)
	_, err = peer.Write(words)
	require.NoError(t, err)
	require.NoError(t, peer.(*net.TCPConn).SetLinger(0))
	require.NoError(t, peer.Close())

	c := newConn(nc, time.Second)
	defer c.close()
	for ended := false; !ended; {
		c.send(beat{})
		c.flush(nil)
		select {
		case <-c.written:
			ended = true
		default:
		}
	}
	m, err := c.receive()
	require.NoError(t, err)
	require.Equal(t, bye{}, m)
	_, err = c.receive()
	require.Error(t, err)
}

// goodbyes is a link that confirms a good-bye, and makes the group fail before Leave has
// processed the confirmation.
type goodbyes struct {
	m    *Membership
	got  chan message
	over chan struct{}
}

func (g *goodbyes) send(m message) {
	if _, ok := m.(goodbye); ok {
		g.got <- bye{}
		<-g.m.left
		g.m.settle(&PeerError{Rank: 0, Reason: "closed its connection"})
	}
}

func (g *goodbyes) receive() (message, error) {
	select {
	case m := <-g.got:
		return m, nil
	case <-g.over:
		return nil, net.ErrClosed
	}
}

func (*goodbyes) unread() bool { return false }
func (*goodbyes) end()         {}

func (*goodbyes) drain(time.Duration) {}

func (g *goodbyes) close() { close(g.over) }

// TestLeavingIsNoFailure requires that Leave returns nil if the coordinator has confirmed the
// good-bye, even if the group fails after that.
func TestLeavingIsNoFailure(t *testing.T) {
	for range 64 { // the select in Leave chooses at random between two ready channels
		g := &goodbyes{got: make(chan message, 1), over: make(chan struct{})}
		port := newPort(t, nil)
		cfg, err := Config{Process: 1, Processes: 2, Ranks: []int{1}, Size: 2, Coordinator: "127.0.0.1:1", Port: port}.completed()
		require.NoError(t, port.Close())
		require.NoError(t, err)
		m := &Membership{cfg: cfg, link: g, start: time.Now(), stop: make(chan struct{}), failed: make(chan struct{}), left: make(chan struct{})}
		m.sampler = newSampler(cfg, g, time.Second)
		g.m = m
		m.running.Go(m.listen)
		require.NoError(t, m.Leave(t.Context()))
		g.close()
		m.running.Wait()
	}
}
