package copies

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/cputime"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Config describes an Exchange.
type Config struct {
	// Port is the port of this process. The Exchange must be closed before it.
	Port *peerlink.Port
	// Where returns the address of the port of another worker. It is called from any goroutine,
	// before each connection.
	Where func(worker int) string

	Worker  int // number of this worker, from 0
	Workers int // number of all workers
	// Sharing is the number of workers that share states and hold copies, the first; 0 means all. The
	// others only give what they hold of From, and leave when the first have called Inherit.
	Sharing int
	Attempt uint32 // number of the attempt of the job; connections of other attempts are refused

	// Copies is how many other workers hold each piece, if there are as many; 0 means 1. So many
	// workers may be lost at a time.
	Copies int

	// Store is what this process holds. It may be used by only one open Exchange.
	Store *Store
	// From has the states from which the attempt continues, as Choose has returned them. It is the
	// same in all workers. The Store drops all others, and copies that are missing are made again.
	From []Choice

	// Patience is the time after which a connection on which a peer neither sends nor takes what
	// it should is given up; 0 means 30 seconds. It is then made anew.
	Patience time.Duration

	// Write is called with each state whose pieces this worker has put into the Store, before the state
	// is complete. It may write them to a file. Its context ends when the Exchange is closed. It is called
	// from one goroutine, and may be nil.
	Write func(ctx context.Context, s State)

	// Room says whether the Store may take so many bytes more for a piece of this worker; nil means that it
	// always may. If it may not, the state is void, and the Store lets go of memory for reuse. Pieces of
	// others are taken in any case, as their worker would make a state void too. It is called from one
	// goroutine.
	Room func(bytes int64) bool

	// Spent is told which processor time this worker has spent on pieces of a queue: to make, write, send
	// and receive them. Messages that are short are not counted. It is called from any goroutine, and may be nil.
	Spent func(queue string, spent time.Duration)

	Logger hclog.Logger // may be nil
}

// Exchange copies the states of queues between the workers of one attempt. Its methods may be called
// from any goroutine.
type Exchange struct {
	cfg      Config
	endpoint *peerlink.Opened

	ctx  context.Context // ends when the Exchange closes
	stop context.CancelFunc
	work sync.WaitGroup
	wake chan struct{} // has an element if there may be something to share

	mu      sync.Mutex
	closed  bool
	core    *Core
	links   []*link             // by worker; nil for this one
	waiting []shared            // states that are to be shared
	accepts map[net.Conn]accept // accepted connections
	changed chan struct{}       // closed when a state is settled; nil if nobody waits for that
}

// shared is a state that is to be shared.
type shared struct {
	State
	first  int
	pieces iter.Seq2[[]byte, error]
}

// New begins to exchange copies. The Exchange of an earlier attempt with the same Store must be
// closed. The caller must close the Exchange. If some workers only give, the others must call Inherit.
func New(cfg Config) (*Exchange, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	x := &Exchange{cfg: cfg, wake: make(chan struct{}, 1), accepts: make(map[net.Conn]accept)}
	x.ctx, x.stop = context.WithCancel(context.Background())
	x.core = NewCore(cfg.Worker, cfg.Sharing, cfg.Copies, cfg.Store, x.send, x.settled)
	x.links = make([]*link, cfg.Workers)
	for w := range x.links {
		if w != cfg.Worker {
			x.links[w] = &link{x: x, to: w, wake: make(chan struct{}, 1)}
		}
	}
	cfg.Store.Keep(cfg.From, cfg.Worker, cfg.Sharing)
	var err error
	x.endpoint, err = cfg.Port.Open(peerlink.Endpoint{Kind: peerlink.Copies, Epoch: cfg.Attempt, Serve: x.serve})
	if err != nil {
		x.stop()
		return nil, fmt.Errorf("exchange copies of the states of queues: %w", err)
	}
	x.mu.Lock()
	x.core.Expect(cfg.From)
	x.core.Repair(slices.DeleteFunc(slices.Clone(cfg.From), x.inheritsAny))
	x.mu.Unlock()
	x.work.Go((&sharer{x: x}).run)
	return x, nil
}

