package forest

import (
	"math/bits"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
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
// tell.
type sampler struct {
	sampling Sampling
	seed     uint64
	share    float64
	// below has, for a bootstrap, the probabilities of at most 0, 1, … draws.
	below []float64
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

// draw writes how often a tree draws each of the rows of a shard, the first len(times).
func (s *sampler) draw(tree, shard int, times []uint8) {
	if s.sampling == Whole {
		for i := range times {
			times[i] = 1
		}
		return
	}
	r := shared.NewRandom(s.seed, purposeRows, shard, tree)
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

// nodeDraws are the draws of one node, which follow from the seed, the tree and the way to
// the node: neither the order in which nodes are split nor what grows beside them matters.
type nodeDraws struct {
	r   shared.Random
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
