package bins

import (
	"math"
	"slices"
)

// A key is a float32 value mapped to a uint32, such that keys have the order of the values. The
// key of a positive number is its bits with the sign bit set. The key of a negative number is
// its bits inverted.

// zeroKey is the key of 0.
const zeroKey = 1 << 31

// keyOf returns the key of a value that Single returned. The value must not be NaN.
func keyOf(x float32) uint32 {
	b := math.Float32bits(x)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// valueOf returns the value that has the given key.
func valueOf(key uint32) float32 {
	if key&(1<<31) != 0 {
		return math.Float32frombits(key &^ (1 << 31))
	}
	return math.Float32frombits(^key)
}

// between returns a float32 m with a < m ≤ b, for a < b: the mean of a and b, or b if the mean
// rounds to a.
func between(a, b float32) float32 {
	m := float32((float64(a) + float64(b)) / 2)
	if m > a {
		return m + 0
	}
	return b
}

// The radix sort sorts by three digits of 11 bits each, which cover 32 bits.
const (
	digitBits = 11
	digits    = 3
	radix     = 1 << digitBits
	// With at least radixFrom keys, radix sort is faster than slices.Sort.
	radixFrom = 1 << 10
)

// sortKeys sorts keys in ascending order. spare must have the capacity of keys. Of the two
// slices keys and spare, sorted is the one with the result, and rest is the other one.
func sortKeys(keys, spare []uint32) (sorted, rest []uint32) {
	if len(keys) < radixFrom {
		slices.Sort(keys)
		return keys, spare
	}
	var count [digits][radix]uint32
	for _, k := range keys {
		count[0][k&(radix-1)]++
		count[1][k>>digitBits&(radix-1)]++
		count[2][k>>(2*digitBits)]++
	}
	spare = spare[:len(keys)]
	for d := range digits {
		shift := uint(d * digitBits)
		at := &count[d]
		if at[keys[0]>>shift&(radix-1)] == uint32(len(keys)) {
			continue // all keys have the same digit
		}
		starts(at)
		for _, k := range keys {
			digit := k >> shift & (radix - 1)
			spare[at[digit]] = k
			at[digit]++
		}
		keys, spare = spare, keys
	}
	return keys, spare
}

// sortPairs does what sortKeys does, for words with a key in the upper half.
func sortPairs(pairs, spare []uint64) (sorted, rest []uint64) {
	if len(pairs) < radixFrom {
		slices.Sort(pairs)
		return pairs, spare
	}
	var count [digits][radix]uint32
	for _, w := range pairs {
		k := uint32(w >> 32)
		count[0][k&(radix-1)]++
		count[1][k>>digitBits&(radix-1)]++
		count[2][k>>(2*digitBits)]++
	}
	spare = spare[:len(pairs)]
	for d := range digits {
		shift := uint(32 + d*digitBits)
		at := &count[d]
		if at[pairs[0]>>shift&(radix-1)] == uint32(len(pairs)) {
			continue
		}
		starts(at)
		for _, w := range pairs {
			digit := w >> shift & (radix - 1)
			spare[at[digit]] = w
			at[digit]++
		}
		pairs, spare = spare, pairs
	}
	return pairs, spare
}

// starts replaces counts by their exclusive prefix sums.
func starts(count *[radix]uint32) {
	var at uint32
	for i, n := range count {
		count[i] = at
		at += n
	}
}
