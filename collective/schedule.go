package collective

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// schedule describes how the contributions of all ranks are folded. It has the leaves in the
// order of the tree, and the fold plan over these leaves.
type schedule struct {
	plan   *program.FoldPlan
	leaves []leafRef

	// nodes and counts describe the input that the schedule was made for: the nodes of all
	// ranks, in rank order, and the number of nodes of each rank. Both are empty for whole
	// buffers.
	nodes  []sharding.Node
	counts []int
}

// leafRef identifies a contribution by its rank and by its index among the entries of that
// rank.
type leafRef struct{ rank, entry int }

// agreement records what the last rank to arrive has decided or done for all ranks.
type agreement struct {
	schedule *schedule
	complete bool // the result is already in every Out
	packed   bool // zeros of parts and results are omitted

	// bytes and by are set in a reduction among processes: the bytes that this process sent,
	// and the algorithm.
	bytes     int64
	algorithm string
}

// planCache keeps the schedules of a group, since a loop has the same structure of nodes in
// every superstep. Only the rank that leads a meeting uses it.
type planCache struct {
	whole   *schedule
	forests []*schedule
	last    int // index of the latest hit, which is looked up first
	evict   int
}

// maxSchedules bounds the number of schedules that are kept.
const maxSchedules = 32

// wholeSchedule returns the schedule that folds one buffer per rank in the canonical tree over
// ranks.
func (p *planCache) wholeSchedule(g *LocalGroup) (*schedule, error) {
	if p.whole != nil {
		return p.whole, nil
	}
	plan, err := program.CompileFold(g.n, sharding.RankSchedule(g.n, nil))
	if err != nil {
		return nil, err
	}
	s := &schedule{plan: plan, leaves: make([]leafRef, g.n)}
	for i := range s.leaves {
		s.leaves[i].rank = i
	}
	p.whole = s
	return s, nil
}

// forestSchedule returns the schedule that folds the posted forests up the aligned tree over
// shards.
func (p *planCache) forestSchedule(g *LocalGroup) (*schedule, error) {
	if p.last < len(p.forests) && p.forests[p.last].matches(g.slots) {
		return p.forests[p.last], nil
	}
	for i, s := range p.forests {
		if s.matches(g.slots) {
			p.last = i
			return s, nil
		}
	}
	s, err := newForestSchedule(g.slots)
	if err != nil {
		return nil, err
	}
	if len(p.forests) < maxSchedules {
		p.last = len(p.forests)
		p.forests = append(p.forests, s)
	} else {
		p.last = p.evict
		p.forests[p.evict] = s
		p.evict = (p.evict + 1) % maxSchedules
	}
	return s, nil
}

// matches reports whether the schedule was made for the posted nodes.
func (s *schedule) matches(slots []slot) bool {
	rest := s.nodes
	for i := range slots {
		nodes := slots[i].nodes
		if len(nodes) != s.counts[i] || !slices.Equal(nodes, rest[:len(nodes)]) {
			return false
		}
		rest = rest[len(nodes):]
	}
	return true
}

func newForestSchedule(slots []slot) (*schedule, error) {
	s := &schedule{counts: make([]int, len(slots))}
	for r := range slots {
		s.counts[r] = len(slots[r].nodes)
		s.nodes = append(s.nodes, slots[r].nodes...)
		for e := range slots[r].nodes {
			s.leaves = append(s.leaves, leafRef{r, e})
		}
	}
	node := func(l leafRef) sharding.Node { return slots[l.rank].nodes[l.entry] }
	slices.SortStableFunc(s.leaves, func(a, b leafRef) int {
		return node(a).Range().Lo - node(b).Range().Lo
	})
	sorted := make([]sharding.Node, len(s.leaves))
	for i, l := range s.leaves {
		sorted[i] = node(l)
		if i > 0 && sorted[i-1].Range().Hi > sorted[i].Range().Lo {
			a, b := s.leaves[i-1], l
			return nil, fmt.Errorf("ranks disagree about AllReduce %q: rank %d brings node %v (shards %v) and rank %d brings node %v (shards %v), which overlap",
				slots[0].header.name, a.rank, sorted[i-1], sorted[i-1].Range(), b.rank, sorted[i], sorted[i].Range())
		}
	}
	steps, err := sharding.FoldSchedule(sorted, nil)
	if err != nil {
		return nil, err
	}
	s.plan, err = program.CompileFold(len(sorted), steps)
	return s, err
}
