package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/transport"
)

// Network is one worker's part of the network between the workers of an attempt. Its methods
// may be called from any goroutine.
type Network struct {
	cfg      Config
	mem      *transport.Mem // for messages between subtasks of this worker
	endpoint *peerlink.Opened
	codecs   codecs
	buffers  sync.Pool // pool of *[]byte

	ctx  context.Context // ends when the network closes
	stop context.CancelFunc
	work sync.WaitGroup

	placed chan struct{} // closed by Connect

	mu        sync.Mutex
	addresses []string
	closed    bool
	err       error // the first failure, or ErrClosed
	abandoned bool
	peers     map[int]*peer
	inboxes   map[transport.Address]*inbox
	incoming  map[int]*incoming // number of the worker at the other end -> connection
	conns     map[*conn]struct{}
	all       []*conn // all connections that have been started
}

var _ transport.Network = (*Network)(nil)

// New returns a network. It accepts the connections of other workers, but makes no connections
// until Connect sets their addresses. The caller must close the network.
func New(cfg Config) (*Network, error) {
	cfg, err := cfg.completed()
	if err != nil {
		return nil, fmt.Errorf("data network of worker %d: %w", cfg.Worker, err)
	}
	n := &Network{
		cfg: cfg, mem: transport.NewMem(cfg.Credits),
		codecs: codecs{mem: cfg.Allocator}, placed: make(chan struct{}),
		peers: make(map[int]*peer), inboxes: make(map[transport.Address]*inbox),
		incoming: make(map[int]*incoming), conns: make(map[*conn]struct{}),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.endpoint, err = cfg.Port.Open(peerlink.Endpoint{Kind: peerlink.Rows, Epoch: uint32(cfg.Attempt), Serve: n.serve})
	if err != nil {
		n.stop()
		return nil, fmt.Errorf("data network of worker %d: %w", cfg.Worker, errors.Join(err, n.mem.Close()))
	}
	n.work.Go(n.watch)
	return n, nil
}

// Address returns the address to which other workers connect, host:port.
func (n *Network) Address() string { return n.cfg.Port.Address() }

// Port returns the port of this worker, so that other packages can use it too.
func (n *Network) Port() *peerlink.Port { return n.cfg.Port }

// Where returns the address of the port of the given worker. Before Connect, it returns "" for
// all workers except this one.
func (n *Network) Where(worker int) string {
	if worker == n.cfg.Worker {
		return n.Address()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if worker < 0 || worker >= len(n.addresses) {
		return ""
	}
	return n.addresses[worker]
}

// Connect sets the addresses of the workers; addresses[i] is the address of worker i. The
// address of this worker is not used. Connect may be called only once. Connections are made
// when they are needed.
func (n *Network) Connect(addresses []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case len(addresses) != n.cfg.Workers:
		return fmt.Errorf("data network of worker %d: %d addresses for %d workers", n.cfg.Worker, len(addresses), n.cfg.Workers)
	case n.addresses != nil:
		return fmt.Errorf("data network of worker %d: it has the addresses already", n.cfg.Worker)
	}
	n.addresses = append([]string{}, addresses...)
	close(n.placed)
	return nil
}

// Listen makes r the receiver of an address of this worker. Other workers that already wait to
// send messages to this address get credits now.
func (n *Network) Listen(addr transport.Address, r transport.Receiver) error {
	if addr.Worker != n.cfg.Worker {
		return fmt.Errorf("listen on %v of worker %d: this is worker %d", addr, addr.Worker, n.cfg.Worker)
	}
	in := n.newInbox(addr, r)
	if err := n.mem.Listen(addr, in); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("listen on %v: %w", addr, transport.ErrClosed)
	}
	n.inboxes[addr] = in
	n.work.Go(in.run)
	for _, c := range n.incoming {
		c.open(in)
	}
	return nil
}

// Dial returns a sender to addr. If addr is an address of this worker, it must have a receiver.
// If addr is an address of another worker, Send waits until the address has a receiver.
func (n *Network) Dial(addr transport.Address) (transport.Sender, error) {
	if addr.Worker == n.cfg.Worker {
		return n.mem.Dial(addr)
	}
	p, err := n.peer(addr.Worker)
	if err != nil {
		return nil, fmt.Errorf("dial %v of worker %d: %w", addr, addr.Worker, err)
	}
	return p.sender(addr), nil
}

