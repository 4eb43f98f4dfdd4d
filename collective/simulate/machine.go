package simulate

import (
	"context"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// plan is a set of compiled programs that can be run on any network. It has the shapes of the
// simulated ranks, which are all ranks or one rank of each class, and the connections between
// the halves of their lanes.
type plan struct {
	p        int
	symmetry *Symmetry // nil if all ranks are simulated
	unit     int       // number of consecutive ranks that may share a resource; p if any two ranks may share one
	parts    []*part   // compiled programs of the simulated ranks
	segment  int64
	serial   int64   // length of messages up to which a rank uses one core at a time
	bases    []int32 // bases[r] is the first half of rank r; the last entry is the number of halves
	ends     []int32 // ends[h] is the half at the other end of the channel of half h, or -1
}

// half is the state of one half of a lane. The halves of a rank are consecutive: number 2·lane
// is the receiving half of a lane, and number 2·lane + 1 is its sending half.
type half struct {
	shape    *shape
	order    uint64 // part of event.order: the rank within its unit, the lane and the side
	step, hi int32  // indices in shape.steps of the current step and of the end of the lane
	seg      int32  // current segment of the current step
	rank     int32
	peer     int32 // half at the other end of the channel
	base     int32 // first half of the rank
	depsMet  int32 // number of dependencies of the current segment that are known to be met
	state    uint8
	class    uint8 // class of the link, for a sending half
	track    bool  // the lane sends more bytes than the window, so underway must be counted
	woken    bool  // the half was waiting when the current segment arrived

	// needStep, needSeg and next are used if state is waitHalf: this half waits until another
	// half has completed segment needSeg of step needStep, and next is the next half in the list
	// of halves that wait for the same half, or −1.
	needStep, needSeg, next int32
	waiting                 int32 // first of the list of halves that wait for this half, or −1

	arrived   int32 // number of segments that have arrived but are not received yet
	drawn     uint32
	inTransit int64   // number of bytes that are sent but not received yet
	head      float64 // time at which the head of the last sent segment arrived at the next stage
	chain     Chain
}

// These are the states of a half.
const (
	idle       = uint8(iota)
	working    // uses a core
	waitHalf   // waits for another half of its rank
	waitData   // waits for a segment to arrive
	waitWindow // waits until the window of the channel allows the segment
	waitAck    // waits until the receiver has received the segment (rendezvous)
	ended
)

// These are the classes of links.
const (
	onHost = uint8(iota)
	inRack
	acrossSpine
)

// transfer is a segment in transit, or the acknowledgement of a received segment in transit.
type transfer struct {
	tail  float64 // time at which the last byte has passed the stages so far
	bytes int64
	chain Chain
}

// machine runs a plan on a network.
type machine struct {
	*plan
	net        *Network
	window     int64
	halves     []half
	slowFactor []float64 // slow[r] is the factor by which rank r is slower
	host       []int32   // host[r] is the host of rank r
	rack       []int32   // rack[h] is the rack of host h
	cores      int       // number of cores of a host; 0 means unlimited
	free       []float64 // time from which a core is free; ordered by host, then core
	ownsCore   []bool    // alone[r]: rank r uses one core at a time
	busyUntil  []float64 // until[r] is the time until which rank r uses a core

	out, in, memory []server // NIC in both directions, and memory, of each host
	up, down        []server // uplink and downlink of each rack
	busy            []float64
	uplink          float64
	events          queue
	transfers       []transfer
	unused          []int32
	finish          []float64
	lastHalf        int32   // half that ended last
	end             float64 // time at which that half ended
	handled         int64
}

// server is a first-come-first-served resource.
type server struct{ free, busy float64 }

// serve adds work of the given duration to the server. The work is ready at time ready. serve
// returns the time at which the server begins the work.
func (s *server) serve(ready, duration float64) float64 {
	begin := max(ready, s.free)
	s.free = begin + duration
	s.busy += duration
	return begin
}

// newMachine returns a machine at time 0.
func newMachine(pl *plan, net *Network) *machine {
	m := &machine{plan: pl, net: net, window: int64(net.Window), lastHalf: -1}
	ranks := len(pl.parts)
	hosts := net.hosts(ranks)
	if m.cores = net.Cores; m.cores > len(pl.ends) {
		m.cores = 0 // with this number of cores, no rank ever waits for a core
	}
	m.free = make([]float64, hosts*m.cores)
	servers := make([]server, 3*hosts)
	m.out, m.in, m.memory = servers[:hosts], servers[hosts:2*hosts], servers[2*hosts:]
	m.busy = make([]float64, hosts)
	m.rack = make([]int32, hosts)
	for h := range hosts {
		m.rack[h] = int32(net.rackOf(h))
	}
	racks := int(m.rack[hosts-1]) + 1
	servers = make([]server, 2*racks)
	m.up, m.down = servers[:racks], servers[racks:]
	m.uplink = net.uplink()
	m.slowFactor, m.host = make([]float64, ranks), make([]int32, ranks)
	m.finish, m.busyUntil, m.ownsCore = make([]float64, ranks), make([]float64, ranks), make([]bool, ranks)
	m.halves = make([]half, len(pl.ends))
	for r, part := range pl.parts {
		m.slowFactor[r], m.host[r] = net.factor(r), int32(net.hostOf(r))
		m.ownsCore[r] = part.shape.message <= pl.serial
		for l := range len(part.shape.lanes) - 1 {
			for side := range int32(2) {
				m.setUp(int32(r), int32(l), side, part)
			}
		}
	}
	return m
}

// setUp initialises a half at its first step.
func (m *machine) setUp(rank, lane, side int32, part *part) {
	s := part.shape
	id := m.bases[rank] + 2*lane + side
	h := &m.halves[id]
	*h = half{
		shape: s, step: s.lanes[lane] - 1, hi: s.lanes[lane+1], rank: rank,
		order: uint64(int(rank)%m.unit)<<34 | uint64(2*lane+side),
		peer:  m.ends[id], base: m.bases[rank], next: -1, waiting: -1,
	}
	h.advance(side)
	if side == 0 || h.peer < 0 {
		return
	}
	// The class of the link depends on the real rank of the peer, even if a representative of
	// the peer's class is simulated instead of the peer.
	to := int(part.peers.send[lane])
	switch from := m.net.hostOf(int(rank)); {
	case m.net.hostOf(to) == from:
		h.class = onHost
	case m.net.rackOf(m.net.hostOf(to)) == m.net.rackOf(from):
		h.class = inRack
	default:
		h.class = acrossSpine
	}
	total := int64(0)
	for i := s.lanes[lane]; i < h.hi; i++ {
		if s.steps[i].op.Sends() {
			total += s.steps[i].bytes
		}
	}
	h.track = m.window == 0 || total > m.window
}

// advance moves to the next step in which the half takes part.
func (h *half) advance(side int32) {
	h.seg, h.depsMet = 0, 0
	for h.step++; h.step < h.hi; h.step++ {
		op := h.shape.steps[h.step].op
		if side == 1 && op.Sends() || side == 0 && op != program.DoSend {
			return
		}
	}
}

// run handles events until no events are left. It returns an error if some half has not ended
// by then.
func (m *machine) run(ctx context.Context) error {
	for i := range m.halves {
		m.begin(int32(i), 0)
	}
	for len(m.events) > 0 {
		if m.handled&0xffff == 0 && ctx.Err() != nil {
			return fmt.Errorf("simulate: after %d events: %w", m.handled, context.Cause(ctx))
		}
		m.handled++
		e := m.events.pop()
		m.handle(&e)
	}
	for i := range m.halves {
		if h := &m.halves[i]; h.state != ended {
			return m.stuck(int32(i))
		} else if h.arrived > 0 {
			return fmt.Errorf("simulate: rank %d is sent more than it receives in lane %d: the programs of the ranks do not fit together",
				h.rank, (int32(i)-h.base)/2)
		}
	}
	return nil
}

// stuck returns the error for a half that waits for ever.
func (m *machine) stuck(id int32) error {
	h := &m.halves[id]
	lane := (id - h.base) / 2
	return fmt.Errorf("simulate: rank %d waits for ever in lane %d step %d (%s): the programs of the ranks do not fit together",
		h.rank, lane, h.step-h.shape.lanes[lane], h.shape.steps[h.step].op)
}

// begin starts the current segment of a half, or records what it waits for.
func (m *machine) begin(id int32, t float64) {
	h := &m.halves[id]
	if h.step == h.hi {
		h.state = ended
		m.finish[h.rank] = max(m.finish[h.rank], t)
		if m.lastHalf < 0 || t > m.end {
			m.lastHalf, m.end = id, t
		}
		return
	}
	if !m.ready(id, h) {
		return
	}
	st := &h.shape.steps[h.step]
	bytes := float64(m.segmentBytes(h, st))
	sending := (id-h.base)&1 == 1
	var overhead, moving, folding float64
	switch {
	case sending:
		if h.track {
			if h.inTransit > 0 && h.inTransit+int64(bytes) > m.window {
				h.state = waitWindow
				return
			}
			h.inTransit += int64(bytes)
		}
		overhead, moving = m.net.SendOverhead, m.net.SendCopy*bytes
	case st.op.Receives():
		if h.arrived == 0 {
			h.state = waitData
			return
		}
		h.arrived--
		overhead, moving = m.net.RecvOverhead, m.net.RecvCopy*bytes
		folding = m.net.Gamma * bytes * float64(st.folds)
	default:
		folding = m.net.Gamma * bytes * float64(st.folds)
		if st.folds == 0 {
			moving = m.net.Copy * bytes
		}
	}
	if h.woken {
		h.woken = false
		if t >= m.busyUntil[h.rank] {
			overhead += m.net.WakeUp
		}
	}
	h.state = working
	slow := m.slowFactor[h.rank] * m.jitter(id, h)
	overhead, moving, folding = float64(overhead*slow), float64(moving*slow), float64(folding*slow)
	start := m.core(h.rank, t, overhead+moving+folding)
	h.chain.Queue += start - t
	h.chain.Overhead += overhead
	h.chain.Copy += moving
	h.chain.Fold += folding
	kind := uint64(evDone)
	if sending {
		kind = evSent
	}
	m.events.push(event{start + (overhead + moving + folding), kind<<kindShift | h.order, id, -1})
}

// ready reports whether the dependencies of the current segment of h within its rank are met.
// If not, ready adds h to the list of halves that wait for the half on which the segment
// depends. id is the number of h.
func (m *machine) ready(id int32, h *half) bool {
	deps := h.shape.depsOf(h.step)
	for ; int(h.depsMet) < len(deps); h.depsMet++ {
		d := &deps[h.depsMet]
		seg := int32(math.MaxInt32)
		if d.segmented {
			seg = h.seg
		} else if h.seg > 0 {
			continue // this dependency was already met for the first segment
		}
		at, first := h.shape.lanes[d.lane]+d.step, h.base+2*d.lane
		if d.recv && m.wait(id, first, at, seg) || d.send && m.wait(id, first+1, at, seg) {
			return false
		}
	}
	// The sending half of a fused instruction sends segments that the receiving half has
	// received.
	fused := (id-h.base)&1 == 1 && h.shape.steps[h.step].op != program.DoSend
	return !fused || !m.wait(id, id-1, h.step, h.seg)
}

// wait makes half id wait until the half other has completed segment seg of step. It adds half
// id to the list of halves that wait for other, and returns true. If other has already completed
// that segment, wait returns false.
func (m *machine) wait(id, other, step, seg int32) bool {
	o := &m.halves[other]
	if o.step > step || o.step == step && o.seg > seg {
		return false
	}
	h := &m.halves[id]
	h.state, h.needStep, h.needSeg = waitHalf, step, seg
	h.next, o.waiting = o.waiting, id
	return true
}

// done completes the current segment of half id. It then begins the segments of the halves that
// waited for this segment, and the next segment of half id.
func (m *machine) done(id int32, t float64) {
	h := &m.halves[id]
	h.seg++
	h.depsMet = 0
	if h.seg == h.shape.steps[h.step].segments {
		h.advance((id - h.base) & 1)
	}
	list := h.waiting
	h.waiting = -1
	for list >= 0 {
		w := &m.halves[list]
		next := w.next
		if h.step > w.needStep || h.step == w.needStep && h.seg > w.needSeg {
			w.chain = h.chain
			m.begin(list, t)
		} else {
			w.next, h.waiting = h.waiting, list
		}
		list = next
	}
	m.begin(id, t)
}

// segmentBytes returns the length of a half's current segment.
func (m *machine) segmentBytes(h *half, st *step) int64 {
	if h.seg == st.segments-1 {
		return st.bytes - int64(h.seg)*m.segment
	}
	return m.segment
}

// core assigns work, a duration, to a core of the rank's host, and returns the time at which
// the work begins. The work begins at time t or as soon after t as a core is free. If the rank
// uses one core at a time, it also waits until the rank uses no other core. Of the cores that
// are free at that time, core takes the core that became free last, so that cores that became
// free earlier remain for other ranks.
func (m *machine) core(rank int32, t, work float64) float64 {
	host := m.host[rank]
	m.busy[host] += work
	if m.ownsCore[rank] {
		t = max(t, m.busyUntil[rank])
	}
	begin := t
	if m.cores > 0 {
		free := m.free[int(host)*m.cores:][:m.cores]
		best := 0
		for c := range free {
			switch fits, bestFits := free[c] <= t, free[best] <= t; {
			case fits && (!bestFits || free[c] > free[best]), !fits && !bestFits && free[c] < free[best]:
				best = c
			}
		}
		begin = max(t, free[best])
		free[best] = begin + work
	}
	m.busyUntil[rank] = max(m.busyUntil[rank], begin+work)
	return begin
}

// jitter returns the random factor for the next use of a core or of a link by half id.
func (m *machine) jitter(id int32, h *half) float64 {
	if m.net.Jitter == 0 {
		return 1
	}
	u := sharding.NewRandom(m.net.Seed, "collective.simulate.jitter", int(h.rank), int(id-h.base)).Float64At(uint64(h.drawn))
	h.drawn++
	u *= u
	return 1 + float64(m.net.Jitter*5*u*u)
}
