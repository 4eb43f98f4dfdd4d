package gbdt

import (
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// dart has the data that dropping trees needs: the weight of each round, and the leaf of each
// row in each tree. A leaf number takes two bytes if the tree has up to 65,536 nodes, and four
// otherwise.
type dart struct {
	weights []float64 // the weight of each round
	best    []float64 // the weights after the best round
	ends    [][]ends  // [round·outputs+output][set]; set 0 is the training rows, followed by the sets with rows of their own
	out     []int     // the rounds that are currently dropped, numbered from 0
}

// ends has, for each row, the number of the node in which the row ended in a tree.
type ends struct {
	short []uint16
	long  []int32
}

func newDART(*state) *dart { return &dart{} }

// keepBest stores the current weights as those after the best round so far.
func (d *dart) keepBest() { d.best = append(d.best[:0], d.weights...) }

// endsOf returns a copy of the node numbers leaf, in the smallest type that fits a tree with
// the given number of nodes.
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

// add adds to the margin of each row the value of the node in which the row ended.
func (e *ends) add(margin, values []float64) {
	for i, n := range e.short {
		margin[i] += values[n]
	}
	for i, n := range e.long {
		margin[i] += values[n]
	}
}

// drop draws the rounds that are left out while the trees of the given round are made, and
// subtracts the trees of these rounds from the margins.
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

// restore adds the dropped rounds to the margins again with smaller weights. It returns the
// weight of the new round, whose learning rate is rate. With these weights the new and the
// dropped trees together contribute as much as the dropped trees did before.
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

// addRound adds the trees of round t, counted from 0, to all margins, multiplied by weight.
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
