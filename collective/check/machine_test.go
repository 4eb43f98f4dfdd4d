package check_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// machine runs programs on strings, in random order. A value is the text of the expression that
// computed it. The machine shares no code with the checker. It shows only whether the results
// of one run are right, and nothing about other orders.
type machine struct {
	programs   []*program.Program
	ranks      []machineRank
	queues     map[[3]int][][]string // (sender, receiver, channel) -> messages
	rendezvous bool                  // whether a send waits for its receive; if not set, sends never wait
	chance     *rand.Rand
	frozen     int // a rank that does not run, or -1
}

type machineRank struct {
	in      [][]*string
	out     []*string
	scratch [][]*string
	next    [][2]int // next[lane] has the next step of the receive half and the next step of the send half
	did     int
}

// part01 reports whether half s of a lane takes part in an instruction. s is 0 for the receive
// half and 1 for the send half.
func part01(op program.OpCode, s int) bool {
	return s == 1 && op.Sends() || s == 0 && op != program.DoSend
}

func leafName(p *program.Program, slot, chunk int) string {
	if p.Nodes == nil {
		return fmt.Sprintf("%d.%d", p.Rank, chunk)
	}
	return fmt.Sprintf("%v.%d", p.Nodes[slot], chunk)
}

// newMachine returns a machine that has not run yet. If aliased is set, chunk c of the first
// input and chunk c of the output have the same memory.
func newMachine(programs []*program.Program, rendezvous, aliased bool, seed int64) *machine {
	m := &machine{programs: programs, queues: map[[3]int][][]string{}, rendezvous: rendezvous,
		chance: rand.New(rand.NewSource(seed)), frozen: -1}
	for _, p := range programs {
		fill := func(n int) []*string {
			x := make([]*string, n)
			for i := range x {
				x[i] = new(string)
				*x[i] = "junk"
			}
			return x
		}
		k := machineRank{out: fill(p.Chunks), next: make([][2]int, len(p.Lanes))}
		for slot := range p.Partials() {
			x := fill(p.Chunks)
			for c := p.In.Lo; c < p.In.Hi; c++ {
				if aliased && slot == 0 {
					x[c] = k.out[c]
				}
				*x[c] = leafName(p, slot, c)
			}
			k.in = append(k.in, x)
		}
		for range p.Scratch {
			k.scratch = append(k.scratch, fill(p.Chunks))
		}
		for i := range p.Lanes {
			for s := range 2 {
				k.next[i][s] = -1
				m.skip(p, &k, i, s)
			}
		}
		m.ranks = append(m.ranks, k)
	}
	return m
}

// skip moves half s of a lane to the next instruction in which it takes part.
func (m *machine) skip(p *program.Program, k *machineRank, lane, s int) {
	steps := p.Lanes[lane].Steps
	for k.next[lane][s]++; k.next[lane][s] < len(steps) && !part01(steps[k.next[lane][s]].Op, s); {
		k.next[lane][s]++
	}
}

// done reports whether all parts of an instruction are done.
func (m *machine) done(r, lane, step int) bool {
	for s := range 2 {
		if part01(m.programs[r].Lanes[lane].Steps[step].Op, s) && m.ranks[r].next[lane][s] <= step {
			return false
		}
	}
	return true
}

// enabled returns the next instruction of half s of a lane, and whether all dependencies of the
// instruction within the rank are done.
func (m *machine) enabled(r, lane, s int) (*program.Instruction, bool) {
	at, steps := m.ranks[r].next[lane][s], m.programs[r].Lanes[lane].Steps
	if r == m.frozen || at >= len(steps) {
		return nil, false
	}
	for _, d := range steps[at].After {
		if !m.done(r, d.Lane, d.Step) {
			return nil, false
		}
	}
	if s == 1 && steps[at].Op != program.DoSend && m.ranks[r].next[lane][0] <= at {
		return nil, false
	}
	return &steps[at], true
}

