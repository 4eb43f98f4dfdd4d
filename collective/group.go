package collective

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// LocalGroup is a group of ranks that share the memory of this process. Rank returns the handle
// of a rank. The methods of LocalGroup may be called from any goroutine.
//
// A TCPGroup also has a LocalGroup, for the ranks that this process hosts. These ranks meet
// like the ranks of a local group, and the last rank to arrive communicates with the other
// processes.
type LocalGroup struct {
	n     int // ranks in this process
	size  int // ranks of the whole group
	ranks []int
	comms []Comm
	slots []slot
	began time.Time // clock of Stats
	spin  int       // tries before parking; 0 if there are more ranks than processors

	// serialLimit and packFrom have the values of the constants with the same names. Tests set
	// other values.
	serialLimit, packFrom int

	barrier barrier

	// failure is the error that ended the group. It is set once.
	failure atomic.Pointer[cause]

	// net reaches the ranks of other processes. It is nil unless the LocalGroup is part of a
	// TCPGroup.
	net *network

	// local connects the ranks by messages, for named algorithms and for Send and Recv.
	// The first rank that needs it makes it.
	local        atomic.Pointer[mesh.Local]
	makeMessages sync.Once
	gone         []atomic.Bool // gone[i]: whether the rank with index i in this process has closed its Comm

	// folds maps numbers of ranks to the fold plans that the primitives have used so far.
	folds struct {
		sync.Mutex
		plans map[int]*program.FoldPlan
	}

	// The last rank to arrive at a meeting writes the fields below while all other ranks wait.
	// The other ranks read them before they arrive again.
	verdict int64
	agreed  agreement
	plans   planCache
}

type cause struct{ err error }

// ErrClosed is returned to a rank that uses its Comm after closing it, unless the group has
// failed.
var ErrClosed = errors.New("collective: this rank has left the group")

// ErrLeft is wrapped by the error of ranks that wait for a rank that closed its Comm without an
// error.
var ErrLeft = membership.ErrLeft

// ErrTimeout is wrapped by the error of a wait that exceeds its timeout.
var ErrTimeout = membership.ErrTimeout

// ErrDamaged is wrapped by the error about a message that was damaged in transit.
var ErrDamaged = membership.ErrDamaged

// ErrReplaced is wrapped by the cause of a group that ended because one of its processes
// has joined a later attempt.
var ErrReplaced = membership.ErrReplaced

// errAborted is the cause if Abort is called with nil.
var errAborted = errors.New("collective: the group was aborted")

