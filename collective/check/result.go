package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// source is the origin of leaves: the whole buffer of a rank, or a node of its forest.
type source struct {
	rank, slot int
	forest     bool
	node       sharding.Node
}

// String returns the number of the rank, or the text of the node.
func (s source) String() string {
	if s.forest {
		return "node" + s.node.String()
	}
	return fmt.Sprint(s.rank)
}

// shape returns an error unless the root, the input and the output of a program fit its
// collective.
func shape(p *program.Program) error {
	if p.Collective >= program.NumCollectives {
		return fmt.Errorf("rank %d: there is no %s", p.Rank, p.Collective)
	}
	if p.Collective.Rooted() != (p.Root >= 0) {
		return fmt.Errorf("rank %d: a %s with root %d", p.Rank, p.Collective, p.Root)
	}
	all, own, none := sharding.Range{Lo: 0, Hi: p.Chunks}, sharding.Range{Lo: p.Rank, Hi: p.Rank + 1}, sharding.Range{}
	in, out, blocks := all, all, true
	atRoot := func(there, elsewhere sharding.Range) sharding.Range {
		if p.Rank == p.Root {
			return there
		}
		return elsewhere
	}
	switch p.Collective {
	case program.AllReduce, program.Scan:
		blocks = false
	case program.Exscan:
		blocks = false
		if p.Rank == 0 {
			out = none
		}
	case program.Broadcast:
		in, blocks = atRoot(all, none), false
	case program.Reduce:
		out, blocks = atRoot(all, none), false
	case program.Gather:
		in, out = own, atRoot(all, none)
	case program.AllGather:
		in = own
	case program.Scatter:
		in, out = atRoot(all, none), own
	case program.ReduceScatter:
		out = own
	case program.Barrier:
		return nil // buffers of a barrier have no chunks
	}
	if blocks && p.Chunks != p.P {
		return fmt.Errorf("rank %d: a %s has one chunk a rank, not %d chunks for %d ranks", p.Rank, p.Collective, p.Chunks, p.P)
	}
	if !sameRange(p.In, in) || !sameRange(p.Out, out) {
		return fmt.Errorf("rank %d of a %s has input %v and output %v, and should have %v and %v",
			p.Rank, p.Collective, p.In, p.Out, in, out)
	}
	return overlaps(p)
}

func sameRange(a, b sharding.Range) bool { return a == b || a.Empty() && b.Empty() }

// overlaps returns an error if the source and the destination of an instruction of an AllToAll
// may overlap in memory. They must not overlap, since an executor may move the chunks in any
// order. In other collectives, operands and result have the same chunk numbers, so they are
// either the same memory or do not overlap.
func overlaps(p *program.Program) error {
	for i := range p.Lanes {
		for j := range p.Lanes[i].Steps {
			in := &p.Lanes[i].Steps[j]
			for _, r := range in.Src {
				same := r.Buffer == in.Dst.Buffer && r.Slot == in.Dst.Slot ||
					r.Buffer == program.In && r.Slot == 0 && in.Dst.Buffer == program.Out
				if in.Op != program.DoSend && same && r.Chunks != in.Dst.Chunks && !r.Chunks.Intersect(in.Dst.Chunks).Empty() {
					return fmt.Errorf("rank %d: lane %d step %d (%s): %s and %s may overlap in memory", p.Rank, i, j, in, r, in.Dst)
				}
			}
		}
	}
	return nil
}

// enumerate sets c.sources: ranks in rank order, or nodes of forests in the order of shards.
func (c *checker) enumerate() error {
	c.terms.init()
	forest := c.programs[0].Nodes != nil
	for r, p := range c.programs {
		if forest != (p.Nodes != nil) || forest != (p.Forest != 0) {
			return fmt.Errorf("rank %d brings %d nodes (forest %x), rank 0 %d: either all ranks bring forests or none",
				r, len(p.Nodes), p.Forest, len(c.programs[0].Nodes))
		}
		if forest && !(c.collective == program.AllReduce || c.collective == program.Reduce || c.collective == program.ReduceScatter) {
			return fmt.Errorf("rank %d brings a forest to a %s", r, c.collective)
		}
		if !forest {
			c.sources = append(c.sources, source{rank: r})
		}
		for slot, n := range p.Nodes {
			c.sources = append(c.sources, source{r, slot, true, n})
		}
	}
	slices.SortStableFunc(c.sources, func(a, b source) int { return a.node.Range().Lo - b.node.Range().Lo })
	_, err := c.canonicalSteps(len(c.sources))
	if len(c.sources) == 0 {
		return fmt.Errorf("no rank brings anything to the %s", c.collective)
	}
	return err
}

// sourceOf returns the index in sources of an input of a rank. slot is the number of the node
// in the forest of the rank.
func (c *checker) sourceOf(rank, slot int) int {
	if !c.sources[0].forest {
		return rank
	}
	return slices.IndexFunc(c.sources, func(s source) bool { return s.rank == rank && s.slot == slot })
}

// canonicalSteps returns the steps of the canonical fold of the first m sources.
func (c *checker) canonicalSteps(m int) ([]sharding.FoldStep, error) {
	if len(c.sources) == 0 || !c.sources[0].forest {
		return c.terms.rankSchedule(m), nil
	}
	nodes := make([]sharding.Node, m)
	for i := range nodes {
		nodes[i] = c.sources[i].node
	}
	return sharding.FoldSchedule(nodes, nil)
}

// results returns an error if the output of a rank does not agree with the definition of the
// collective.
func (c *checker) results(report *Report) error {
	report.Canonical, report.RankOrder = true, true
	switch {
	case c.collective == program.Barrier:
		return c.checkBarrier()
	case c.collective.Reduces():
		return c.folds(report)
	default:
		return c.moves()
	}
}

