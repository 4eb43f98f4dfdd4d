package algorithm

import (
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// Torus AllReduce. The ranks form a grid of X columns and Y rows, p = X·Y. Rank x + X·y is in
// column x of row y. A ring in each row does a reduce-scatter over its ranks. A ring in each
// column does an AllReduce of the part that its ranks have. The rings of the rows do an
// all-gather. Dims are X and Y. Without Dims, they are the two factors of p nearest to its
// square root, with X ≤ Y.
//
//	steps            2·(X − 1) + 2·(Y − 1) messages in a row
//	sent by rank r   2·n·(p−1)/p elements if p divides n: 2·n·(X−1)/X along the row
//	                 and 2·(n/X)·(Y−1)/Y along the column
//	scratch          none
//	order            different for every chunk, as in a ring (rank order and
//	                 canonical for p ≤ 2 only)
//
// Use it for long vectors among many ranks: it sends as many elements as the ring, but has far
// fewer steps (about 4·√p instead of 2·p). It suits networks with two tiers of links, since the
// links of the columns may be slower than the links of the rows.
//
// Reference: Mikami et al., "Massively Distributed SGD: ImageNet/ResNet-50 Training
// in a Flash" (2018).
func torus() *Algorithm {
	return &Algorithm{
		Name: "torus", Collective: program.AllReduce,
		TakesDims: true,
		Summary:   "rings along the rows and columns of a grid: long vectors, very many ranks",
		Canonical: atMostTwo, RankOrder: atMostTwo,
		Check:    checkTorus,
		Generate: generateTorus, Cost: torusCost,
	}
}

// checkTorus returns an error for numbers of ranks that give a ring instead of a torus, unless
// Dims requests a ring or the number is too small for any other grid.
func checkTorus(pr Params) error {
	if pr.Dims != nil && len(pr.Dims) != 2 {
		return fmt.Errorf("%d dimensions %v: want the width and the height of the torus", len(pr.Dims), pr.Dims)
	}
	if err := checkDims(pr); err != nil {
		return err
	}
	if dims := torusDims(pr); pr.Dims == nil && pr.P > 3 && dims[0] == 1 {
		return fmt.Errorf("%d ranks make no torus, for the number is prime: take a ring, or another number of ranks", pr.P)
	}
	return nil
}

// torusDims returns the width X and the height Y of the torus.
func torusDims(pr Params) []int {
	if pr.Dims != nil {
		return slices.Clone(pr.Dims)
	}
	x := int(math.Sqrt(float64(pr.P)))
	for pr.P%x != 0 {
		x--
	}
	return []int{x, pr.P / x}
}

// generateTorus makes the program of rank in time O(X + Y), not counting the factorisation of
// p.
func generateTorus(pr Params, rank int) *program.Program {
	b := build(program.AllReduce, "torus", pr, rank, pr.P)
	b.claim(atMostTwo(pr.P), atMostTwo(pr.P))
	b.Dims = torusDims(pr)
	if pr.P == 1 {
		return b.alone()
	}
	g := &grid{rank: ranksAreMembers, chunks: windowsAreChunks}
	levels := levelsOf(rank, b.Dims)
	for i := len(levels) - 1; i >= 0; i-- { // see openDirect
		b.ringLane(g, levels[i])
	}
	from := program.Ref{Buffer: program.In}
	for _, l := range levels {
		b.scatterRing(b.inRing(g, l), from)
		from = program.Ref{Buffer: program.Out}
	}
	for i := len(levels) - 1; i >= 0; i-- {
		b.gatherRing(b.inRing(g, levels[i]))
	}
	return b.finish()
}

func torusCost(pr Params) program.Cost {
	dims := torusDims(pr)
	return program.Cost{Steps: 2 * (dims[0] + dims[1] - 2), Sent: func(rank int, l program.Layout) int {
		sent, _ := gridSent(dims, rank, l, 1)
		return sent
	}}
}
