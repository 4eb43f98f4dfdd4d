package forest

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// These texts name the purposes of draws.
const (
	purposeRows     = "forest rows"
	purposeFeatures = "forest features"
)

// mostDraws is the largest number of times that a bootstrap draws one row. More draws have a
// probability of less than 2^-117. Weights and labels are scaled to integers whose sums over
// rows do not overflow even if every row is drawn mostDraws times.
const mostDraws = 31

// sampler draws the rows of trees. How often a row is drawn depends only on the seed, the tree,
// the shard and the row's number within the shard. So each subtask can compute the draws of its
// rows, as soon as the trees that draw nothing are known.
type sampler struct {
	sampling Sampling
	seed     uint64
	share    float64
	// below[k] is the probability that a bootstrap draws a row at most k times.
	below []float64
	// empty has the numbers of the trees that draw no row of weight above 0 in the whole job,
	// in ascending order. These trees use all rows of weight above 0, because a tree without
	// rows has learnt nothing but would still count in the mean. A subtask cannot find these
	// trees from its own rows alone; see growing.draw.
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

// draw writes to times how often a tree draws each of the first len(times) rows of a shard. For
// a tree in empty, it writes 1 for each row.
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

// leavesOut writes to out, for len(out) rows of a shard beginning with the row first, whether
// the tree does not draw the row.
func (s *sampler) leavesOut(tree, shard, first int, out []bool) {
	_, empty := slices.BinarySearch(s.empty, tree)
	least := s.share // Subset leaves out a row if its random number is at least this, Bootstrap if it is below this
	if s.sampling == Bootstrap {
		least = s.below[0]
	}
	r := sharding.NewRandom(s.seed, purposeRows, shard, tree)
	for i := range out {
		drawn := r.Float64At(uint64(first+i)) < least == (s.sampling == Subset)
		out[i] = !empty && s.sampling != Whole && !drawn
	}
}

// draws reports whether a tree draws at least one row of weight above 0 from the table. times
// is working memory for the rows of a shard.
func (t *table) draws(s *sampler, tree int, times []uint8) bool {
	for _, span := range t.spans {
		// Nearly always one of the first rows is drawn, so a few are tried before more.
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

// draw writes, for each tree of this superstep, whether the tree draws a row of weight above 0
// among the rows of the subtask. If rows out of the bag are measured, it also does so for the
// trees of Start in the first superstep.
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

// drawn returns the number of the first tree for which draw writes a result.
func (g growing) drawn(s *state) int {
	if s.bag != nil && s.Trees == g.first {
		return 0
	}
	return s.Trees
}

// settle evaluates what draw wrote on all subtasks. In the first superstep the trees of Start
// are then added to the sums over rows out of their bags.
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

// nodeDraws makes the draws for one node. They depend only on the seed, the tree and the path
// to the node, not on the order in which nodes are split.
type nodeDraws struct {
	r   sharding.Random
	key uint64
}

// rootKey is the key of the root of a tree. A key identifies a node by its path from the root;
// see childKey.
const rootKey = 0x9e3779b97f4a7c15

func childKey(parent uint64, right bool) uint64 {
	// This is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
	// Number Generators", OOPSLA 2014).
	z := parent + 0x9e3779b97f4a7c15
	if right {
		z += 0x9e3779b97f4a7c15
	}
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a random integer in 0..n-1. draw is the number of the draw within the node.
func (d nodeDraws) below(draw uint64, n int) int {
	hi, _ := bits.Mul64(d.r.At(d.key+draw), uint64(n))
	return int(hi)
}

// uniform returns a random number in [0, 1). draw is the number of the draw within the node.
func (d nodeDraws) uniform(draw uint64) float64 { return d.r.Float64At(d.key + draw) }
