package kernel

import "math"

// OrderKey maps numbers other than NaN to integers of the same order. -0 has the key of 0.
func OrderKey(v float64) uint64 {
	b := math.Float64bits(v + 0) // -0 + 0 is 0
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// OrderValue is the inverse of OrderKey.
func OrderValue(key uint64) float64 {
	return math.Float64frombits(key ^ (^uint64(int64(key)>>63) | 1<<63))
}
