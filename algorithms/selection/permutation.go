package selection

import (
	"math/bits"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// permutation is a random order of 0..n-1 that computes each place by itself. It is a
// Feistel network (Luby and Rackoff, SIAM Journal on Computing 17, 1988) over the least
// square of a power of two that holds n. It is applied again until the value is below n
// (Black and Rogaway, CT-RSA 2002). Its round functions are draws of a counter-based
// generator.
type permutation struct {
	n    uint64
	half uint // bits of each half
	r    sharding.Random
}

// permutationRounds is more than the four rounds that theory asks for, as halves have only a
// bit or two for small n.
const permutationRounds = 8

// newPermutation returns the order of n rows for a purpose and a class of rows.
func newPermutation(seed uint64, purpose string, class int, n int64) permutation {
	width := uint(bits.Len64(uint64(max(n, 1) - 1)))
	return permutation{n: uint64(n), half: max((width+1)/2, 1), r: sharding.NewRandom(seed, purpose, -1, class)}
}

// at returns the place of i, which must be in 0..n-1.
func (p *permutation) at(i int64) int64 {
	mask := uint64(1)<<p.half - 1
	x := uint64(i)
	for {
		left, right := x>>p.half, x&mask
		for round := range uint64(permutationRounds) {
			left, right = right, left^(p.r.At(round<<p.half|right)&mask)
		}
		if x = left<<p.half | right; x < p.n {
			return int64(x)
		}
	}
}

// share returns t·upTo/n, rounded, for upTo at most n. It is how many of t rows belong to
// the first upTo of n.
func share(t, upTo, n int64) int64 {
	hi, lo := bits.Mul64(uint64(t), uint64(upTo))
	lo, carry := bits.Add64(lo, uint64(n)/2, 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(n))
	return int64(q)
}
