package forest

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Purposes of draws.
const (
	purposeRows     = "forest rows"
	purposeFeatures = "forest features"
)

// mostDraws is the largest number of times that a bootstrap draws one row. More draws have a
// probability of less than 2^-117. Sums of integers over rows have room for this many.
const mostDraws = 31

// sampler draws the rows of trees. How often a row is drawn depends on the seed, the tree, the
// shard and the row's number within it alone. So each subtask can compute it for its rows, once
// it is known which trees draw nothing.
type sampler struct {
	sampling Sampling
	seed     uint64
	share    float64
	// below has the probabilities of at most 0, 1, … draws, for a bootstrap.
	below []float64
	// empty has the numbers of the trees that draw no row of weight above 0 in the whole job,
	// in ascending order. These trees take all rows: otherwise they would have learnt nothing
	// and still count. No subtask can tell this from its own rows; see growing.draw.
	empty []int
}

func newSampler(p Params) *sampler {
	s := &sampler{sampling: p.Sampling, seed: p.Seed, share: p.SampleShare}
	if s.sampling == Bootstrap {
		term := kernel.Exp(-s.share)
		sum := term
		for k := 1; k <= mostDraws; k++ {
			s.below = append(s.below, sum)
			term = float64(term * s.share / float64(k))
			sum += term
		}
	}
	return s
}

// draw writes how often a tree draws each of the first len(times) rows of a shard. If the tree
// is in empty, that is once each.
func (s *sampler) draw(tree, shard int, times []uint8) {
	_, empty := slices.BinarySearch(s.empty, tree)
	if empty || s.sampling == Whole {
		for i := range times {
			times[i] = 1
		}
		return
	}
	r := sharding.NewRandom(s.seed, purposeRows, shard, tree)
	if s.sampling == Subset {
		for i := range times {
			times[i] = 0
			if r.Float64() < s.share {
				times[i] = 1
			}
		}
		return
	}
	for i := range times {
		u := r.Float64()
		k := 0
		for k < len(s.below) && u >= s.below[k] {
			k++
		}
		times[i] = uint8(k)
	}
}

// leavesOut writes for each row of a shard, from number first on, whether a tree does not draw
// it.
func (s *sampler) leavesOut(tree, shard, first int, out []bool) {
	_, empty := slices.BinarySearch(s.empty, tree)
	least := s.share // Subset leaves rows out from this number on, Bootstrap below it
	if s.sampling == Bootstrap {
		least = s.below[0]
	}
	r := sharding.NewRandom(s.seed, purposeRows, shard, tree)
	for i := range out {
		drawn := r.Float64At(uint64(first+i)) < least == (s.sampling == Subset)
		out[i] = !empty && s.sampling != Whole && !drawn
	}
}

// draws reports whether a tree draws a row of weight above 0 from the table. times is memory
// for the rows of a shard.
func (t *table) draws(s *sampler, tree int, times []uint8) bool {
	for _, span := range t.spans {
		// The first rows nearly always have one.
		for n := min(64, span.Rows); ; n = min(16*n, span.Rows) {
			drawn := times[:n]
			s.draw(tree, span.Shard, drawn)
			for i, k := range drawn {
				if k > 0 && t.w[span.First+i] > 0 {
					return true
				}
			}
			if n == span.Rows {
				break
			}
		}
	}
	return false
}

// draw notes for each tree of this superstep whether it draws a row of weight above 0 among the
// rows of the subtask. In the first superstep it does so for the trees of Start too, if rows
// out of the bag are measured.
func (g growing) draw(ctx *comqueue.ComContext) error {
	s := states.Get(ctx)
	if s.rows == nil {
		if err := g.build(ctx, s); err != nil {
			return err
		}
	}
	packed.Put(ctx, nil)
	joined.Put(ctx, nil)
	s.drawing = s.drawing[:0]
	if g.params.Sampling != Whole {
		for n := g.drawn(s); n < g.until(s); n++ {
			one := int64(0)
			if s.rows.draws(s.sampler, n, s.times) {
				one = 1
			}
			s.drawing = append(s.drawing, one)
		}
	}
	drawing.Put(ctx, s.drawing)
	return nil
}

// drawn returns the number of the first tree that draw covers.
func (g growing) drawn(s *state) int {
	if s.bag != nil && s.Trees == g.first {
		return 0
	}
	return s.Trees
}

// settle evaluates the notes of all subtasks about their draws. In the first superstep the
// trees of Start then predict the rows out of their bags.
func (g growing) settle(ctx *comqueue.ComContext, s *state) error {
	first := g.drawn(s)
	for i, subtasks := range drawing.Get(ctx) {
		if subtasks == 0 {
			s.sampler.empty = append(s.sampler.empty, first+i)
		}
	}
	s.Empty = s.sampler.empty
	for n := first; n < s.Trees; n++ {
		if err := s.bag.add(n, &g.params.Start.Trees.Trees[n]); err != nil {
			return fmt.Errorf("the forest of Start: %w", err)
		}
	}
	return nil
}

// nodeDraws are the draws of one node. They depend on the seed, the tree and the path to the
// node alone, not on the order in which nodes are split.
type nodeDraws struct {
	r   sharding.Random
	key uint64
}

// rootKey and childKey identify nodes by their path from the root.
const rootKey = 0x9e3779b97f4a7c15

func childKey(parent uint64, right bool) uint64 {
	// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
	// Number Generators", OOPSLA 2014).
	z := parent + 0x9e3779b97f4a7c15
	if right {
		z += 0x9e3779b97f4a7c15
	}
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in 0..n-1 for the draw of the node with a given number.
func (d nodeDraws) below(draw uint64, n int) int {
	hi, _ := bits.Mul64(d.r.At(d.key+draw), uint64(n))
	return int(hi)
}

// uniform returns a number in [0, 1) for such a draw.
func (d nodeDraws) uniform(draw uint64) float64 { return d.r.Float64At(d.key + draw) }