func (m *machine) memory(r int, ref program.Ref) []*string {
	k := &m.ranks[r]
	x := k.out
	switch ref.Buffer {
	case program.In:
		x = k.in[ref.Slot]
	case program.Scratch:
		x = k.scratch[ref.Slot]
	}
	return x[ref.Chunks.Lo:ref.Chunks.Hi]
}

func values(x []*string) []string {
	v := make([]string, len(x))
	for i := range x {
		v[i] = *x[i]
	}
	return v
}

// move runs a part of an instruction, chosen at random among the parts that can run. It returns
// false if no part can run.
func (m *machine) move() bool {
	type choice struct{ r, lane, s int }
	var all []choice
	for r, p := range m.programs {
		for i := range p.Lanes {
			for s := range 2 {
				if _, ok := m.enabled(r, i, s); ok {
					all = append(all, choice{r, i, s})
				}
			}
		}
	}
	m.chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, x := range all {
		if m.try(x.r, x.lane, x.s) {
			return true
		}
	}
	return false
}

func (m *machine) try(r, lane, s int) bool {
	in, _ := m.enabled(r, lane, s)
	l := &m.programs[r].Lanes[lane]
	switch {
	case s == 1:
		at := [3]int{r, l.SendPeer, l.Channel}
		src := in.Dst
		if in.Op == program.DoSend {
			src = in.Src[0]
		}
		message := values(m.memory(r, src))
		if !m.rendezvous {
			m.queues[at] = append(m.queues[at], message)
			m.finish(r, lane, 1)
			return true
		}
		for i := range m.programs[l.SendPeer].Lanes {
			other := &m.programs[l.SendPeer].Lanes[i]
			if other.RecvPeer != r || other.Channel != l.Channel {
				continue
			}
			if get, ok := m.enabled(l.SendPeer, i, 0); ok && get.Op.Receives() && get.Dst.Chunks.Len() == len(message) {
				m.receive(l.SendPeer, get, message)
				m.finish(l.SendPeer, i, 0)
				m.finish(r, lane, 1)
				return true
			}
		}
		return false
	case in.Op.Receives():
		at := [3]int{l.RecvPeer, r, l.Channel}
		if len(m.queues[at]) == 0 || len(m.queues[at][0]) != in.Dst.Chunks.Len() {
			return false
		}
		m.receive(r, in, m.queues[at][0])
		m.queues[at] = m.queues[at][1:]
	default:
		var operands [][]string
		for _, ref := range in.Src {
			operands = append(operands, values(m.memory(r, ref)))
		}
		for _, f := range in.Fold {
			for i := range operands[f.Left] {
				operands[f.Left][i] = "( " + operands[f.Left][i] + " " + operands[f.Right][i] + " )"
			}
		}
		for i, x := range m.memory(r, in.Dst) {
			*x = operands[0][i]
		}
	}
	m.finish(r, lane, 0)
	return true
}

func (m *machine) finish(r, lane, s int) {
	m.ranks[r].did++
	m.skip(m.programs[r], &m.ranks[r], lane, s)
}

func (m *machine) receive(r int, in *program.Instruction, message []string) {
	dst := m.memory(r, in.Dst)
	if in.Op.Reduces() {
		for i, own := range values(m.memory(r, in.Src[0])) {
			if in.RecvLeft {
				message[i] = "( " + message[i] + " " + own + " )"
			} else {
				message[i] = "( " + own + " " + message[i] + " )"
			}
		}
	}
	for i := range dst {
		*dst[i] = message[i]
	}
}

// ended reports whether a rank has done all its parts.
func (m *machine) ended(r int) bool {
	for i := range m.programs[r].Lanes {
		for s := range 2 {
			if m.ranks[r].next[i][s] < len(m.programs[r].Lanes[i].Steps) {
				return false
			}
		}
	}
	return true
}