// NewLocalGroup makes a group of n ≥ 1 ranks within this process. It starts no
// goroutine, and the group need not be closed. It panics if n is below 1.
func NewLocalGroup(n int) *LocalGroup {
	if n < 1 {
		panic(fmt.Sprintf("collective: a group of %d ranks", n))
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	return newGroup(n, ranks)
}

// newGroup makes the part of a group that hosts the given ranks, in ascending order. size
// is the number of ranks of the whole group.
func newGroup(size int, ranks []int) *LocalGroup {
	n := len(ranks)
	g := &LocalGroup{n: n, size: size, ranks: ranks, comms: make([]Comm, n), slots: make([]slot, n), gone: make([]atomic.Bool, n), began: time.Now(), serialLimit: serialLimit, packFrom: packFrom}
	g.barrier.init(n)
	// If every rank can have its own processor, a wait is usually a few hundred nanoseconds,
	// and spinning is faster than parking. Otherwise the awaited rank may need the processor on
	// which the waiting rank spins.
	if n <= min(runtime.GOMAXPROCS(0), runtime.NumCPU()) {
		g.spin = maxSpin
	}
	for i := range g.comms {
		g.comms[i].group, g.comms[i].index, g.comms[i].spin = g, i, g.spin
	}
	return g
}

// Size returns the number of ranks.
func (g *LocalGroup) Size() int { return g.n }

// Rank returns the handle of rank i. Every call with the same i returns the same handle. Only
// one goroutine at a time may use a handle. Rank panics if there is no rank i.
func (g *LocalGroup) Rank(i int) *Comm {
	if i < 0 || i >= g.n {
		panic(fmt.Sprintf("collective: rank %d of a group of %d", i, g.n))
	}
	return &g.comms[i]
}

// Abort ends the group: every waiting and every later operation of every rank returns err. If
// the group has already ended, operations continue to return the earlier cause. If err is nil,
// operations return an error that says that the group was aborted. Abort does not wait for
// ranks. If the group has other processes, Abort notifies them and waits until it knows the
// first cause.
func (g *LocalGroup) Abort(err error) {
	if err == nil {
		err = errAborted
	}
	if g.net != nil && g.failure.Load() == nil {
		err = g.net.fail(err)
	}
	g.end(err)
}

// end ends the group for every rank of this process with err as the cause, unless there is an
// earlier cause.
func (g *LocalGroup) end(err error) {
	if g.failure.CompareAndSwap(nil, &cause{err}) {
		g.barrier.wakeAll()
		if local := g.local.Load(); local != nil {
			local.Node(0).Fail(err)
		}
	}
}

// Err returns the error that ended the group, or nil if the group has not ended.
func (g *LocalGroup) Err() error {
	if f := g.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// Comm is the handle through which one rank takes part in a group, like a communicator of MPI.
// Only one goroutine at a time may use a Comm, by its methods or as an argument of an
// operation. All ranks call the same operations in the same order.
type Comm struct {
	group *LocalGroup
	index int    // index of the rank among the ranks of this process
	spin  int    // tries before parking, adapted to how often spinning succeeds
	phase uint64 // number of meetings that the rank has arrived at
	seq   uint64 // number of operations that the rank has begun
	state commState
	open  string // Name of the AllReduce under way; valid if state is not idle

	watch          watcher
	calls          calls // runs programs among ranks
	request        request
	typed          [numTypes]arithmetic // typed[t] is the *typedOp of element type t
	leaves         [][]byte
	exchangeBuffer []byte // buffer for the result of an AllToAll in place
	algorithm      string // algorithm of the latest AllReduce that sent messages

	directs map[int]*directConn
	leading leading

	// node announces to the other processes which operation this rank is in, with the texts in
	// announced. It is nil without other processes.
	node          mesh.Node
	announced     map[header]*mesh.Operation
	history       history
	requestHeader header
	stats         Stats
	reducers      [numTypes]any // reducers[t] is the *AllReducer with which AllReduce works on element type t

	_ [64]byte // keeps the fields of the next rank, which another processor writes, in other cache lines
}

type commState uint8

const (
	idle    commState = iota
	posted            // Send done
	summed            // Sum done: the rank has arrived at the barrier where Recv waits
	settled           // Sum done, and the result is complete: Recv does not wait
	closed
)

// Rank returns the number of this rank in the group, 0 ≤ Rank < Size.
func (c *Comm) Rank() int { return c.group.ranks[c.index] }

// Size returns the number of ranks of the group.
func (c *Comm) Size() int { return c.group.size }

// Close ends the participation of this rank in the group. If err is not nil, Close aborts the
// group with err as the cause. If err is nil, other ranks can go on, but a rank that waits for
// this rank, now or later, gets an error wrapping ErrLeft. When Close returns, buffers posted
// to an operation belong to the caller again. Close is idempotent.
func (c *Comm) Close(err error) {
	if c.state == closed {
		return
	}
	if err != nil {
		c.group.Abort(fmt.Errorf("rank %d: %w", c.Rank(), err))
	}
	if c.state == summed {
		c.group.barrier.settle(c.phase)
	}
	c.state = closed
	c.calls.close()
	c.group.barrier.leave(c.index)
	c.group.gone[c.index].Store(true)
	if local := c.group.local.Load(); local != nil { // if local is made later, the rank that makes it reads gone
		local.Leave(c.index)
	}
	if n := c.group.net; n != nil && n.mesh != nil {
		n.mesh.Leave(c.Rank())
	}
	if net := c.group.net; net != nil && net.closed.Add(1) == int32(c.group.n) {
		net.sendGoodbye()
	}
	c.watch.end()
}

// begin checks that this rank may start an operation, and gives the operation its number.
func (c *Comm) begin(ctx context.Context) error {
	if c.state == closed {
		if err := c.group.Err(); err != nil {
			return err
		}
		return ErrClosed
	}
	if c.state != idle {
		return c.fail(fmt.Errorf("another operation was begun before the AllReduce %q was received", c.open))
	}
	if err := c.group.Err(); err != nil {
		return err
	}
	if ctx != nil {
		if done := ctx.Done(); done != nil {
			select {
			case <-done:
				return c.cancelled(ctx)
			default:
			}
		}
	}
	c.seq++
	return nil
}

// fail aborts the group with err, an error for which this rank is responsible. It returns the
// group's first cause.
func (c *Comm) fail(err error) error {
	c.group.Abort(fmt.Errorf("rank %d: %w", c.Rank(), err))
	return c.group.Err()
}

// failed aborts the group with err unless it has ended already. It returns the group's first
// cause.
func (c *Comm) failed(err error) error {
	if cause := c.group.Err(); cause != nil {
		return cause
	}
	return c.fail(err)
}

func (c *Comm) cancelled(ctx context.Context) error {
	c.group.Abort(fmt.Errorf("rank %d was cancelled: %w", c.Rank(), context.Cause(ctx)))
	return c.group.Err()
}

// indexOf returns the index of a rank among the ranks of this process, or −1 if another process
// hosts the rank.
func (g *LocalGroup) indexOf(rank int) int {
	i, ok := slices.BinarySearch(g.ranks, rank)
	if !ok {
		return -1
	}
	return i
}
