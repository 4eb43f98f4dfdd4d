package precopy

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
)

// TestOrders requires that processes take what they are told to, worker 0 too, from several workers, once, and drop
// what a later order does not name.
func TestOrders(t *testing.T) {
	g := newGroup(t, 4, nil)
	out := g.nodes[0].Direct(t.Context(), []Order{g.order(0, 1), g.order(3, 1, 2), g.order(2)})
	require.Equal(t, []Outcome{
		{Shards: 4, Bytes: out[0].Bytes},
		{Shards: 8, Bytes: out[1].Bytes},
		{},
	}, out)
	require.Greater(t, out[0].Bytes, int64(350*2*8))
	g.requireRows(0, 4, 5, 6, 7)
	g.requireRows(3, 4, 5, 6, 7, 8, 9, 10, 11)
	g.requireRows(2)
	out = g.nodes[0].Direct(t.Context(), []Order{g.order(3, 2)})
	require.Equal(t, []Outcome{{Shards: 4}}, out, "nothing is copied twice")
	g.requireRows(3, 8, 9, 10, 11)
}

// TestWhatIsLeft requires that shards which cannot be given, and shards without room, are left out with a reason, and
// that all others are taken.
func TestWhatIsLeft(t *testing.T) {
	g := newGroup(t, 3, nil)
	o := g.order(2, 1)
	o.Takes[0].Shards = append(o.Takes[0].Shards, 8)
	o.Takes = append(o.Takes, Take{"another", g.process(1), []int{4}})
	g.stores[1].give = func(_ string, port, shard, piece int) error {
		if port == 1 && shard == 7 {
			return errors.New("it is gone")
		}
		if port == 0 && shard == 4 && piece == 2 {
			return errors.New("its file is damaged")
		}
		return nil
	}
	out := g.nodes[0].Direct(t.Context(), []Order{o})[0]
	require.Equal(t, []any{2, 4}, []any{out.Shards, out.Left})
	require.Contains(t, out.Because, "does not have the rows yet")
	g.requireRows(2, 5, 6)

	g = newGroup(t, 3, nil)
	g.stores[2].room = 2000
	out = g.nodes[0].Direct(t.Context(), []Order{g.order(2, 1)})[0]
	require.Equal(t, []any{2, 2}, []any{out.Shards, out.Left})
	require.Contains(t, out.Because, "no room")
	g.requireRows(2, 5, 6)
	g.stores[2].room += roomOfStore - 2000
}

// TestOffersThatLie requires that a worker which announces other rows than it sends is given up, and that nothing
// of them is kept.
func TestOffersThatLie(t *testing.T) {
	for name, lie := range map[string]func(p *task.PortSize){
		"more rows":   func(p *task.PortSize) { p.Rows++ },
		"fewer rows":  func(p *task.PortSize) { p.Rows-- },
		"fewer bytes": func(p *task.PortSize) { p.Bytes-- },
		"no bytes":    func(p *task.PortSize) { p.Bytes = 0 },
		"negative":    func(p *task.PortSize) { p.Bytes = -1 },
		"too many":    func(p *task.PortSize) { p.Bytes = maxBytes + 1 },
		"ports":       func(p *task.PortSize) { p.Port = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 2, nil)
			g.stores[1].offer = func(_ string, shard int, sizes []task.PortSize) []task.PortSize {
				if shard == 7 {
					lie(&sizes[1])
				}
				return sizes
			}
			out := g.nodes[0].Direct(t.Context(), []Order{g.order(0, 1)})[0]
			require.Equal(t, []any{3, 1}, []any{out.Shards, out.Left}, out.Because)
			require.Contains(t, out.Because, "no message of this protocol")
			g.requireRows(0, 4, 5, 6)
		})
	}
}

// TestDamagedRows damages bytes of connections, by seed: it flips, loses, repeats and exchanges them, and cuts
// connections. What is taken must have its rows, and whatever is left out has a reason.
func TestDamagedRows(t *testing.T) {
	struck, whole := 0, 0
	for seed := range uint64(testsize.Of(testsize.Raced(80, 30), 1000)) {
		box := middlebox.New(middlebox.Draw(seed, 2, 8000))
		g := newGroup(t, 3, func(_ int, c *Config) { c.Patience = 100 * time.Millisecond })
		address, err := box.Before(g.addresses[1])
		require.NoError(t, err)
		g.addresses[1] = address
		g.addresses[2], err = box.Before(g.addresses[2])
		require.NoError(t, err)
		o := g.order(2, 1)
		o.Within = 300 * time.Millisecond
		out := g.nodes[0].Direct(t.Context(), []Order{o})[0]
		require.Equal(t, out.Left > 0, out.Because != "", "seed %d: %+v", seed, out)
		g.nodes[2].Close()
		box.Close()
		var taken []int
		for shard := 4; shard < 8; shard++ {
			if g.stores[2].taken[place{"q", shard}] != nil {
				taken = append(taken, shard)
			}
		}
		g.requireRows(2, taken...)
		if box.Struck() {
			struck++
		}
		if out.Left == 0 {
			whole++
		}
	}
	require.NotZero(t, struck)
	require.NotZero(t, whole)
	t.Logf("%d faults have struck, %d orders were executed", struck, whole)
}

