package bins

import (
	"math/bits"
	"sort"
)

// column has the sorted values of one feature on a subtask, from which its cuts are found.
// Missing values and rows of weight 0 are left out.
type column struct {
	keys []uint32 // keys of the values, ascending, with repetitions
	// cum[i] is the weight of the first i keys. cum is nil if each key weighs 1.
	cum []int64
	// absent is the weight of the rows that do not store the feature, if absent values are 0.
	absent  int64
	missing int64 // number of rows without a value, including rows of weight 0
}

// upTo returns the weight of the first i keys.
func (c *column) upTo(i int) int64 {
	if c.cum == nil {
		return int64(i)
	}
	return c.cum[i]
}

// total returns the weight of all values.
func (c *column) total() int64 { return c.upTo(len(c.keys)) + c.absent }

// lowerBound returns the first index in [lo, hi) whose key is not below key, or hi if there is
// none.
func (c *column) lowerBound(lo, hi int, key uint32) int {
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if c.keys[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// distinct appends the keys of the distinct values to dst in ascending order, and returns true.
// If there are more than limit distinct values, it returns dst unchanged and false.
func (c *column) distinct(dst []uint32, limit int) ([]uint32, bool) {
	own := len(dst)
	zero := c.absent > 0
	for i := 0; i < len(c.keys); {
		k := c.keys[i]
		if zero && k >= zeroKey {
			if k > zeroKey {
				dst = append(dst, zeroKey)
			}
			zero = false
		}
		dst = append(dst, k)
		if len(dst)-own > limit {
			return dst[:own], false
		}
		i = c.after(i, k)
	}
	if zero {
		dst = append(dst, zeroKey)
	}
	if len(dst)-own > limit {
		return dst[:own], false
	}
	return dst, true
}

// after returns the first index after i whose key is above k, which is the key at i.
func (c *column) after(i int, k uint32) int {
	step := 1
	for i+step < len(c.keys) && c.keys[i+step] == k {
		i += step
		step *= 2
	}
	hi := min(i+step, len(c.keys))
	return i + sort.Search(hi-i, func(j int) bool { return c.keys[i+j] > k })
}

// neighbours returns in a the largest key below key, or −1 if there is none, and in b the
// smallest key that is not below key, or 1<<32 if there is none.
func (c *column) neighbours(key uint32) (a, b int64) {
	i := c.lowerBound(0, len(c.keys), key)
	a, b = -1, 1<<32
	if i > 0 {
		a = int64(c.keys[i-1])
	}
	if i < len(c.keys) {
		b = int64(c.keys[i])
	}
	if c.absent > 0 {
		if zeroKey < key {
			a = max(a, zeroKey)
		} else {
			b = min(b, zeroKey)
		}
	}
	return a, b
}

// Each round of a search finds roundBits bits of a key.
const (
	roundBits = 4
	fanOut    = 1 << roundBits
	rounds    = 32 / roundBits
)

// search finds the values at given positions in the cumulative weight of a column, over all
// subtasks. The value at position t is the smallest value v such that all values up to and
// including v together weigh more than t. The search is a radix selection: each round sums, for
// every current prefix of keys, the weight of each continuation of the prefix by roundBits
// bits. All fields except lo and hi are the same on every subtask.
type search struct {
	at     []int64  // positions, ascending, from 0 to below the total
	prefix []uint32 // the known leading bits of the keys; the other bits are 0
	below  []int64  // weight of the keys below the prefix
	weight []int64  // weight of the keys with the prefix
	lo, hi []int32  // range [lo, hi) of the subtask's keys with the prefix
	shift  int      // number of bits that are not known yet
}

// newSearch returns a search for the values at the given positions.
func newSearch(at []int64, c *column) *search {
	n := len(at)
	s := &search{at: at, prefix: make([]uint32, n), below: make([]int64, n), weight: make([]int64, n), lo: make([]int32, n), hi: make([]int32, n), shift: 32}
	for i := range s.hi {
		s.hi[i] = int32(len(c.keys))
	}
	return s
}

// begins reports whether position i is the first position with its prefix.
func (s *search) begins(i int) bool { return i == 0 || s.prefix[i] != s.prefix[i-1] }

// width returns the number of sums of the next round.
func (s *search) width() int {
	n := 0
	for i := range s.at {
		if s.begins(i) {
			n += fanOut
		}
	}
	return n
}

// probe adds to out the weight of each continuation of each prefix in column c.
func (s *search) probe(c *column, out []int64) {
	shift := s.shift - roundBits
	for i := range s.at {
		if !s.begins(i) {
			continue
		}
		lo, hi := int(s.lo[i]), int(s.hi[i])
		before := c.upTo(lo)
		for b := range fanOut {
			end := hi
			if b < fanOut-1 && lo < hi {
				end = c.lowerBound(lo, hi, s.prefix[i]+uint32(b+1)<<shift)
			}
			upTo := c.upTo(end)
			out[b] += upTo - before
			lo, before = end, upTo
		}
		if c.absent > 0 && (s.shift == 32 || (zeroKey^s.prefix[i])>>s.shift == 0) {
			out[zeroKey>>shift&(fanOut-1)] += c.absent
		}
		out = out[fanOut:]
	}
}

// narrow extends each prefix by the continuation that contains its position. sums has the
// results of probe, summed over all subtasks.
func (s *search) narrow(c *column, sums []int64) {
	shift := s.shift - roundBits
	of := -fanOut
	var prefix uint32
	for i := range s.at {
		if i == 0 || s.prefix[i] != prefix { // sums[of:] begins with the sums of prefix
			of += fanOut
			prefix = s.prefix[i]
		}
		b := 0
		for ; b < fanOut-1 && s.below[i]+sums[of+b] <= s.at[i]; b++ {
			s.below[i] += sums[of+b]
		}
		s.weight[i] = sums[of+b]
		s.lo[i] = int32(c.lowerBound(int(s.lo[i]), int(s.hi[i]), prefix+uint32(b)<<shift))
		if b < fanOut-1 {
			s.hi[i] = int32(c.lowerBound(int(s.lo[i]), int(s.hi[i]), prefix+uint32(b+1)<<shift))
		}
		s.prefix[i] = prefix + uint32(b)<<shift
	}
	s.shift = shift
}

// share returns ⌊i·w/n⌋ for 0 ≤ i ≤ n.
func share(i, w, n int64) int64 {
	hi, lo := bits.Mul64(uint64(i), uint64(w))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}

// shareRest returns the quotient share(i, w, n) and the remainder of the division.
func shareRest(i, w, n int64) (q, rest int64) {
	hi, lo := bits.Mul64(uint64(i), uint64(w))
	a, b := bits.Div64(hi, lo, uint64(n))
	return int64(a), int64(b)
}
