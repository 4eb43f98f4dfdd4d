package gbdt

import (
	"slices"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// dart keeps what dropping trees needs: the leaves in which rows ended, two bytes for each
// row and tree of up to 65,536 nodes, and the weights of the rounds.
type dart struct {
	weights []float64 // of the trees of each round
	best    []float64 // those after the best round
	ends    [][]ends  // of each round and output, those of the rows and of each set of its own
	out     []int     // rounds that are dropped at the moment, from 0
}

// ends are the nodes in which rows ended.
type ends struct {
	short []uint16
	long  []int32
}

func newDART(*state) *dart { return &dart{} }

// keepBest notes that the round at hand is the best.
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

// add adds weighted values of the nodes to margins.
func (e *ends) add(margin, values []float64) {
	for i, n := range e.short {
		margin[i] += values[n]
	}
	for i, n := range e.long {
		margin[i] += values[n]
	}
}

// drop draws the rounds whose trees are left out while those of this one are made, and takes
// them off the margins.
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

// restore puts the dropped rounds back, and gives weights to them and to the new one, whose
// trees with the learning rate rate are as large together with the dropped ones as those
// were. It returns the weight of the new round.
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

// addRound adds the trees of a round, from 0, with a weight to all margins.
func (s *state) addRound(t int, weight float64) {
	for k := range s.outputs {
		nodes := s.trees[t*s.outputs+k].Nodes
		s.values = grown(s.values, len(nodes))
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
