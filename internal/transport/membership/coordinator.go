package membership

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// coordinator runs a core. It passes messages, the ends of connections and the passing of time
// to the core as events, one at a time, and sends the messages that the core commands.
type coordinator struct {
	cfg     Config
	start   time.Time
	local   *localLink
	stop    chan struct{}
	running sync.WaitGroup

	// The following fields are guarded by mu. Sending a message never waits, so mu is never
	// held for long.
	mu          sync.Mutex
	core        *core
	endpoint    *peerlink.Opened // nil if there are no other processes
	conns       map[int]*conn
	raw         map[net.Conn]struct{} // accepted connections that serve has not closed yet
	reportLocal func()                // reports the states of the local ranks to the core; nil until process 0 has its membership
	next        int                   // number of the next connection
	closed      bool
}

// helloWait is the time within which the hello must arrive on a new connection.
const helloWait = 5 * time.Second

// closeWait is how long the closing of a link waits for the other side to read everything.
const closeWait = 500 * time.Millisecond

// newCoordinator starts a coordinator, whose group process 0 has then joined.
func newCoordinator(ctx context.Context, cfg Config) (*coordinator, error) {
	c := &coordinator{
		cfg:   cfg,
		start: time.Now(),
		stop:  make(chan struct{}),
		conns: make(map[int]*conn),
		raw:   make(map[net.Conn]struct{}),
		core: newCore(settings{
			processes: cfg.Processes, size: cfg.Size,
			detection: cfg.Detection, stall: cfg.StallTimeout, join: cfg.JoinTimeout,
		}),
	}
	c.local = newLocalLink(c)
	address, err := advertised(ctx, cfg.DataAddress, netip.Addr{})
	if err != nil {
		return nil, err
	}
	if cfg.Processes > 1 {
		c.endpoint, err = cfg.Port.Open(peerlink.Endpoint{
			Kind: peerlink.Control, Scope: cfg.Group, Epoch: cfg.Attempt, Serve: c.accept, Distrust: c.distrust, Replaced: c.replaced,
		})
		if err != nil {
			return nil, err
		}
	}
	c.step(func(now time.Duration) []command {
		return c.core.handleHello(now, localConn, cfg.hello(address), netip.Addr{}, netip.Addr{})
	})
	c.running.Go(c.tick)
	return c, nil
}

// step passes one event to the core and carries out the commands that the core returns.
func (c *coordinator) step(event func(now time.Duration) []command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.core.phase
	for _, cmd := range event(time.Since(c.start)) {
		c.do(cmd)
	}
	if after := c.core.phase; after != before {
		c.log(after)
	}
}

// do carries out a command.
func (c *coordinator) do(cmd command) {
	if cmd.conn == localConn {
		c.local.deliver(cmd.message)
		return
	}
	to := c.conns[cmd.conn]
	if to == nil {
		return
	}
	if r, ok := cmd.message.(refuse); ok {
		c.cfg.Logger.Warn("refused a process", "from", to.nc.RemoteAddr(), "reason", r.cause)
	}
	if cmd.message != nil {
		to.send(cmd.message)
	}
	if cmd.end {
		to.end()
		to.nc.SetReadDeadline(time.Now().Add(c.cfg.Detection)) // time for the process to read the reason
	}
}

func (c *coordinator) log(p phase) {
	level := hclog.Info
	args := []any{"group", c.cfg.Group, "attempt", c.cfg.Attempt, "phase", p}
	if p == failed {
		level, args = hclog.Error, append(args, "cause", c.core.cause)
	}
	c.cfg.Logger.Log(level, "group", args...)
}

func (c *coordinator) receive(id int, m message) {
	c.step(func(now time.Duration) []command { return c.core.receive(now, id, m) })
}

// giveUp fails a group that is not complete yet, for the given reason.
func (c *coordinator) giveUp(reason error) {
	c.step(func(time.Duration) []command { return c.core.giveUp(reason) })
}

// tick calls tickCore in every watch.Period, until stop is closed.
func (c *coordinator) tick() {
	t := time.NewTicker(c.core.watch.Period)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			c.step(c.tickCore)
		}
	}
}

// tickCore passes the time to the core. Before that, for the connections that have been silent
// for some time, it reports to the core which of them have unread bytes.
func (c *coordinator) tickCore(now time.Duration) []command {
	for _, id := range c.core.suspects() {
		if link := c.conns[id]; link != nil && link.unread() {
			c.core.noteUnread(id)
		}
	}
	return c.core.tick(now)
}