// TestSilentProcesses requires that neither a silent worker nor a silent taker holds an order for longer than its time,
// and that no goroutine is left then.
func TestSilentProcesses(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var held []net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			nc, err := silent.Accept()
			if err != nil {
				return
			}
			held = append(held, nc)
		}
	})
	defer func() {
		silent.Close()
		accepting.Wait()
		for _, nc := range held {
			nc.Close()
		}
	}()
	g := newGroup(t, 3, nil)
	g.addresses = append(g.addresses, silent.Addr().String())
	orders := []Order{g.order(1, 2), g.order(2, 3), g.order(3, 1)}
	for i := range orders[1:] { // the first one ends by itself
		orders[1+i].Within = 200 * time.Millisecond
	}
	began := time.Now()
	out := g.nodes[0].Direct(t.Context(), orders)
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, Outcome{Shards: 4, Bytes: out[0].Bytes}, out[0])
	for _, o := range out[1:] {
		require.Equal(t, []any{0, 4}, []any{o.Shards, o.Left})
		require.Contains(t, o.Because, "the time for it is over")
	}
}

// TestOrdersEnd requires that an order ends with its context, at once, in the process that takes rows too.
func TestOrdersEnd(t *testing.T) {
	g := newGroup(t, 3, nil)
	gives, release := make(chan struct{}), make(chan struct{})
	g.stores[2].give = func(_ string, _, shard, _ int) error {
		if shard == 11 {
			close(gives)
			<-release
			return errors.New("too late")
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := make(chan []Outcome)
	go func() { over <- g.nodes[0].Direct(ctx, []Order{g.order(1, 2)}) }()
	<-gives
	cancel(errors.New("the attempt has ended"))
	require.Equal(t, 4, (<-over)[0].Left)
	g.nodes[1].Close() // the taker does not wait for the worker
	close(release)
	g.requireRows(1, 8, 9, 10)

	g.nodes[0].Close()
	out := g.nodes[0].Direct(t.Context(), []Order{g.order(1, 2)})
	require.Equal(t, 4, out[0].Left)
	require.Contains(t, out[0].Because, "closed")
}

// TestLostWorker requires that a process which loses the worker in the middle of its rows leaves out what it has not.
func TestLostWorker(t *testing.T) {
	g := newGroup(t, 3, nil)
	gives := make(chan struct{})
	g.stores[2].give = func(_ string, port, shard, piece int) error {
		if shard == 11 && port == 1 {
			g.nodes[2].mu.Lock()
			for nc := range g.nodes[2].accepts {
				shut(nc)
			}
			g.nodes[2].mu.Unlock()
			close(gives)
		}
		return nil
	}
	out := g.nodes[0].Direct(t.Context(), []Order{g.order(1, 2)})[0]
	<-gives
	require.Equal(t, []any{3, 1}, []any{out.Shards, out.Left})
	require.Contains(t, out.Because, "from worker 2")
	g.requireRows(1, 8, 9, 10)
}

// TestConnectionsOfOthers requires that connections which are not for this process are refused.
func TestConnectionsOfOthers(t *testing.T) {
	g := newGroup(t, 2, nil)
	for _, c := range []struct {
		h    peerlink.Hello
		want string
	}{
		{peerlink.Hello{Epoch: 3, From: 1, To: 1}, "this is worker 0, not 1"},
		{peerlink.Hello{Epoch: 3, From: 1, To: 0, Channel: 2}, "channel 2"},
		{peerlink.Hello{Epoch: 3, From: 1, To: 0, Channel: channelOrder}, "want one of worker 0"},
		{peerlink.Hello{Epoch: 2, From: 1, To: 0, Channel: channelTake}, "attempt 2"},
	} {
		c.h.Kind = peerlink.Precopy
		nc, err := g.nodes[1].cfg.Port.Dial(t.Context(), g.addresses[0], c.h)
		require.ErrorContains(t, err, c.want)
		require.Nil(t, nc)
	}
}

// TestNewerOrder requires that a new order ends the execution of the one before.
func TestNewerOrder(t *testing.T) {
	g := newGroup(t, 3, nil)
	gives, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	g.stores[2].give = func(string, int, int, int) error {
		once.Do(func() {
			close(gives)
			<-release
		})
		return nil
	}
	over := make(chan []Outcome)
	go func() { over <- g.nodes[0].Direct(t.Context(), []Order{g.order(0, 2)}) }()
	<-gives
	out := g.nodes[0].Direct(t.Context(), []Order{g.order(0, 1)})
	close(release)
	require.Equal(t, 4, (<-over)[0].Left)
	require.Equal(t, 4, out[0].Shards)
	g.requireRows(0, 4, 5, 6, 7)
}

// TestSupersededOrder requires that an order which was ended before it began drops no rows, as a later order
// may have taken them.
func TestSupersededOrder(t *testing.T) {
	g := newGroup(t, 3, nil)
	require.Equal(t, 4, g.nodes[0].Direct(t.Context(), []Order{g.order(0, 1)})[0].Shards)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 4, g.nodes[0].execute(over, g.order(0, 2)).Left)
	g.requireRows(0, 4, 5, 6, 7)
}

// TestClip requires that long reasons are cut.
func TestClip(t *testing.T) {
	require.Len(t, clip(string(make([]byte, 2*maxReason))), maxReason+len("…"))
	require.Equal(t, "short", clip("short"))
}
