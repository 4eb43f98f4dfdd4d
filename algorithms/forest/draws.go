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

// mostDraws is the most often that a bootstrap draws one row: more has a probability of
// less than 2^-117, and sums of integers over rows have room for it.
const mostDraws = 31

// sampler draws the rows of trees. How often a row is drawn is a function of the seed, the
// tree, the shard and the row's number within it alone, so that whoever holds the row can
// tell, once it is known which trees draw nothing.
type sampler struct {
	sampling Sampling
	seed     uint64
	share    float64
	// below has, for a bootstrap, the probabilities of at most 0, 1, … draws.
	below []float64
	// empty has the numbers of the trees, in ascending order, for which no row of weight is
	// drawn, of all rows of the job: those take all rows, or they would know nothing and
	// still have a voice. No subtask can tell by its own rows, see growing.draw.
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

// draw writes how often a tree draws each of the rows of a shard, the first len(times); once
// each, if the tree is one of the empty.
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

// leavesOut writes whether a tree draws none of the rows of a shard from number first on.
func (s *sampler) leavesOut(tree, shard, first int, out []bool) {
	_, empty := slices.BinarySearch(s.empty, tree)
	least := s.share // the draws from which on rows are left out, or up to which
	if s.sampling == Bootstrap {
		least = s.below[0]
	}
	r := sharding.NewRandom(s.seed, purposeRows, shard, tree)
	for i := range out {
		drawn := r.Float64At(uint64(first+i)) < least == (s.sampling == Subset)
		out[i] = !empty && s.sampling != Whole && !drawn
	}
}

// draws tells whether a tree draws a row of weight among the table's. times is memory for its
// rows.
func (t *table) draws(s *sampler, tree int, times []uint8) bool {
	for _, span := range t.spans {
		// The first rows nearly always tell.
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

// draw tells for each tree of this superstep whether it draws a row of weight among those
// that the subtask has; in the first superstep, where rows out of the bag are measured, also
// for those of Start.
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

// drawn returns the number of the first tree that draw tells of.
func (g growing) drawn(s *state) int {
	if s.bag != nil && s.Trees == g.first {
		return 0
	}
	return s.Trees
}

// settle takes what the subtasks told of their draws. In the first superstep it then has the
// trees of Start predict the rows out of their bags.
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

// nodeDraws are the draws of one node, which follow from the seed, the tree and the way to
// the node: neither the order in which nodes are split nor what grows beside them matters.
type nodeDraws struct {
	r   sharding.Random
	key uint64
}

// rootKey and childKey name nodes by their way from the root.
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

// below returns a number in 0..n-1 for a draw of the node, by its number.
func (d nodeDraws) below(draw uint64, n int) int {
	hi, _ := bits.Mul64(d.r.At(d.key+draw), uint64(n))
	return int(hi)
}

// uniform returns a number in [0, 1).
func (d nodeDraws) uniform(draw uint64) float64 { return d.r.Float64At(d.key + draw) }
