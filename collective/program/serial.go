package program

import (
	"cmp"
	"fmt"
)

// Part identifies the part of an instruction that one half of a lane runs.
type Part struct {
	Lane, Step int
	Send       bool // true for the part of the send half, false for the part of the receive half
}

// SerialOrder returns all parts of a rank's program in an order in which a single goroutine can
// run them, provided that sending never waits for the receiver. The order respects the order of
// instructions in each half of a lane, and the dependencies in After.
//
// If a rank waited for a message while the sender waited for a message that the rank had not
// yet sent, both would wait for ever. A rank does not know the programs of other ranks. So the
// order puts first what other ranks may need. At each point the next part is a send if one is
// possible, otherwise local work if that is possible, and otherwise a receive. Among sends, and
// among local parts, the order of lanes decides. Among receives, the message on which the
// longest chain of messages of this rank depends is first; if several chains are equally long,
// the order of lanes decides. So the last message of a chain, such as the result of one tree,
// is received after everything that other ranks need. Package check verifies that no set of
// ranks waits for ever.
//
// SerialOrder takes time O(m log m) for m parts and dependencies. It returns an error if the
// dependencies form a cycle.
func SerialOrder(p *Program) ([]Part, error) {
	g := newPartGraph(p)
	// Make a topological order first, to compute the lengths of chains.
	topological := make([]int32, 0, g.parts)
	waits := append([]int32(nil), g.waits...)
	for v := range waits {
		if g.has(v) && waits[v] == 0 {
			topological = append(topological, int32(v))
		}
	}
	for i := 0; i < len(topological); i++ {
		for _, w := range g.next(int(topological[i])) {
			if waits[w]--; waits[w] == 0 {
				topological = append(topological, w)
			}
		}
	}
	if len(topological) < g.parts {
		return nil, fmt.Errorf("program of rank %d: %s waits for itself", p.Rank, g.circular(waits))
	}
	for i := len(topological) - 1; i >= 0; i-- {
		g.measure(int(topological[i]))
	}

	order := make([]Part, 0, g.parts)
	var ready partHeap
	for v, n := range g.waits {
		if g.has(v) && n == 0 {
			ready.push(g, int32(v))
		}
	}
	for len(ready) > 0 {
		v := ready.pop(g)
		order = append(order, g.part(int(v)))
		for _, w := range g.next(int(v)) {
			if g.waits[w]--; g.waits[w] == 0 {
				ready.push(g, w)
			}
		}
	}
	return order, nil
}

// partGraph is the graph of dependencies between parts. Instructions are numbered over all
// lanes. Part 2·i is the receiving or local part of instruction i, and part 2·i+1 is its
// sending part.
type partGraph struct {
	p      *Program
	first  []int   // first[l] is the number of the first instruction of lane l
	lane   []int32 // lane[i] is the lane of instruction i
	begins []int32 // begins[v] is the index in succ of the first successor of part v
	succ   []int32
	waits  []int32 // waits[v] is the number of predecessors of part v that are not done; −1 if there is no part v
	height []int32 // height[v] is the number of messages in the longest chain that begins with part v
	parts  int
}

func newPartGraph(p *Program) *partGraph {
	g := &partGraph{p: p, first: make([]int, len(p.Lanes))}
	for i := range p.Lanes {
		g.first[i] = len(g.lane)
		for range p.Lanes[i].Steps {
			g.lane = append(g.lane, int32(i))
		}
	}
	n := 2 * len(g.lane)
	g.begins = make([]int32, n+1)
	g.waits, g.height = make([]int32, n), make([]int32, n)
	for i := range g.lane {
		op := g.instruction(2 * i).Op
		for k, has := range [2]bool{op != DoSend, op.Sends()} {
			if g.waits[2*i+k] = -1; has {
				g.waits[2*i+k] = 0
				g.parts++
			}
		}
	}
	g.edges(func(from, to int) {
		g.begins[from+1]++
		g.waits[to]++
	})
	for v := range n {
		g.begins[v+1] += g.begins[v]
	}
	g.succ = make([]int32, g.begins[n])
	filled := append([]int32(nil), g.begins[:n]...)
	g.edges(func(from, to int) {
		g.succ[filled[from]] = int32(to)
		filled[from]++
	})
	return g
}

