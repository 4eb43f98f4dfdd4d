package execute

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// ref is a compiled program.Ref: a range of chunks in one of the memories of the rank. A memory
// is a buffer: a node of the input, the output or a scratch slot.
type ref struct {
	mem    int32 // index into Runner.mem
	lo, hi int32 // range of chunks [lo, hi)
	base   int32 // first chunk that the memory holds
	in     bool  // chunks have the lengths of Layout.In
}

func (f ref) chunk(c int32) ref {
	f.lo, f.hi = f.lo+c, f.lo+c+1
	return f
}

func (f ref) chunks() int32 { return f.hi - f.lo }

// whole is stored in place of a number of segments if a part of a step is done, or if the step
// has no such part.
const whole = math.MaxUint32

// step is a compiled instruction, with its progress in the current run.
type step struct {
	op        program.OpCode
	recvLeft  bool
	lane      *lane
	index     int32
	sendIndex uint16 // index among the sending steps of its lane
	recvIndex uint16 // index among the receiving steps of its lane; equals sendIndex of the peer's step
	dst       ref
	src       []ref
	plan      *program.FoldPlan

	deps  []dep   // dependencies, except those that the order of steps in a half implies
	wakes []*half // halves that may wait for this step

	received, sent atomic.Uint32 // number of segments that are received or computed locally, and number of segments that are sent
}

// dep is a dependency on another step. If segmentwise is set, segment k of the dependent step
// waits only for segment k of the other step. Otherwise every segment waits for the whole other
// step.
type dep struct {
	step        *step
	segmentwise bool
}

func (d dep) met(k int) bool {
	if d.segmentwise {
		return int(d.step.received.Load()) > k && int(d.step.sent.Load()) > k
	}
	return d.step.received.Load() == whole && d.step.sent.Load() == whole
}

// source returns the reference that the sending part of the step sends.
func (s *step) source() ref {
	if s.op == program.DoSend {
		return s.src[0]
	}
	return s.dst
}

// reset sets the progress of the step to its value at the start of a run.
func (s *step) reset() {
	received, sent := uint32(0), uint32(whole)
	if s.op == program.DoSend {
		received = whole
	}
	if s.op.Sends() {
		sent = 0
	}
	s.received.Store(received)
	s.sent.Store(sent)
}

// lane is a lane of the program with its connections, one for each stripe.
type lane struct {
	index            int
	sendTo, recvFrom int
	send, recv       []mesh.Conn
	borrowers        []mesh.Borrower // lend[i] is recv[i] as a Borrower, or nil if recv[i] is not a Borrower
	steps            []step
}

// serialPart is a compiled program.Part.
type serialPart struct {
	s     *step
	sends bool
}

// compile compiles the program. It numbers the memories (the nodes of the input, the output,
// the scratch slots), and it keeps only the dependencies for which a half may have to wait.
func (r *Runner) compile() error {
	p := r.prog
	r.lanes = make([]lane, len(p.Lanes))
	for i := range p.Lanes {
		l := &r.lanes[i]
		sends, receives := uint16(0), uint16(0)
		*l = lane{index: i, sendTo: p.Lanes[i].SendPeer, recvFrom: p.Lanes[i].RecvPeer, steps: make([]step, len(p.Lanes[i].Steps))}
		for j := range l.steps {
			s, in := &l.steps[j], &p.Lanes[i].Steps[j]
			s.op, s.recvLeft, s.lane, s.index = in.Op, in.RecvLeft, l, int32(j)
			s.sendIndex, s.recvIndex = sends, receives
			if in.Op.Sends() {
				sends++
			}
			if in.Op.Receives() {
				receives++
			}
			if in.Op != program.DoSend {
				s.dst = r.ready(in.Dst)
			}
			s.src = make([]ref, len(in.Src))
			for k := range in.Src {
				s.src[k] = r.ready(in.Src[k])
			}
			if in.Op == program.DoReduce {
				plan, err := program.CompileFold(len(in.Src), in.Fold)
				if err != nil {
					return err
				}
				s.plan = plan
			}
		}
	}
	for i := range r.lanes {
		r.halve(&r.lanes[i])
	}
	for i := range r.lanes {
		r.connect(&r.lanes[i], &p.Lanes[i])
	}
	order, err := program.SerialOrder(p)
	if err != nil {
		return err
	}
	r.order = make([]serialPart, len(order))
	for i, part := range order {
		r.order[i] = serialPart{&r.lanes[part.Lane].steps[part.Step], part.Send}
	}
	return nil
}

// memories returns the number of memories of the program.
func (r *Runner) memories() int { return r.prog.Partials() + 1 + len(r.prog.Scratch) }

func (r *Runner) ready(f program.Ref) ref {
	nodes := r.prog.Partials()
	mem := f.Slot
	switch f.Buffer {
	case program.Out:
		mem = nodes
	case program.Scratch:
		mem = nodes + 1 + f.Slot
	}
	return ref{
		mem: int32(mem), lo: int32(f.Chunks.Lo), hi: int32(f.Chunks.Hi),
		base: int32(r.prog.Room(f).Lo), in: f.Buffer == program.In,
	}
}

