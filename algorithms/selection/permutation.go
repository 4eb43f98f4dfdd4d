package selection

import (
	"math/bits"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// permutation is a random permutation of 0..n-1 whose values can be computed independently of
// each other. It is a Feistel network (Luby and Rackoff, SIAM Journal on Computing 17, 1988) on
// 0..2^(2·half)-1, the smallest such range that contains 0..n-1. The network is applied
// repeatedly until the value is below n (Black and Rogaway, CT-RSA 2002). The round functions
// are draws of a counter-based generator.
type permutation struct {
	n    uint64
	half uint // number of bits of each half
	r    sharding.Random
}

// permutationRounds is the number of rounds of the network. It is larger than the four rounds
// that theory requires, because for small n each half has only one or two bits.
const permutationRounds = 8

// newPermutation returns a permutation of 0..n-1. It is a function of the seed, the purpose and
// the number of the class.
func newPermutation(seed uint64, purpose string, class int, n int64) permutation {
	width := uint(bits.Len64(uint64(max(n, 1) - 1)))
	return permutation{n: uint64(n), half: max((width+1)/2, 1), r: sharding.NewRandom(seed, purpose, -1, class)}
}

// at returns the value of the permutation for i, which must be in 0..n-1.
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

// share returns t·upTo/n, rounded, for upTo ≤ n. If t of n rows are selected at even distances,
// this is the number of selected rows among the first upTo rows.
func share(t, upTo, n int64) int64 {
	hi, lo := bits.Mul64(uint64(t), uint64(upTo))
	lo, carry := bits.Add64(lo, uint64(n)/2, 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(n))
	return int64(q)
}
