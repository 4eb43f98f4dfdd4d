package sharding

import (
	"fmt"
	"math/bits"
)

// Random is a sequence of random numbers. Draw number index is a function of (seed, purpose,
// shard, step, index) alone: it does not depend on the process, the time or earlier draws. At
// and Float64At return a draw by its index. The other methods consume the draws of the same
// sequence in order, beginning with index 0.
//
// The generator is Philox2x64-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As
// Easy as 1, 2, 3" (SC'11). Draw number index is word (index mod 2) of the block with counter
// (index div 2, stream) under a key, where
//
//   - stream holds the low 24 bits of shard above the low 40 bits of step, so that different
//     shards and steps never share a draw, and
//   - key is word 0 of the block with counter (h(purpose), length of purpose) under the key
//     seed, where h is 64-bit FNV-1a.
//
// If a shard or step needs more bits, the key described above is replaced by word 0 of the
// block with counter (shard, step) under that key.
//
// A copy of a Random continues independently from the position at which it was copied. No
// method allocates. Only one goroutine at a time may call methods that change a Random. At and
// Float64At do not change it.
type Random struct {
	key    uint64
	stream uint64
	next   uint64 // index of the next draw
	spare  uint64 // the draw at next, when next is odd
}

// The stream word has stepBits bits of the step and shardBits bits of the shard.
const (
	stepBits  = 40
	shardBits = 64 - stepBits
)

// NewRandom returns the sequence of a purpose in one shard at one step. A draw that belongs to
// no shard uses shard -1. Other numbers, such as row or user ids, may be passed as shard and
// step: each pair (shard, step) has its own sequence.
func NewRandom(seed uint64, purpose string, shard, step int) Random {
	key, _ := philox(fnv1a(purpose), uint64(len(purpose)), seed)
	if uint64(shard+1) >= 1<<shardBits || uint64(step) >= 1<<stepBits {
		key, _ = philox(uint64(shard), uint64(step), key)
	}
	return Random{
		key:    key,
		stream: uint64(shard)<<stepBits | uint64(step)&(1<<stepBits-1),
	}
}

// At returns draw number index: 64 random bits.
func (r Random) At(index uint64) uint64 {
	a, b := philox(index>>1, r.stream, r.key)
	if index&1 == 0 {
		return a
	}
	return b
}

// Float64At returns draw number index as a multiple of 2^-53 in [0, 1).
func (r Random) Float64At(index uint64) float64 { return unit(r.At(index)) }

// Uint64 returns the next 64 random bits.
func (r *Random) Uint64() uint64 {
	index := r.next
	r.next++
	if index&1 == 1 {
		return r.spare
	}
	a, b := philox(index>>1, r.stream, r.key)
	r.spare = b
	return a
}

// Float64 returns the next draw as a multiple of 2^-53 in [0, 1).
func (r *Random) Float64() float64 { return unit(r.Uint64()) }

// IntN returns a number in 0..n-1, each with the same probability, by the method of Lemire,
// "Fast Random Integer Generation in an Interval" (ACM TOMACS 29, 2019). It consumes one draw.
// With probability below n/2^64 it consumes more than one. It panics when n <= 0.
func (r *Random) IntN(n int) int {
	if n <= 0 {
		panic(fmt.Sprintf("sharding: Random.IntN(%d): want a positive bound", n))
	}
	bound := uint64(n)
	hi, lo := bits.Mul64(r.Uint64(), bound)
	if lo < bound {
		// Rejecting products whose low word is below 2^64 mod bound leaves equally many
		// products for every result.
		for surplus := -bound % bound; lo < surplus; {
			hi, lo = bits.Mul64(r.Uint64(), bound)
		}
	}
	return int(hi)
}

// NormFloat64 returns the next draw of the normal distribution with mean 0 and variance 1. It
// applies the inverse of the distribution function to one uniform number, so it consumes
// exactly one draw. The result lies within ±8.21 and has the same bits on every processor.
func (r *Random) NormFloat64() float64 {
	// u is an odd multiple of 2^-53. All such numbers are exact, symmetric about 1/2, and never
	// 0 or 1.
	u := (float64(r.Uint64()>>12) + 0.5) * 0x1p-52
	return normalQuantile(u)
}

// Shuffle brings the elements 0..n-1 into a random order by calling swap n-1 times, by the
// method of Fisher and Yates. Every order is equally likely. It calls IntN once per swap.
func (r *Random) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, r.IntN(i+1))
	}
}

// Shuffle brings the elements of s into the order that r.Shuffle gives. For many elements it is
// several times faster than r.Shuffle, because it calls no function per element.
func Shuffle[T any](r *Random, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		x := r.spare
		if r.next&1 == 0 {
			x, r.spare = philox(r.next>>1, r.stream, r.key)
		}
		r.next++
		j, lo := bits.Mul64(x, uint64(i+1))
		if lo <= uint64(i) { // rare: IntN decides whether to reject the draw
			r.next--
			j = uint64(r.IntN(i + 1))
		}
		s[i], s[j] = s[j], s[i]
	}
}

// Perm returns 0..n-1 in the random order that Shuffle gives.
func (r *Random) Perm(n int) []int {
	p := make([]int, max(n, 0))
	for i := range p {
		p[i] = i
	}
	r.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// unit maps the upper 53 bits of x to [0, 1).
func unit(x uint64) float64 { return float64(float64(x>>11) * 0x1p-53) }

// philox returns the block of Philox2x64-10 with counter (c0, c1) under key.
func philox(c0, c1, key uint64) (uint64, uint64) {
	const (
		multiplier = 0xD2B74407B1CE6E93
		weyl       = 0x9E3779B97F4A7C15 // golden ratio
		rounds     = 10
	)
	for range rounds {
		hi, lo := bits.Mul64(multiplier, c0)
		c0, c1 = hi^key^c1, lo
		key += weyl
	}
	return c0, c1
}

// fnv1a returns the 64-bit FNV-1a hash (Fowler, Noll and Vo) of s. Unlike hash/fnv, it does not
// allocate.
func fnv1a(s string) uint64 {
	const (
		offset = 0xcbf29ce484222325
		prime  = 0x100000001b3
	)
	h := uint64(offset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return h
}