// peer returns the peer for another worker. The first call for a worker begins to connect to
// the worker.
func (n *Network) peer(worker int) (*peer, error) {
	if worker < 0 || worker >= n.cfg.Workers {
		return nil, fmt.Errorf("there is no worker %d among %d", worker, n.cfg.Workers)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, transport.ErrClosed
	}
	p := n.peers[worker]
	if p == nil {
		p = newPeer(n, worker)
		if n.err != nil {
			p.shut(n.err)
		}
		n.peers[worker] = p
		n.work.Go(p.connect)
	}
	return p, nil
}

// fail makes the network fail with err. Later calls have no effect. The connections stay open,
// so that other workers do not consider this worker lost.
func (n *Network) fail(err error) {
	n.mu.Lock()
	if n.err != nil || n.closed {
		n.mu.Unlock()
		return
	}
	n.err = err
	peers := n.allPeers()
	n.mu.Unlock()
	n.cfg.Logger.Error("the data network failed", "worker", n.cfg.Worker, "error", err)
	for _, p := range peers {
		p.shut(err)
	}
	if n.cfg.Fail != nil {
		n.cfg.Fail(err)
	}
}

// endedBefore returns why nothing can be sent to a worker if its connection has ended before fail or left has told
// the senders why: the failure of the network, or that the worker has left.
func (n *Network) endedBefore(p *peer) error {
	n.mu.Lock()
	err := n.err
	n.mu.Unlock()
	if err == nil {
		err = n.lost(p.worker, p.where(), "has left: its connection has ended", ErrLeft)
	}
	return err
}

func (n *Network) allPeers() []*peer {
	peers := make([]*peer, 0, len(n.peers))
	for _, p := range n.peers {
		peers = append(peers, p)
	}
	return peers
}

// adopt starts connection c. If the network has been closed meanwhile, adopt sends a good-bye,
// as the other side already uses the connection. The caller holds mu.
func (n *Network) adopt(c *conn, s side) {
	c.start(s)
	if n.closed {
		c.queueGoodbye(true)
		n.work.Go(c.done.Wait)
		return
	}
	n.conns[c] = struct{}{}
	n.all = append(n.all, c)
}

// forget removes a connection that has ended from the tables, so that watch no longer checks
// it.
func (n *Network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
	if in := n.incoming[c.worker]; in != nil && in.conn == c {
		delete(n.incoming, c.worker)
	}
}

// left is called when a good-bye has been received on connection c. The other worker has closed
// its network, so sending to it fails from now on.
func (n *Network) left(c *conn) {
	n.mu.Lock()
	delete(n.conns, c) // the silence of the other worker is not a failure any more
	p := n.peers[c.worker]
	n.mu.Unlock()
	if p != nil && !c.ended() {
		p.shut(n.lost(c.worker, p.where(), "has left: it closed its network", ErrLeft))
	}
}

// watch sends heartbeats on all connections, and makes the network fail if another worker is
// silent for too long. It runs until the network is closed.
func (n *Network) watch() {
	start := time.Now()
	w := silence.NewWatch(n.cfg.Detection, 0)
	t := time.NewTicker(w.Period)
	defer t.Stop()
	beaten := start
	beat := frame(kindBeat, false)
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-t.C:
		}
		now := time.Now()
		w.Tick(now.Sub(start))
		due := now.Sub(beaten) >= w.Beat
		if due {
			beaten = now
		}
		n.mu.Lock()
		conns := make([]*conn, 0, len(n.conns))
		for c := range n.conns {
			conns = append(conns, c)
		}
		n.mu.Unlock()
		for _, c := range conns {
			if due && !c.wrote.Swap(false) {
				c.post(slices.Clone(beat)) // a copy for each connection, as each frame gets a number
			}
			if c.judge(&w, now) == silence.Dead {
				c.silent(now)
			}
		}
	}
}