// edges calls visit for each pair of parts of which the first, passed as from, must be done
// before the second, passed as to.
func (g *partGraph) edges(visit func(from, to int)) {
	for l := range g.p.Lanes {
		last := [2]int{-1, -1} // last part of each half
		for j := range g.p.Lanes[l].Steps {
			in := &g.p.Lanes[l].Steps[j]
			v := 2 * (g.first[l] + j)
			for k := range 2 {
				if !g.has(v + k) {
					continue
				}
				if last[k] >= 0 {
					visit(last[k], v+k)
				}
				last[k] = v + k
			}
			begins := v
			switch {
			case !g.has(v):
				begins = v + 1
			case g.has(v + 1): // a fused instruction receives first
				visit(v, v+1)
			}
			for _, d := range in.After {
				w := 2 * (g.first[d.Lane] + d.Step)
				for k := range 2 {
					if g.has(w + k) {
						visit(w+k, begins)
					}
				}
			}
		}
	}
}

func (g *partGraph) has(v int) bool { return g.waits[v] >= 0 }

func (g *partGraph) next(v int) []int32 { return g.succ[g.begins[v]:g.begins[v+1]] }

func (g *partGraph) part(v int) Part {
	l := int(g.lane[v/2])
	return Part{Lane: l, Step: v/2 - g.first[l], Send: v%2 == 1}
}

func (g *partGraph) instruction(v int) *Instruction {
	l := g.lane[v/2]
	return &g.p.Lanes[l].Steps[v/2-g.first[l]]
}

// measure sets the height of part v. The heights of its successors are already set.
func (g *partGraph) measure(v int) {
	h := int32(0)
	for _, w := range g.next(v) {
		h = max(h, g.height[w])
	}
	if g.class(v) != local {
		h++
	}
	g.height[v] = h
}

// circular returns a description of a part that can never start because it depends on itself.
func (g *partGraph) circular(waits []int32) string {
	for v, n := range waits {
		if n > 0 {
			at := g.part(v)
			return fmt.Sprintf("lane %d step %d (%s)", at.Lane, at.Step, g.instruction(v))
		}
	}
	return "a step"
}

// The classes of parts, in the order in which SerialOrder prefers them.
const (
	sending = iota
	local
	receiving
)

func (g *partGraph) class(v int) int {
	switch {
	case v%2 == 1:
		return sending
	case g.instruction(v).Op.Receives():
		return receiving
	default:
		return local
	}
}

// before reports whether SerialOrder chooses part a before part b if both can be done. Parts
// are numbered in the order of lanes and steps.
func (g *partGraph) before(a, b int32) bool {
	c := cmp.Compare(g.class(int(a)), g.class(int(b)))
	if c == 0 && g.class(int(a)) == receiving {
		c = -cmp.Compare(g.height[a], g.height[b])
	}
	return cmp.Or(c, cmp.Compare(a, b)) < 0
}

// partHeap is a heap of the parts that can be done. The part to do first is on top.
type partHeap []int32

func (h *partHeap) push(g *partGraph, v int32) {
	x := append(*h, v)
	i := len(x) - 1
	for i > 0 && g.before(v, x[(i-1)/2]) {
		x[i] = x[(i-1)/2]
		i = (i - 1) / 2
	}
	x[i] = v
	*h = x
}

func (h *partHeap) pop(g *partGraph) int32 {
	x := *h
	top, v := x[0], x[len(x)-1]
	x = x[:len(x)-1]
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(x) && g.before(x[child+1], x[child]) {
			child++
		}
		if child >= len(x) || !g.before(x[child], v) {
			break
		}
		x[i] = x[child]
		i = child
	}
	if len(x) > 0 {
		x[i] = v
	}
	*h = x
	return top
}