// wrong runs programs in many orders and returns a description of the first fault, or "" if
// there is none.
func wrong(programs []*program.Program, runs int) string {
	for run := range runs {
		m := newMachine(programs, run%2 == 0, run/2%2 == 0, int64(run))
		for m.move() {
		}
		for r := range programs {
			if !m.ended(r) {
				return fmt.Sprintf("rank %d does not end", r)
			}
		}
		for at, q := range m.queues {
			if len(q) > 0 {
				return fmt.Sprintf("nobody receives %v", at)
			}
		}
		if w := wrongResults(m); w != "" {
			return w
		}
	}
	if programs[0].Collective == program.Barrier {
		return wrongBarrier(programs)
	}
	return ""
}

// wrongBarrier runs a barrier once for each rank r, with rank r stopped before it begins. It
// returns a description of the fault if another rank ends in such a run.
func wrongBarrier(programs []*program.Program) string {
	for late := range programs {
		m := newMachine(programs, false, false, int64(late))
		m.frozen = late
		for m.move() {
		}
		for r := range programs {
			if r != late && m.ended(r) {
				return fmt.Sprintf("rank %d ends before rank %d begins", r, late)
			}
		}
	}
	return ""
}

// wrongResults compares outputs with the definition of the collective, and returns a
// description of the first difference.
func wrongResults(m *machine) string {
	for r, p := range m.programs {
		for c := p.Out.Lo; c < p.Out.Hi && p.Collective != program.Barrier; c++ {
			got := *m.ranks[r].out[c]
			leaves := slices.DeleteFunc(strings.Fields(got), func(s string) bool { return s == "(" || s == ")" })
			want, tree := expected(m.programs, r, c)
			if p.Collective.Reduces() && !p.RankOrder {
				slices.Sort(leaves)
				slices.Sort(want)
			}
			if !slices.Equal(leaves, want) {
				return fmt.Sprintf("rank %d out[%d] is %s, of %v", r, c, got, want)
			}
			if p.CanonicalTree && p.Collective.Reduces() && got != tree {
				return fmt.Sprintf("rank %d out[%d] is %s, want %s", r, c, got, tree)
			}
			if p.Collective == program.AllReduce && got != *m.ranks[0].out[c] {
				return fmt.Sprintf("rank %d out[%d] is %s, on rank 0 %s", r, c, got, *m.ranks[0].out[c])
			}
		}
	}
	return ""
}

// expected returns the leaves that chunk c of the output of rank r must have, in order, and the
// text of their canonical tree.
func expected(programs []*program.Program, r, c int) (leaves []string, tree string) {
	name := func(rank, chunk int) []string { return []string{fmt.Sprintf("%d.%d", rank, chunk)} }
	p := programs[r]
	upTo := len(programs)
	switch p.Collective {
	case program.Broadcast, program.Scatter:
		return name(p.Root, c), ""
	case program.Gather, program.AllGather:
		return name(c, c), ""
	case program.AllToAll:
		return name(c, r), ""
	case program.Scan:
		upTo = r + 1
	case program.Exscan:
		upTo = r
	}
	var nodes []sharding.Node
	for s, q := range programs[:upTo] {
		if q.Nodes == nil {
			leaves = append(leaves, name(s, c)...)
		}
		nodes = append(nodes, q.Nodes...)
	}
	steps := sharding.RankSchedule(len(leaves), nil)
	if leaves == nil {
		slices.SortFunc(nodes, func(a, b sharding.Node) int { return a.Range().Lo - b.Range().Lo })
		for _, n := range nodes {
			leaves = append(leaves, fmt.Sprintf("%v.%d", n, c))
		}
		steps, _ = sharding.FoldSchedule(nodes, nil)
	}
	v := slices.Clone(leaves)
	for _, s := range steps {
		v[s.Left] = "( " + v[s.Left] + " " + v[s.Right] + " )"
	}
	return leaves, v[0]
}
