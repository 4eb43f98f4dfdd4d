package execute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/offheap"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Options configure how a Runner divides and sends messages. Segment and Channels must be equal
// on all ranks of a program; no option affects the result.
type Options struct {
	Segment     int // length of a segment of a message in bytes, rounded down to whole elements; 0 means 256 KiB
	Channels    int // number of connections that the segments of a lane use in turn; 0 means 1
	SerialLimit int // runs without longer messages (in bytes) are serial; at most Segment; 0 means 256 KiB; negative: no serial runs

	Progress *atomic.Uint64 // incremented by the bytes sent and received; may be nil
	Workers  *Pool          // goroutines for runs that are not serial; if nil, the Runner has its own
}

// Defaults of Options.
const (
	DefaultSegment     = 256 << 10
	DefaultSerialLimit = 256 << 10
)

// Runner runs one rank's part of a program, any number of times, with layouts of any lengths.
// Only one goroutine at a time may use a Runner.
type Runner struct {
	prog    *program.Program
	node    mesh.Node
	opt     Options
	forest  bool // contributions may be absent
	ownPool *Pool
	closed  bool

	lanes          []lane
	halves         []*half
	byLane         [][2]*half // byLane[l] has the receiving and the sending half of lane l; nil for a half without parts
	order          []serialPart
	serialWaiters  []mesh.SerialWaiter // connections that are notified whether a run is serial
	serialExecutor executor            // runs the parts in serial runs

	// The fields below describe the current run.
	op       *Operation
	hash     uint64 // hash of the operation in the headers of messages
	segment  int    // length of a segment in bytes, a multiple of Elem
	serial   bool
	mem      [][]byte
	arena    *offheap.Buffer // memory of the scratch slots
	presence presence

	pending  atomic.Int32 // number of halves that have not ended
	finished chan struct{}
	failed   atomic.Bool
	mu       sync.Mutex
	cause    error
}

// New returns a Runner for a program on a node. It validates the program and opens connections
// to the peers, which must also call New. The program must not be changed after that.
func New(ctx context.Context, prog *program.Program, node mesh.Node, opt Options) (*Runner, error) {
	if err := prog.Validate(); err != nil {
		return nil, err
	}
	if prog.Rank != node.Rank() || prog.P != node.Size() {
		return nil, fmt.Errorf("program of rank %d of %d: the node is rank %d of %d", prog.Rank, prog.P, node.Rank(), node.Size())
	}
	if opt.Segment < 0 || opt.Channels < 0 {
		return nil, fmt.Errorf("segments of %d bytes on %d connections a lane", opt.Segment, opt.Channels)
	}
	if opt.Segment == 0 {
		opt.Segment = DefaultSegment
	}
	if opt.SerialLimit == 0 {
		opt.SerialLimit = DefaultSerialLimit
	}
	opt.Channels = max(opt.Channels, 1)
	r := &Runner{
		prog: prog, node: node, opt: opt,
		forest:   prog.Nodes != nil || prog.Forest != 0,
		finished: make(chan struct{}, 1),
	}
	r.serialExecutor.r = r
	r.mem = make([][]byte, r.memories())
	if err := r.compile(); err != nil {
		return nil, err
	}
	routes, err := r.routes()
	if err != nil {
		return nil, err
	}
	conns, err := node.Open(ctx, routes)
	if err != nil {
		return nil, err
	}
	r.attach(routes, conns)
	r.presence.prepare(prog)
	if r.opt.Workers == nil {
		r.ownPool = NewPool()
		r.opt.Workers = r.ownPool
	}
	return r, nil
}

// Close ends the goroutines of the Runner and frees its memory, which may be several times as
// large as the data. It does not end the goroutines of a shared pool or close the connections
// of the node. Run must not be called after Close. Further calls of Close have no effect.
func (r *Runner) Close() {
	if r.ownPool != nil {
		r.ownPool.Close()
	}
	r.closed = true
	r.arena.Free()
	clear(r.mem)
	r.serialExecutor.release()
	for _, h := range r.halves {
		h.release()
	}
}

