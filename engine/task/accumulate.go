package task

import (
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// shardSums holds one sum per shard of a range. A shard to which nothing was
// added has no sum, which differs from a sum of zero.
type shardSums struct {
	within  sharding.Range
	sums    []float64
	present []bool
}

func newShardSums(r sharding.Range) *shardSums {
	return &shardSums{within: r, sums: make([]float64, r.Len()), present: make([]bool, r.Len())}
}

func (s *shardSums) add(shard int, v float64) {
	i := shard - s.within.Lo
	if !s.present[i] {
		s.present[i], s.sums[i] = true, v
		return
	}
	s.sums[i] += v
}

// part returns the sums of one operator in the form that is sent to other processes.
func (s *shardSums) part(node plan.NodeID, name string) sumPart {
	p := sumPart{Node: node, Name: name}
	for i, v := range s.sums {
		if s.present[i] {
			p.Shards = append(p.Shards, s.within.Lo+i)
			p.Values = append(p.Values, v)
		}
	}
	return p
}

// accumulation folds the sums that the operators of a run accumulated. The sums of operators
// must be merged in the order of their nodes, which does not depend on parallelism.
type accumulation struct {
	within sharding.Range // all shards
	byName map[string]*shardSums
}

// merge adds part, the sums of one operator for some shards.
func (a *accumulation) merge(part *sumPart) {
	all := a.byName[part.Name]
	if all == nil {
		all = newShardSums(a.within)
		a.byName[part.Name] = all
	}
	for i, v := range part.Values {
		all.add(part.Shards[i], v)
	}
}

// fold returns the accumulators, sorted by name.
func (a *accumulation) fold() []Accumulator {
	var out []Accumulator
	for _, name := range slices.Sorted(maps.Keys(a.byName)) {
		s := a.byName[name]
		f := sharding.NewFolder(s.within, func(left, right float64) float64 { return left + right }, nil)
		for i, v := range s.sums {
			if s.present[i] {
				f.Push(i, v)
			}
		}
		forest := f.Forest()
		if len(forest) == 1 {
			out = append(out, Accumulator{Name: name, Value: kernel.OneNaNOf(forest[0].Value)})
		}
	}
	return out
}

// counterList sorts counters by name.
func counterList(counters map[string]int64) []Counter {
	var out []Counter
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		out = append(out, Counter{Name: name, Value: counters[name]})
	}
	return out
}
