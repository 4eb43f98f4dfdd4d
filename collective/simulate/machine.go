package simulate

import (
	"context"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// plan is a set of programs ready to run on any network: the shapes of the simulated ranks
// (all, or one of each class) and the connections between the halves of their lanes.
type plan struct {
	p        int
	symmetry *Symmetry // nil if all ranks are simulated
	unit     int       // number of consecutive ranks that may share a resource; p if all may
	parts    []*part   // parts of the simulated ranks
	segment  int64
	serial   int64   // length of messages up to which a rank uses one core at a time
	bases    []int32 // first half of each rank; one entry more than there are ranks
	ends     []int32 // by half: the half at the other end of its channel, or -1
}

// half is the state of one half of a lane. Counted from the first half of its rank, number
// 2·lane is the receiving half of the lane, and 2·lane + 1 the sending half.
type half struct {
	shape  *shape
	order  uint64 // for events: the rank within its unit, the lane and the side
	at, hi int32  // indices in shape.steps of the current step and of the end of the lane
	seg    int32  // the current segment of the step
	rank   int32
	peer   int32 // half at the other end of the channel
	base   int32 // first half of the rank
	met    int32 // number of the segment's dependencies known to be met
	state  uint8
	class  uint8 // link of the sending half
	track  bool  // the lane sends more than the window, so underway is counted
	woken  bool  // the half waited for the segment when it arrived

	// If state is waitHalf, this half waits until another half is beyond segment needSeg of
	// step needAt. next is the next half in the list of halves that wait for the same half, or
	// −1.
	needAt, needSeg, next int32
	waiting               int32 // first of the list of halves that wait for this half, or −1

	arrived  int32 // number of segments that have arrived and are not received yet
	drawn    uint32
	underway int64   // number of bytes sent that are not received yet
	head     float64 // when the head of the last sent segment was at the next stage
	chain    Chain
}

// States of a half.
const (
	idle       = uint8(iota)
	working    // on a core
	waitHalf   // for another half of its rank
	waitData   // for a segment
	waitWindow // for room in the channel
	waitAck    // for the receiver to receive the segment (rendezvous)
	ended
)

// Classes of links.
const (
	onHost = uint8(iota)
	inRack
	acrossSpine
)

// transfer is a segment under way, or the acknowledgement of a received segment.
type transfer struct {
	tail  float64 // when its last byte has passed the stages so far
	bytes int64
	chain Chain
}

// machine runs a plan on a network.
type machine struct {
	*plan
	net    *Network
	window int64
	halves []half
	slow   []float64 // by rank
	host   []int32   // by rank
	rack   []int32   // by host
	cores  int       // per host; 0 is unlimited
	free   []float64 // by host, core
	alone  []bool    // by rank: uses one core at a time
	until  []float64 // by rank: until when it uses a core

	out, in, memory []server // by host
	up, down        []server // by rack
	busy            []float64
	uplink          float64
	events          queue
	transfers       []transfer
	unused          []int32
	finish          []float64
	last            int32   // the half that ended last
	end             float64 // when it ended
	handled         int64
}

// server is a first-come-first-served resource.
type server struct{ free, busy float64 }

// take gives the server work that is ready at the given time, and returns when the work begins.
func (s *server) take(from, work float64) float64 {
	begin := max(from, s.free)
	s.free = begin + work
	s.busy += work
	return begin
}

// newMachine returns a machine at time 0.
func newMachine(pl *plan, net *Network) *machine {
	m := &machine{plan: pl, net: net, window: int64(net.Window), last: -1}
	ranks := len(pl.parts)
	hosts := net.hosts(ranks)
	if m.cores = net.Cores; m.cores > len(pl.ends) {
		m.cores = 0 // with so many cores, no rank ever waits for one
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
	m.slow, m.host = make([]float64, ranks), make([]int32, ranks)
	m.finish, m.until, m.alone = make([]float64, ranks), make([]float64, ranks), make([]bool, ranks)
	m.halves = make([]half, len(pl.ends))
	for r, part := range pl.parts {
		m.slow[r], m.host[r] = net.factor(r), int32(net.hostOf(r))
		m.alone[r] = part.shape.message <= pl.serial
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
		shape: s, at: s.lanes[lane] - 1, hi: s.lanes[lane+1], rank: rank,
		order: uint64(int(rank)%m.unit)<<34 | uint64(2*lane+side),
		peer:  m.ends[id], base: m.bases[rank], next: -1, waiting: -1,
	}
	h.advance(side)
	if side == 0 || h.peer < 0 {
		return
	}
	// The class of the link depends on the real rank of the peer, even if a representative of
	// its class of ranks takes its place.
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
	h.seg, h.met = 0, 0
	for h.at++; h.at < h.hi; h.at++ {
		op := h.shape.steps[h.at].op
		if side == 1 && op.Sends() || side == 0 && op != program.DoSend {
			return
		}
	}
}

// run handles events until there are none. It returns an error if some half has not ended then.
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
		h.rank, lane, h.at-h.shape.lanes[lane], h.shape.steps[h.at].op)
}