// halve makes the halves of lane l. It does not make a half that has no parts.
func (r *Runner) halve(l *lane) {
	receives, sends := false, false
	for j := range l.steps {
		receives = receives || l.steps[j].op != program.DoSend
		sends = sends || l.steps[j].op.Sends()
	}
	add := func(sends bool) *half {
		h := &half{lane: l, sends: sends, wake: make(chan struct{}, 1)}
		h.executor = executor{r: r, half: h}
		r.halves = append(r.halves, h)
		return h
	}
	var receiver, sender *half
	if receives {
		receiver = add(false)
	}
	if sends {
		sender = add(true)
	}
	r.byLane = append(r.byLane, [2]*half{receiver, sender})
}

// connect compiles the dependencies of a lane's steps and registers its halves with the steps
// for which they wait.
//
// Two steps on the same chunks access exactly the same bytes of their memories in segment k. If
// one step depends on the other, it is enough that each segment depends on the same segment of
// the other step. This also holds if a step on other chunks comes between the two: that step
// waits for the whole first step, so the first step is complete before the last step begins. In
// an AllToAll the chunks of input and output are numbered separately, so steps always wait for
// whole steps.
func (r *Runner) connect(l *lane, from *program.Lane) {
	for j := range l.steps {
		s := &l.steps[j]
		first := r.byLane[l.index][0]
		if s.op == program.DoSend {
			first = r.byLane[l.index][1]
		} else if s.op.Sends() {
			s.addWake(r.byLane[l.index][1])
		}
		for _, d := range from.Steps[j].After {
			other := &r.lanes[d.Lane].steps[d.Step]
			if d.Lane == l.index && other.op.Sends() == (s.op == program.DoSend) {
				continue // the same half completes that step before this step
			}
			segmentwise := r.prog.Collective != program.AllToAll && other.sameChunks(s)
			s.deps = append(s.deps, dep{other, segmentwise})
			other.addWake(first)
		}
	}
}

func (s *step) sameChunks(t *step) bool {
	a, b := s.touched(), t.touched()
	return a.lo == b.lo && a.hi == b.hi
}

// touched returns a reference to the chunks on which the step works. All operands of a step
// have the same chunks, except in an AllToAll.
func (s *step) touched() ref {
	if s.op == program.DoSend {
		return s.src[0]
	}
	return s.dst
}

// addWake adds h to the halves that the step wakes, unless h is already among them.
func (s *step) addWake(h *half) {
	for _, w := range s.wakes {
		if w == h {
			return
		}
	}
	s.wakes = append(s.wakes, h)
}

// routes returns the routes of the connections that the program needs. It returns an error if
// two lanes use the same direction of a connection.
func (r *Runner) routes() ([]mesh.Route, error) {
	type way struct {
		peer, channel int
		sends         bool
	}
	used := map[way]int{}
	var routes []mesh.Route
	for i := range r.prog.Lanes {
		l := &r.prog.Lanes[i]
		sends, receives := false, false
		for j := range l.Steps {
			sends = sends || l.Steps[j].Op.Sends()
			receives = receives || l.Steps[j].Op.Receives()
		}
		for k, w := range [2]way{{l.SendPeer, l.Channel, true}, {l.RecvPeer, l.Channel, false}} {
			if needed := [2]bool{sends, receives}[k]; !needed {
				continue // needs no connection, and the peer may not have the lane
			}
			if other, taken := used[w]; taken {
				return nil, fmt.Errorf("program of rank %d: lanes %d and %d both use channel %d of rank %d",
					r.prog.Rank, other, i, w.channel, w.peer)
			}
			used[w] = i
			if _, both := used[way{w.peer, w.channel, !w.sends}]; both {
				continue
			}
			for k := range r.opt.Channels {
				routes = append(routes, mesh.Route{Peer: w.peer, Channel: w.channel + k*program.MaxChannels})
			}
		}
	}
	return routes, nil
}

// attach assigns conns, the connections of routes, to the lanes.
func (r *Runner) attach(routes []mesh.Route, conns []mesh.Conn) {
	first := map[mesh.Route]int{} // index of the first stripe of a route
	for i := 0; i < len(routes); i += r.opt.Channels {
		first[routes[i]] = i
	}
	for _, c := range conns {
		if l, ok := c.(mesh.SerialWaiter); ok {
			r.serialWaiters = append(r.serialWaiters, l)
		}
	}
	stripes := func(peer, channel int) []mesh.Conn {
		i, opened := first[mesh.Route{Peer: peer, Channel: channel}]
		if !opened {
			return nil
		}
		return conns[i : i+r.opt.Channels]
	}
	for i := range r.lanes {
		l := &r.prog.Lanes[i]
		r.lanes[i].send = stripes(l.SendPeer, l.Channel)
		r.lanes[i].recv = stripes(l.RecvPeer, l.Channel)
		for _, c := range r.lanes[i].recv {
			lender, _ := c.(mesh.Borrower)
			r.lanes[i].borrowers = append(r.lanes[i].borrowers, lender)
		}
	}
}