// checkBarrier returns an error if a rank of a barrier may end before all ranks have begun.
func (c *checker) checkBarrier() error {
	p := len(c.programs)
	for r := range c.ranks {
		known := c.onlySelf(r)
		for i := range c.ranks[r].halves {
			known.add(c.ranks[r].halves[i].known)
		}
		if known.len() == p {
			continue
		}
		for other := range p {
			if known[other/64]>>(other%64)&1 == 0 {
				return fmt.Errorf("rank %d can leave the barrier before rank %d enters it (it knows of %d ranks of %d)", r, other, known.len(), p)
			}
		}
	}
	return nil
}

// output returns the id of the term in a chunk of the output of a rank.
func (c *checker) output(rank, chunk int) (int, error) {
	k := &c.ranks[rank]
	x := &k.out[chunk-k.prog.Out.Lo]
	if !x.defined {
		return 0, fmt.Errorf("rank %d: out[%d] is never written", rank, chunk)
	}
	return x.term, nil
}

// moves checks the results of collectives that move blocks without folding them.
func (c *checker) moves() error {
	for r, p := range c.programs {
		for chunk := p.Out.Lo; chunk < p.Out.Hi; chunk++ {
			got, err := c.output(r, chunk)
			if err != nil {
				return err
			}
			var want int
			switch c.collective {
			case program.Broadcast, program.Scatter:
				want = c.terms.leaf(p.Root, chunk)
			case program.AllToAll:
				want = c.terms.leaf(chunk, r)
			default: // Gather, AllGather
				want = c.terms.leaf(chunk, chunk)
			}
			if got != want {
				return fmt.Errorf("rank %d: out[%d] is %s instead of %s", r, chunk, c.text(got), c.text(want))
			}
		}
	}
	return nil
}

// folded identifies a result by its term, the number of operands that it must have, and its
// chunk.
type folded struct{ term, operands, chunk int }

// folds checks the results of collectives that reduce: every operand must occur exactly once,
// the trees of an AllReduce must be equal on all ranks, and the claims must hold.
func (c *checker) folds(report *Report) error {
	inOrder := map[folded]bool{} // checked result -> whether it keeps the order of ranks
	canonical := map[[2]int]int{}
	for r, p := range c.programs {
		m := len(c.sources)
		switch c.collective {
		case program.Scan:
			m = r + 1
		case program.Exscan:
			m = r
		}
		for chunk := p.Out.Lo; chunk < p.Out.Hi; chunk++ {
			got, err := c.output(r, chunk)
			if err != nil {
				return err
			}
			f := folded{got, m, chunk}
			ordered, ok := inOrder[f]
			if !ok {
				if ordered, err = c.onceEach(f); err != nil {
					return fmt.Errorf("rank %d: out[%d]: %w", r, chunk, err)
				}
				inOrder[f] = ordered
			}
			if c.collective == program.AllReduce && got != c.ranks[0].out[chunk].term {
				return fmt.Errorf("out[%d] is %s on rank %d but %s on rank 0", chunk, c.text(got), r, c.text(c.ranks[0].out[chunk].term))
			}
			want, ok := canonical[[2]int{m, chunk}]
			if !ok {
				steps, err := c.canonicalSteps(m)
				if err != nil {
					return err
				}
				want = c.terms.fold(m, chunk, steps)
				canonical[[2]int{m, chunk}] = want
			}
			report.Canonical = report.Canonical && got == want
			report.RankOrder = report.RankOrder && ordered
			if p.CanonicalTree && got != want {
				return fmt.Errorf("rank %d: out[%d] is %s, which is not the canonical tree %s", r, chunk, c.text(got), c.canonicalText(m, chunk))
			}
			if p.RankOrder && !ordered {
				return fmt.Errorf("rank %d: out[%d] is %s, which does not keep the order of ranks", r, chunk, c.text(got))
			}
		}
	}
	return nil
}

// canonicalText returns the text of the canonical tree over the first m sources.
func (c *checker) canonicalText(m, chunk int) string {
	steps, _ := c.canonicalSteps(m) // the error is nil: the steps were computed before
	value := make([]int, m)
	for s := range value {
		value[s] = c.terms.leaf(s, chunk)
	}
	for _, s := range steps {
		value[s.Left] = c.terms.join(value[s.Left], value[s.Right])
	}
	return c.text(value[0])
}

// onceEach returns an error unless the leaves of result f are the first f.operands sources,
// each exactly once. ordered reports whether the sources are in order.
func (c *checker) onceEach(f folded) (ordered bool, err error) {
	count := make([]int, len(c.sources))
	var wrong []string
	ordered = true
	n := 0
	c.terms.leaves(f.term, func(source, chunk int) bool {
		if chunk != f.chunk {
			wrong = append(wrong, fmt.Sprintf("has %s[%d]", c.sources[source], chunk))
		}
		count[source]++
		ordered = ordered && source == n
		n++
		return n <= 2*f.operands+2 // a result with more leaves is wrong in any case
	})
	for s, times := range count {
		if want := s < f.operands; want && times != 1 || !want && times != 0 {
			wrong = append(wrong, fmt.Sprintf("has %s %d times", c.sources[s], times))
		}
	}
	if len(wrong) > 8 {
		wrong = append(wrong[:8], fmt.Sprintf("and %d more", len(wrong)-8))
	}
	if len(wrong) > 0 {
		return false, fmt.Errorf("%s: %s", c.text(f.term), strings.Join(wrong, ", "))
	}
	return ordered, nil
}