// silent makes the network fail, because nothing has arrived on connection c for too long, and
// ends the connection.
func (c *conn) silent(now time.Time) {
	d := now.Sub(c.lastHeard).Truncate(time.Millisecond)
	c.n.fail(c.n.lost(c.worker, c.address, fmt.Sprintf("was silent for %v", d), ErrSilent))
	c.end()
}

// Abandon says that nobody needs any more what this worker has sent, because its attempt has
// failed. Close then drops queued messages and waits only briefly for other workers, as one of them
// may not run: it may be the cause of the failure.
func (n *Network) Abandon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.abandoned = true
}

// Close sends all queued messages and a good-bye to the other workers, and waits until the
// network's goroutines have ended. It releases messages that have arrived but that no receiver
// has taken. After a failure of the network it drops queued messages. It returns an error if
// another worker did not read the queued messages within ten seconds.
func (n *Network) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	abandoned := n.abandoned
	failed := n.err != nil || abandoned
	if n.err == nil {
		n.err = transport.ErrClosed
	}
	peers, conns := n.allPeers(), n.all
	n.mu.Unlock()

	n.stop()
	n.endpoint.Close()
	for _, p := range peers {
		p.shut(transport.ErrClosed)
	}
	for _, c := range conns {
		c.queueGoodbye(failed)
		if abandoned {
			c.nc.SetDeadline(time.Now().Add(abandonTimeout))
		}
	}
	var errs []error
	for _, c := range conns {
		if err := c.waitEnded(); err != nil && !failed {
			errs = append(errs, err)
		}
	}
	n.work.Wait()
	for _, in := range n.inboxes {
		in.drain()
	}
	if err := n.mem.Close(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// buffer returns an empty buffer with a capacity of at least size bytes.
func (n *Network) buffer(size int) *[]byte {
	b, _ := n.buffers.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	if cap(*b) < size {
		*b = make([]byte, 0, size)
	}
	*b = (*b)[:0]
	return b
}

// recycle returns b to the pool of buffers.
func (n *Network) recycle(b *[]byte) {
	if cap(*b) <= keptBuffer {
		n.buffers.Put(b)
	}
}

// serve accepts a connection of another worker, or returns the error by which it is refused.
func (n *Network) serve(caller *peerlink.Caller) error {
	if err := n.check(&caller.Hello); err != nil {
		return err
	}
	worker := int(caller.Hello.From)
	c := n.newConn(caller.Conn, worker, cmp.Or(n.Where(worker), caller.RemoteAddr().String()))
	c.accepted = true
	in := newIncoming(c)
	n.mu.Lock()
	taken := n.incoming[worker] != nil
	if !taken {
		n.incoming[worker] = in
	}
	n.mu.Unlock()
	if taken {
		return peerlink.Refuse("worker %d has a connection already", worker)
	}
	if err := caller.Welcome(); err != nil {
		n.forget(c)
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, box := range n.inboxes {
		in.open(box)
	}
	n.adopt(c, in)
	return nil
}

// check returns an error if h is not a valid hello to this worker.
func (n *Network) check(h *peerlink.Hello) error {
	cfg := &n.cfg
	switch {
	case h.Sums != n.summed():
		return peerlink.Refuse("it sends rows with checksums: %t, this worker: %t; all must do the same", h.Sums, n.summed())
	case int64(h.Size) != int64(cfg.Workers):
		return peerlink.Refuse("it was started for %d workers, this one for %d", h.Size, cfg.Workers)
	case int64(h.To) != int64(cfg.Worker):
		return peerlink.Refuse("it connects to worker %d, this is worker %d", h.To, cfg.Worker)
	case h.From >= h.Size || h.From == h.To:
		return peerlink.Refuse("it says that it is worker %d of %d", h.From, h.Size)
	}
	return nil
}

// hello returns the hello for a connection to the given worker.
func (n *Network) hello(worker int) peerlink.Hello {
	return peerlink.Hello{
		Kind: peerlink.Rows, Epoch: uint32(n.cfg.Attempt), From: uint32(n.cfg.Worker), To: uint32(worker),
		Size: uint32(n.cfg.Workers), Sums: n.summed(),
	}
}