// accept accepts a new connection and starts serve for it. It returns an error if the coordinator
// has been closed.
func (c *coordinator) accept(caller *peerlink.Caller) error {
	if err := caller.Welcome(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	nc := caller.Conn
	c.raw[nc] = struct{}{}
	c.running.Go(func() { c.serve(nc) })
	return nil
}

// serve reads the messages of a connection, from its hello to its end, and closes the
// connection.
func (c *coordinator) serve(nc net.Conn) {
	defer func() {
		c.mu.Lock()
		delete(c.raw, nc)
		c.mu.Unlock()
		nc.Close()
	}()
	h, ok := c.readHello(nc)
	c.mu.Lock()
	if !ok || c.closed {
		c.mu.Unlock()
		return
	}
	link := newConn(nc, c.cfg.Detection)
	link.received = 1 // readHello has read the hello
	c.next++
	id := c.next
	c.conns[id] = link
	c.mu.Unlock()

	c.step(func(now time.Duration) []command {
		return c.core.handleHello(now, id, h, ipOf(nc.RemoteAddr()), ipOf(nc.LocalAddr()))
	})
	for {
		m, err := link.receive()
		if err != nil {
			c.lose(id, err)
			if errors.Is(err, ErrDamaged) {
				link.end()
				link.drain(c.cfg.Detection) // time for the process to read the reason
			}
			break
		}
		c.receive(id, m)
	}
	c.mu.Lock()
	delete(c.conns, id)
	c.mu.Unlock()
	link.end() // a process that has closed only its own sending direction still gets the queued messages
	<-link.written
}

// lose reports to the core that a connection has ended with err. Before that it reports the
// states of the local ranks to the core, so that the error can name the operation in which the
// loss was noticed.
func (c *coordinator) lose(id int, err error) {
	c.mu.Lock()
	look, closed, live := c.reportLocal, c.closed, c.core.phase == running
	c.mu.Unlock()
	if closed {
		return // the connection ended because the coordinator was closed
	}
	if live && look != nil {
		look()
	}
	reason, kind := lossReason(err)
	c.step(func(now time.Duration) []command { return c.core.lose(now, id, reason, kind) })
}

// readHello reads the hello of a connection.
func (c *coordinator) readHello(nc net.Conn) (hello, bool) {
	nc.SetDeadline(time.Now().Add(helloWait))
	var scratch []byte
	m, err := readFrame(nc, 0, &scratch)
	h, ok := m.(hello)
	if !ok {
		c.cfg.Logger.Warn("closed a connection without a hello", "from", nc.RemoteAddr(), "error", err)
		return h, false
	}
	nc.SetDeadline(time.Time{})
	return h, true
}

// distrust reports to the core that the other side of a connection did not prove that it knows
// the secret. The core informs the processes that wait for the group to form.
func (c *coordinator) distrust(from net.Addr, err error) {
	c.step(func(time.Duration) []command { return c.core.refuseWithoutSecret(from.String(), err) })
}

// replaced ends the group because a later attempt of it has begun.
func (c *coordinator) replaced(attempt uint32) {
	c.step(func(time.Duration) []command { return c.core.replaced(attempt) })
}

// ipOf returns the IP address in a, or the invalid address if a has no IP address.
func ipOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// flush waits, for at most closeWait, until the queued messages to other processes are written
// to their sockets.
func (c *coordinator) flush() {
	c.mu.Lock()
	links := make([]*conn, 0, len(c.conns))
	for _, link := range c.conns {
		links = append(links, link)
	}
	c.mu.Unlock()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	for _, link := range links {
		link.flush(late.C)
	}
}

// close ends all connections after the queued messages have been sent. It waits, for at most
// closeWait, until the other processes have read them.
func (c *coordinator) close() {
	c.mu.Lock()
	c.closed = true
	for _, link := range c.conns {
		link.end()
	}
	c.mu.Unlock()
	close(c.stop)
	if c.endpoint != nil {
		c.endpoint.Close()
	}
	c.local.close()
	done := make(chan struct{})
	go func() { c.running.Wait(); close(done) }()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	c.mu.Lock()
	for nc := range c.raw {
		nc.Close()
	}
	c.mu.Unlock()
	<-done
}