// complete checks the configuration and sets its defaults.
func (c *Config) complete() error {
	switch {
	case c.Port == nil || c.Store == nil || c.Where == nil && c.Workers > 1:
		return errors.New("exchange copies of the states of queues: Port, Store and Where must be set")
	case c.Worker < 0 || c.Worker >= c.Workers:
		return fmt.Errorf("exchange copies of the states of queues: there is no worker %d of %d", c.Worker, c.Workers)
	case c.Sharing < 0 || c.Sharing > c.Workers:
		return fmt.Errorf("exchange copies of the states of queues: %d of %d workers share them", c.Sharing, c.Workers)
	case c.Copies < 0 || c.Patience < 0:
		return fmt.Errorf("exchange copies of the states of queues: Copies is %d and Patience %v: they must not be negative", c.Copies, c.Patience)
	}
	for _, choice := range c.From {
		if err := choice.checkHolders(c.Workers); err != nil {
			return fmt.Errorf("exchange copies of the states of queues: %w", err)
		}
	}
	if c.Copies == 0 {
		c.Copies = 1
	}
	if c.Sharing == 0 {
		c.Sharing = c.Workers
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	if c.Spent == nil {
		c.Spent = func(string, time.Duration) {}
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return nil
}

// Share hands over what this worker has of a new state of a queue: pieces whose numbers begin with
// first, each valid until the next is yielded. It returns at once, and a goroutine of the Exchange
// ranges over the pieces. Every worker calls Share for every state, and with another set of pieces.
// No new state may begin before worker 0 says that the one before is Settled, unless no superstep
// follows. A state that is not newer than one that was shared is ignored.
func (x *Exchange) Share(s State, first int, pieces iter.Seq2[[]byte, error]) {
	if err := s.check(); err != nil {
		x.cfg.Logger.Warn("the state of a queue cannot be copied", "error", err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || !x.core.Begin(s) {
		return
	}
	x.waiting = append(x.waiting, shared{s, first, pieces})
	wake(x.wake)
}

// Settled reports whether no state of a queue is under way, so that a new state may begin. Only
// worker 0 knows that.
func (x *Exchange) Settled(queue string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.core.UnderWay(queue)
}

// Voided reports in worker 0 whether the newest state of a queue that is not under way any more is not
// complete, because a worker could not share its pieces or had no room.
func (x *Exchange) Voided(queue string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.core.Voided(queue)
}

// Await waits in worker 0 until no state of a queue is under way.
func (x *Exchange) Await(ctx context.Context, queue string) error {
	return x.await(ctx, fmt.Sprintf("the state of queue %q is not copied", queue), func() bool { return !x.core.UnderWay(queue) })
}

// await waits until done returns true, which is called with mu held: at once, and whenever a state is settled.
// undone says in the error what was awaited.
func (x *Exchange) await(ctx context.Context, undone string, done func() bool) error {
	for {
		x.mu.Lock()
		if done() {
			x.mu.Unlock()
			return nil
		}
		if x.changed == nil {
			x.changed = make(chan struct{})
		}
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s yet: %w", undone, context.Cause(ctx))
		case <-x.ctx.Done():
			return fmt.Errorf("%s: %w", undone, errClosed)
		}
	}
}

var errNoRoom = errors.New("the memory of the job has no room for it: give the job more with --memory; it is copied less often, and this is not logged again")

var errClosed = errors.New("the exchange of copies is closed")

// Close ends the Exchange, and returns when its goroutines have ended. The Store stays as it is.
// Closing again does nothing.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.stop()
	x.endpoint.Close()
	x.mu.Lock()
	for nc := range x.accepts {
		shut(nc)
	}
	x.mu.Unlock()
	x.work.Wait()
}

// shut closes a connection at once. It does not wait for the peer, as closing a TLS connection may.
func shut(nc net.Conn) { peerlink.Socket(nc).Close() }

// wake puts an element into a channel that has room for one, unless it has one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sharer puts the pieces of states into the Store, and sends copies.
type sharer struct {
	x *Exchange
	State
	number  int                      // of the next piece
	failed  error                    // of the state
	crowded bool                     // the log says that there is no room
	piece   func([]byte, error) bool // takes a piece; made once
}

// run shares the waiting states until the Exchange closes.
func (s *sharer) run() {
	s.piece = s.take
	for {
		next, some := s.x.nextShared()
		if some {
			s.share(next)
			continue
		}
		select {
		case <-s.x.wake:
		case <-s.x.ctx.Done():
			return
		}
	}
}

// nextShared removes the first of the waiting states that need not wait for another of their queue.
func (x *Exchange) nextShared() (next shared, some bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.waiting, func(s shared) bool { return !x.core.Waits(s.State) })
	if x.closed || i < 0 {
		return shared{}, false
	}
	next = x.waiting[i]
	x.waiting = slices.Delete(x.waiting, i, i+1)
	return next, true
}

// share shares a state. If a piece fails, the state is given up, and the job goes on: a later state
// may be copied.
func (s *sharer) share(next shared) {
	s.State, s.number, s.failed = next.State, next.first, nil
	s.x.cfg.Spent(s.Queue, cputime.Of(func() {
		next.pieces(s.piece)
		if s.x.cfg.Write != nil && s.failed == nil && s.x.ctx.Err() == nil {
			s.x.cfg.Write(s.x.ctx, s.State)
		}
	}))
	if s.x.ctx.Err() != nil {
		return
	}
	switch {
	case errors.Is(s.failed, errNoRoom) && s.crowded: // it was logged
	case s.failed != nil:
		s.crowded = s.crowded || errors.Is(s.failed, errNoRoom)
		s.x.cfg.Logger.Warn("the state of a queue is not copied", "queue", s.Queue, "superstep", s.Superstep, "error", s.failed)
	}
	s.x.mu.Lock()
	s.x.core.End(s.State, s.failed != nil)
	s.x.mu.Unlock()
}

// take takes the next piece of the state. It returns false if it wants no further ones.
func (s *sharer) take(data []byte, err error) bool {
	if s.x.ctx.Err() != nil {
		return false
	}
	if err == nil && s.x.cfg.Room != nil && !s.x.cfg.Room(s.x.cfg.Store.growth(s.Queue, len(data))) {
		s.x.cfg.Store.trim()
		err = errNoRoom
	}
	if err == nil {
		err = s.x.cfg.Store.Put(s.State, s.number, data)
	}
	if s.failed = err; err != nil {
		return false
	}
	s.x.mu.Lock()
	s.x.core.Share(s.State, s.number)
	s.x.mu.Unlock()
	s.number++
	return true
}

// send queues a message for another worker. mu is held.
func (x *Exchange) send(to int, m Message) {
	if x.closed {
		return
	}
	l := x.links[to]
	l.queue = append(l.queue, m)
	if !l.running {
		l.running = true
		x.work.Go(l.run)
	}
	wake(l.wake)
}

// settled tells those that wait that a state is settled. mu is held.
func (x *Exchange) settled() {
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
}
