package grow

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// A draw is a random word. A draw for a tree, a level or a node is a function of the seed, the
// number of the tree, and the level or the node. A node is identified by its path from the
// root: 1 is the root, and 2i and 2i+1 are the children of i. Draws are computed from words of
// sharding.Random by the finaliser of splitmix64 (Steele, Lea and Flood, "Fast Splittable
// Pseudorandom Number Generators", OOPSLA 2014), which is fast enough to be called for each
// feature of each node.

// golden is 2^64 divided by the golden ratio. It is the increment of splitmix64.
const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draws has the words from which the draws for the levels and nodes of one tree are computed.
type draws struct{ levels, nodes uint64 }

// treeDraws returns the draws of a tree, and the draw for the features of the tree itself.
func treeDraws(seed uint64, tree int) (draws, uint64) {
	r := sharding.NewRandom(seed, "grow", -1, tree)
	return draws{r.At(0), r.At(1)}, r.At(3)
}

func (d draws) level(depth int32) uint64 { return mix(d.levels + golden*uint64(depth+1)) }
func (d draws) node(path uint64) uint64  { return mix(d.nodes + golden*path) }

// share returns how many of m features are drawn for the share part, as Params.ByTree
// describes. A part of 0 means 1.
func share(part float64, m int) int {
	if part == 0 {
		return m
	}
	return min(max(1, int(float64(part*float64(m)))), m)
}

// chooser draws subsets of features.
type chooser struct{ keys []uint64 }

// maxFeatures is the largest number of features, as the low 24 bits of a key in chooser hold
// the index of the feature.
const maxFeatures = 1 << 24

// take returns k of the features, in ascending order: those with the smallest hashes of draw
// and feature. It writes them to the memory of out.
func (c *chooser) take(features []int32, k int, draw uint64, out []int32) []int32 {
	if k >= len(features) {
		return append(out[:0], features...)
	}
	c.keys = c.keys[:0]
	for i, f := range features {
		c.keys = append(c.keys, mix(draw+golden*uint64(f+1))&^(maxFeatures-1)|uint64(i))
	}
	slices.Sort(c.keys)
	out = out[:0]
	for _, key := range c.keys[:k] {
		out = append(out, features[key&(maxFeatures-1)])
	}
	slices.Sort(out)
	return out
}

// usable returns the indices of the features that can split rows.
func usable(l *bins.Layout) (features []int32) {
	for i := range l.Features {
		if l.Features[i].Stored() > 0 {
			features = append(features, int32(i))
		}
	}
	return features
}
