package gbdt

import (
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// dart has what dropping trees needs: the weight of each round, and the leaf in which each row
// ended in each tree. A leaf takes two bytes where the tree has up to 65,536 nodes, else four.
type dart struct {
	weights []float64 // by round
	best    []float64 // the weights after the best round
	ends    [][]ends  // [round·outputs+output]: of the training rows, then of each set with rows of its own
	out     []int     // rounds that are dropped now, from 0
}

// ends are the nodes in which rows ended.
type ends struct {
	short []uint16
	long  []int32
}

func newDART(*state) *dart { return &dart{} }

// keepBest notes that the current round is the best so far.
func (d *dart) keepBest() { d.best = append(d.best[:0], d.weights...) }

// endsOf keeps node numbers.
func endsOf(leaf []int32, nodes int) ends {
	if nodes > 1<<16 {
		return ends{long: slices.Clone(leaf)}
	}
	short := make([]uint16, len(leaf))
	for i, n := range leaf {
		short[i] = uint16(n)
	}
	return ends{short: short}
}

// add adds to each margin the value of the node in which its row ended.
func (e *ends) add(margin, values []float64) {
	for i, n := range e.short {
		margin[i] += values[n]
	}
	for i, n := range e.long {
		margin[i] += values[n]
	}
}

// drop draws the rounds that are left out while the trees of this round are made, and subtracts
// their trees from the margins.
func (s *state) drop(round int) {
	d, p := s.dropped, s.params
	d.out = d.out[:0]
	random := sharding.NewRandom(p.Seed, "gbdt dart", -1, round)
	if random.Float64() < p.SkipDrop {
		return
	}
	for t := range d.weights {
		if random.Float64() < p.DropRate {
			d.out = append(d.out, t)
		}
	}
	if p.MaxDrop > 0 && len(d.out) > p.MaxDrop {
		random.Shuffle(len(d.out), func(i, j int) { d.out[i], d.out[j] = d.out[j], d.out[i] })
		d.out = d.out[:p.MaxDrop]
		slices.Sort(d.out)
	}
	for _, t := range d.out {
		s.addRound(t, -d.weights[t])
	}
}

// restore puts the dropped rounds back with smaller weights, and returns the weight of the new
// round, whose learning rate is rate. The new and the dropped trees together are then as large
// as the dropped ones were.
func (s *state) restore(rate float64) float64 {
	d, n := s.dropped, float64(len(s.dropped.out))
	weight := 1.0
	if n > 0 {
		weight = 1 / (n + rate)
	}
	for _, t := range d.out {
		d.weights[t] *= n / (n + rate)
		s.addRound(t, d.weights[t])
	}
	d.weights = append(d.weights, weight)
	return weight
}

// addRound adds the trees of round t, from 0, times a weight to all margins.
func (s *state) addRound(t int, weight float64) {
	for k := range s.outputs {
		nodes := s.trees[t*s.outputs+k].Nodes
		s.values = kernel.Sized(s.values, len(nodes))
		for i := range nodes {
			s.values[i] = weight * nodes[i].Value
		}
		kept := s.dropped.ends[t*s.outputs+k]
		kept[0].add(s.margin[k], s.values)
		at := 1
		for _, m := range s.sets {
			if m.own {
				kept[at].add(m.margin[k], s.values)
				at++
			}
		}
	}
}