// Run runs this rank's part of an operation. It returns when Out is complete and nothing refers
// to the operation's memory any more. present reports whether there is a result: if all
// contributions of a forest program to the result are absent, present is false and Out is
// unchanged.
//
// If an operation does not fit the program, Run returns an error before anything is sent, and
// the group goes on. Any later error is the cause for which the group ended; the contents of
// Out are then undefined.
func (r *Runner) Run(op *Operation) (present bool, err error) {
	if err := r.begin(op); err != nil {
		return false, fmt.Errorf("%s %s: rank %d: %w", r.prog.Collective, r.prog.Algorithm, r.prog.Rank, err)
	}
	for _, c := range r.serialWaiters {
		c.Alone(r.serial)
	}
	r.node.Begin(op.Seq, op.What)
	if r.serial {
		err = r.runSerial()
	} else {
		err = r.runParallel()
	}
	present = err == nil && (!r.forest || r.presence.result(r))
	r.end()
	return present, err
}

// end ends the operation and drops the references to the caller's memory.
func (r *Runner) end() {
	r.node.End()
	r.op = nil
	clear(r.mem)
}

// begin returns an error unless an operation fits the program, and sets up the run.
func (r *Runner) begin(op *Operation) error {
	p := r.prog
	if r.closed {
		return errors.New("the runner is closed")
	}
	if op.What == nil {
		return errors.New("the operation does not say what it is")
	}
	if op.Elem < 1 {
		return fmt.Errorf("elements of %d bytes", op.Elem)
	}
	if err := op.Layout.Check(p.Chunks); err != nil {
		return err
	}
	if err := r.cut(op); err != nil {
		return err
	}
	if p.Collective.Reduces() && op.Reducer == nil {
		return errors.New("no operator to reduce with")
	}
	if len(op.In) != p.Partials() {
		return fmt.Errorf("brings %d buffers where the program has %d", len(op.In), p.Partials())
	}
	size := op.Layout.Size(program.In, p.In) * op.Elem
	for k, in := range op.In {
		if len(in) != size && (in != nil || !r.forest) {
			return fmt.Errorf("brings %d bytes where the program takes %d", len(in), size)
		}
		r.mem[k] = in
	}
	if size := op.Layout.Size(program.Out, p.Out) * op.Elem; len(op.Out) != size {
		return fmt.Errorf("has room for %d bytes where the result has %d", len(op.Out), size)
	}
	r.mem[len(op.In)] = op.Out
	r.op, r.hash = op, op.What.Hash^op.Before
	if err := r.fits(); err != nil {
		return err
	}
	r.serial = r.isSerial()
	if err := r.reserve(); err != nil {
		return err
	}
	if r.forest {
		r.presence.reset(r)
	}
	r.failed.Store(false)
	r.cause = nil
	return nil
}

// cut sets the length of segments. It returns an error if the number of bytes overflows an
// integer, or if the number or the length of segments does not fit into a header.
func (r *Runner) cut(op *Operation) error {
	n := r.prog.Chunks
	longest := max(op.Layout.In[n], op.Layout.Out[n])
	if longest > math.MaxInt/op.Elem {
		return fmt.Errorf("%d elements of %d bytes", longest, op.Elem)
	}
	longest *= op.Elem
	r.segment = max(r.opt.Segment/op.Elem, 1) * op.Elem
	if uint64(longest/r.segment) >= mixed || uint64(min(r.segment, longest)) > math.MaxUint32 {
		return fmt.Errorf("%d bytes in segments of %d", longest, r.segment)
	}
	return nil
}

// fits returns an error if the chunks of a step that must have equal lengths have different
// lengths.
func (r *Runner) fits() error {
	l := &r.op.Layout
	if r.prog.Collective != program.AllToAll {
		if &l.In[0] != &l.Out[0] && !slices.Equal(l.In, l.Out) {
			return errors.New("the chunks of the input and of the output have different lengths")
		}
		return nil
	}
	for i := range r.lanes {
		for j := range r.lanes[i].steps {
			s := &r.lanes[i].steps[j]
			for _, f := range s.src {
				if s.op != program.DoSend && r.size(f) != r.size(s.dst) {
					return fmt.Errorf("lane %d step %d (%s): operands of different lengths", i, j, &r.prog.Lanes[i].Steps[j])
				}
			}
		}
	}
	return nil
}