// begin starts the current segment of a half, or records what it waits for.
func (m *machine) begin(id int32, t float64) {
	h := &m.halves[id]
	if h.at == h.hi {
		h.state = ended
		m.finish[h.rank] = max(m.finish[h.rank], t)
		if m.last < 0 || t > m.end {
			m.last, m.end = id, t
		}
		return
	}
	if !m.ready(id, h) {
		return
	}
	st := &h.shape.steps[h.at]
	bytes := float64(m.segmentBytes(h, st))
	sending := (id-h.base)&1 == 1
	var overhead, moving, folding float64
	switch {
	case sending:
		if h.track {
			if h.underway > 0 && h.underway+int64(bytes) > m.window {
				h.state = waitWindow
				return
			}
			h.underway += int64(bytes)
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
		if t >= m.until[h.rank] {
			overhead += m.net.WakeUp
		}
	}
	h.state = working
	slow := m.slow[h.rank] * m.jitter(id, h)
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

// ready reports whether the dependencies of a half's segment within its rank are met. If not,
// it adds the half to the list of the half for which it waits.
func (m *machine) ready(id int32, h *half) bool {
	deps := h.shape.depsOf(h.at)
	for ; int(h.met) < len(deps); h.met++ {
		d := &deps[h.met]
		seg := int32(math.MaxInt32)
		if d.segmented {
			seg = h.seg
		} else if h.seg > 0 {
			continue // met already for the first segment
		}
		at, first := h.shape.lanes[d.lane]+d.step, h.base+2*d.lane
		if d.recv && m.wait(id, first, at, seg) || d.send && m.wait(id, first+1, at, seg) {
			return false
		}
	}
	// A fused instruction sends the segments that its other half has received.
	fused := (id-h.base)&1 == 1 && h.shape.steps[h.at].op != program.DoSend
	return !fused || !m.wait(id, id-1, h.at, h.seg)
}

// wait adds a half, with number id, to the list of halves that wait for another half, with
// number on, and returns true. If the other half is already beyond segment seg of step at, wait
// returns false.
func (m *machine) wait(id, on, at, seg int32) bool {
	o := &m.halves[on]
	if o.at > at || o.at == at && o.seg > seg {
		return false
	}
	h := &m.halves[id]
	h.state, h.needAt, h.needSeg = waitHalf, at, seg
	h.next, o.waiting = o.waiting, id
	return true
}

// done completes the current segment of a half. It begins the halves that waited for it, and
// then the next segment of the half.
func (m *machine) done(id int32, t float64) {
	h := &m.halves[id]
	h.seg++
	h.met = 0
	if h.seg == h.shape.steps[h.at].segments {
		h.advance((id - h.base) & 1)
	}
	list := h.waiting
	h.waiting = -1
	for list >= 0 {
		w := &m.halves[list]
		next := w.next
		if h.at > w.needAt || h.at == w.needAt && h.seg > w.needSeg {
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

// core puts work that can begin at time t on a core of a rank's host, and returns when the work
// begins: as soon as a core is free and, if the rank uses one core at a time, the rank is not
// using another. Of the cores that are free at that time, it takes the one that became free
// last, so that cores that are free earlier remain for other ranks.
func (m *machine) core(rank int32, t, work float64) float64 {
	host := m.host[rank]
	m.busy[host] += work
	if m.alone[rank] {
		t = max(t, m.until[rank])
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
	m.until[rank] = max(m.until[rank], begin+work)
	return begin
}

// jitter returns the random factor for a half's next use of a core or of a link.
func (m *machine) jitter(id int32, h *half) float64 {
	if m.net.Jitter == 0 {
		return 1
	}
	u := sharding.NewRandom(m.net.Seed, "collective.simulate.jitter", int(h.rank), int(id-h.base)).Float64At(uint64(h.drawn))
	h.drawn++
	u *= u
	return 1 + float64(m.net.Jitter*5*u*u)
}
