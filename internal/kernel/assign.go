package kernel

import "math"

// chunk is the number of rows that are searched together. It is large enough to amortise the
// passes over the groups of centres. For small d it is small enough that the rows and the
// search state stay in the first-level cache.
const chunk = 128

// SquaredDistance returns the squared Euclidean distance of x and c, which have the same
// length. It is computed by the steps t = x[j]-c[j], acc = acc + t*t for j = 0, 1, …, with acc
// = 0 at the beginning.
//
// This form is used and not |x|²-2x·c+|c|², because it keeps its relative accuracy for data far
// from the origin, and is exactly 0 only for a row that equals the centre (or differs from it
// by less than about 1e-162 in every feature). The form with dot products is used only where it
// provably selects the same centre: see [Assigner].
func SquaredDistance(x, c []float64) float64 { return OneNaNOf(squaredDistance(x, c)) }

func squaredDistance[T Float](x, c []T) T {
	c = c[:len(x)]
	var acc T
	for j, v := range x {
		t := v - c[j]
		acc += T(t * t)
	}
	return acc
}

// Nearest returns the index of the centre nearest to x, and the Euclidean distance to it. The
// nearest centre has the smallest [SquaredDistance] to x; of several such centres, it is the
// one with the lowest index. The distance is the square root of the squared distance. A NaN
// distance is never the smallest; if all distances are NaN, Nearest returns -1 and NaN. x has
// at least c.D() values.
func Nearest(x []float64, c *Centers) (int, float64) {
	x = x[:c.d]
	todo, key, near := [1]int32{}, [1]uint64{noKey}, [1]int32{-1}
	for g := range c.groups {
		c.groups[g].scan(x, c.d, todo[:], key[:], near[:])
	}
	return int(near[0]), distance(key[0])
}

// AssignEuclidean writes to assign and dist, for each of the n rows of x, the
// centre and the distance that [Nearest] returns for that row alone, with the
// same bits.
//
// The values of assign on entry are used as guesses, which affect only speed: with the
// assignment of the previous superstep, most rows cost one distance instead of k. Any values
// are allowed.
func AssignEuclidean(x []float64, n int, c *Centers, assign []int32, dist []float64) {
	assignEuclidean(active, x, n, c, assign, dist)
}

func assignEuclidean(form dispatch, x []float64, n int, c *Centers, assign []int32, dist []float64) {
	s := search{form: form}
	for lo := 0; lo < n; lo += chunk {
		hi := min(lo+chunk, n)
		s.assign(x[lo*c.d:hi*c.d], c, assign[lo:hi])
		dst := dist[lo:hi]
		for i, key := range s.key[:len(dst)] {
			dst[i] = distance(key)
		}
	}
}

// distance returns the Euclidean distance for key, which has the bits of the squared distance.
func distance(key uint64) float64 { return math.Sqrt(math.Float64frombits(key)) }

// search is the working memory of an assignment, on the stack of the caller.
type search struct {
	form dispatch
	key  [chunk]uint64
	todo [chunk]int32
	rest int // number of next chunks in which guesses are not tried
}

// assign finds the nearest centre of every row of a chunk and leaves the bits of the squared
// distance to it in s.key. Testing the guesses costs one distance per row. If few guesses are
// right, as in the first supersteps or for overlapping clusters, they are not tested in most
// chunks.
func (s *search) assign(x []float64, c *Centers, assign []int32) {
	var todo []int32
	if s.rest == 0 {
		todo = s.try(x, c, assign)
		if len(todo)*8 > len(assign)*7 {
			s.rest = 8
		}
	} else {
		s.rest--
		todo = s.todo[:len(assign)]
		for i := range todo {
			todo[i] = int32(i)
		}
	}
	s.find(x, c, todo, assign)
}

// find searches all centres for the rows of x listed in todo, which it may
// reorder.
func (s *search) find(x []float64, c *Centers, todo []int32, near []int32) {
	if s.form.avx2 && c.d > 0 && len(todo) > 1 {
		todo = s.findQuads(x, c, todo, near)
	}
	if len(todo) == 0 {
		return
	}
	for _, i := range todo {
		s.key[i] = noKey
		near[i] = -1
	}
	for g := range c.groups {
		c.groups[g].scan(x, c.d, todo, s.key[:], near)
	}
}

// findQuads is find in assembly, for eight or four rows at a time; the last group is filled up
// by repeating its first row. It returns the rows for which it found no centre, because none of
// their distances is below +Inf.
func (s *search) findQuads(x []float64, c *Centers, todo, near []int32) []int32 {
	x, near, key := x[:len(near)*c.d], near[:min(len(near), chunk)], &s.key
	step := max(8*callSize/max(c.k*c.d, 1)&^(quad-1), quad)
	done := 0
	for s.form.avx512 && len(todo)-done >= wide {
		n := min(max(step&^(wide-1), wide), (len(todo)-done)&^(wide-1))
		wideNearestRows(&x[0], c.d, &todo[done], n, &c.panels[0], c.k, &key[0], &near[0])
		done += n
	}
	for len(todo)-done >= quad {
		n := min(step, (len(todo)-done)&^(quad-1))
		nearestRows(&x[0], c.d, &todo[done], n, &c.panels[0], c.k, &key[0], &near[0])
		done += n
	}
	if done < len(todo) {
		last := [quad]int32{todo[done], todo[done], todo[done], todo[done]}
		copy(last[:], todo[done:])
		nearestRows(&x[0], c.d, &last[0], quad, &c.panels[0], c.k, &key[0], &near[0])
	}
	m := 0
	for _, i := range todo {
		todo[m] = i
		if near[i] < 0 {
			m++
		}
	}
	return todo[:m]
}

// try computes the distance of each row to its guessed centre, and returns the rows for which
// this distance does not prove that the guess is right; see [Centers.setReach].
func (s *search) try(x []float64, c *Centers, assign []int32) []int32 {
	d, n := c.d, len(assign)
	for i, a := range assign {
		if uint(a) >= uint(c.k) {
			assign[i] = 0
		}
	}
	var square [chunk]float64
	ownDistances(s.form, x, n, d, c.rows, assign, square[:])
	for i, v := range square[:n] {
		s.key[i] = math.Float64bits(v)
	}
	m := 0
	for i, a := range assign {
		s.todo[m] = int32(i)
		if s.key[i] >= c.reach[a] {
			m++
		}
	}
	return s.todo[:m]
}