// isSerial reports whether all messages are short enough for a serial run. Such a message has
// one segment in serial and in parallel runs, so an operation may be a serial run on some ranks
// and a parallel run on other ranks.
func (r *Runner) isSerial() bool {
	limit := min(r.opt.SerialLimit, r.segment)
	if limit < 0 {
		return false
	}
	n := r.prog.Chunks
	if max(r.op.Layout.In[n], r.op.Layout.Out[n])*r.op.Elem <= limit {
		return true
	}
	for i := range r.lanes {
		for j := range r.lanes[i].steps {
			s := &r.lanes[i].steps[j]
			if s.op.Sends() && r.size(s.source()) > limit || s.op.Receives() && r.size(s.dst) > limit {
				return false
			}
		}
	}
	return true
}

// lineWords is the number of words in a cache line. Each scratch slot begins at a cache line,
// so it is aligned for elements of any type.
const lineWords = 8

// reserve allocates the scratch slots.
func (r *Runner) reserve() error {
	words := func(k int) int {
		n := (r.op.Layout.Size(program.Out, r.prog.Scratch[k])*r.op.Elem + 7) / 8
		return (n + lineWords - 1) / lineWords * lineWords
	}
	total := 0
	for k := range r.prog.Scratch {
		total += words(k)
	}
	if total > r.arena.Len() {
		r.arena.Free() // freed before allocating, since it may be several times as large as the data
		arena, err := offheap.New(total)
		if err != nil {
			return fmt.Errorf("scratch: %w", err)
		}
		r.arena = arena
	}
	at := 0
	for k := range r.prog.Scratch {
		n := words(k)
		r.mem[r.prog.Partials()+1+k] = bytesOf(r.arena.Words()[at : at+n])
		at += n
	}
	return nil
}

// size returns the length in bytes of the chunks of a reference.
func (r *Runner) size(f ref) int {
	off := r.op.Layout.Out
	if f.in {
		off = r.op.Layout.In
	}
	return (off[f.hi] - off[f.lo]) * r.op.Elem
}

// bytes returns the memory of a reference, all of whose chunks must be present.
func (r *Runner) bytes(f ref) []byte {
	off := r.op.Layout.Out
	if f.in {
		off = r.op.Layout.In
	}
	base := off[f.base]
	return r.mem[f.mem][(off[f.lo]-base)*r.op.Elem : (off[f.hi]-base)*r.op.Elem]
}

// segments returns the number of segments of a message of n bytes, which is at least 1.
func (r *Runner) segments(n int) int { return max((n+r.segment-1)/r.segment, 1) }

// runSerial runs all parts on the caller's goroutine.
func (r *Runner) runSerial() (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		r.serialExecutor.giveBack()
		err = r.fail(r.broken(v))
		if v == nil {
			r.end() // an operator has ended the goroutine, so Run does not return
		}
	}()
	for i := range r.order {
		if err := r.serialExecutor.do(r.order[i].s, r.order[i].sends); err != nil {
			returned = true
			return r.fail(err)
		}
	}
	returned = true
	return nil
}

// runParallel runs each half on a goroutine of the pool.
func (r *Runner) runParallel() error {
	for i := range r.lanes {
		for j := range r.lanes[i].steps {
			r.lanes[i].steps[j].reset()
		}
	}
	if len(r.halves) == 0 {
		return nil
	}
	r.pending.Store(int32(len(r.halves)))
	for _, h := range r.halves {
		r.opt.Workers.start(h)
	}
	<-r.finished
	return r.cause
}

// done records that a half has ended.
func (r *Runner) done() {
	if r.pending.Add(-1) == 0 {
		r.finished <- struct{}{}
	}
}

// fail ends the group and all halves because of err, an error of this rank. It returns the
// cause for which the group ended.
func (r *Runner) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		r.cause = r.node.Fail(err)
		if r.cause == nil {
			r.cause = err
		}
		r.failed.Store(true)
		for _, h := range r.halves {
			h.signal()
		}
	}
	return r.cause
}

// broken returns the error for a panic with value v or, if v is nil, for an operator that has
// ended the goroutine.
func (r *Runner) broken(v any) error {
	where := fmt.Sprintf("rank %d in %s", r.prog.Rank, membership.Describe(r.op.Seq, r.op.What))
	switch v := v.(type) {
	case nil:
		return fmt.Errorf("%s: the operator ended its goroutine (runtime.Goexit)\n%s", where, debug.Stack())
	case error:
		return fmt.Errorf("%s: panic: %w\n%s", where, v, debug.Stack())
	default:
		return fmt.Errorf("%s: panic: %v\n%s", where, v, debug.Stack())
	}
}
