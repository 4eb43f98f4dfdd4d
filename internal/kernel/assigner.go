package kernel

import (
	"math"
	"unsafe"
)

// Assigner finds the nearest of k centres in d dimensions for many rows, in either precision.
// Only one goroutine may use it; it sets the centres with [Assigner.Set] before each round of
// searches. All memory is allocated by [NewAssigner].
//
// The nearest centre is the one with the least squared distance, computed as by
// [SquaredDistance] but in the precision of T; of several such centres, it is the one with the
// lowest index. A NaN distance is never the least; if all distances of a row are NaN, the row
// gets -1 and NaN. The values of near on entry of a search are used as guesses, which affect
// only speed: any values are allowed.
type Assigner[T Float] struct {
	form   dispatch
	k, d   int
	rows   []T // the centres, row-major
	reach  []T // as in [Centers]
	exact  exactSearch[T]
	filter *filter[T] // nil if there is no assembly for it

	square  []T // squared distances of a chunk
	todo    [chunk]int32
	changed [chunk]int32
	dist    [chunk]float64

	ahead []T // rows of the next chunk that are not prefetched yet

	rest        int  // number of next chunks in which guesses are not tried
	guessesFail bool // whether most guesses were wrong in the previous chunk
	skip        int  // number of next chunks in which the filter is not used
}

const (
	// After every fetchEvery rows of a chunk, fetched rows of the next chunk are prefetched.
	// Memory delivers about this number of rows in the time that fetchEvery rows take.
	fetchEvery, fetched = 16, 4
	// cacheLine is the size of a cache line in bytes.
	cacheLine = 64
)

// leastFiltered is the smallest number of rows for which the filter is no slower than computing
// every distance.
const leastFiltered = 6

// exactSearch finds nearest centres by computing every distance.
type exactSearch[T Float] interface {
	set(rows []T)
	// find searches the nearest centres of the rows of x listed in todo, which it may reorder.
	// It writes each centre to near, and the squared distance to the slice square of the
	// assigner.
	find(x []T, todo, near []int32)
}

// NewAssigner returns an assigner; k is at least 1 and d at least 0.
func NewAssigner[T Float](k, d int) *Assigner[T] { return newAssigner[T](active, k, d) }

func newAssigner[T Float](form dispatch, k, d int) *Assigner[T] {
	a := &Assigner[T]{form: form, k: k, d: d, rows: make([]T, k*d), reach: make([]T, k)}
	if is64[T]() {
		s := &search64{c: NewCenters(k, d), search: search{form: form}}
		a.exact = any(s).(exactSearch[T])
		a.square = unsafe.Slice((*T)(unsafe.Pointer(&s.key[0])), chunk)
	} else {
		a.square = make([]T, chunk)
		a.exact = any(&search32{p: NewPanels[float32](k, d), form: form, out: make([]float32, k), square: any(a.square).([]float32)}).(exactSearch[T])
	}
	if form.avx512 && k > 1 && d > 0 && d <= filterDimensions {
		a.filter = newFilter[T](k, d)
	}
	return a
}

// Set copies the k*d values of centers, row-major, rounded to T.
func (a *Assigner[T]) Set(centers []float64) {
	for i, v := range centers[:len(a.rows)] {
		a.rows[i] = T(v)
	}
	a.exact.set(a.rows)
	a.setReach()
	if a.filter != nil {
		a.filter.set(a.rows)
	}
	a.rest, a.skip, a.guessesFail = 0, 0, false
}

// setReach sets a.reach; see [Centers.setReach].
func (a *Assigner[T]) setReach() {
	switch s := any(a.exact).(type) {
	case *search64:
		for i, v := range s.c.reach {
			a.reach[i] = T(math.Float64frombits(v))
		}
	case *search32:
		if a.k > 1 && a.k <= maxReach {
			reaches(any(a.rows).([]float32), a.k, a.d, s.p.values, s.out, any(a.reach).([]float32))
		}
	}
}

// Reach returns a bound for each centre: if the squared distance of a row to the centre is less
// than the bound, this centre is the nearest to the row. A bound of 0 means that no bound is
// known. The slice must not be modified, and is valid until the next [Assigner.Set].
func (a *Assigner[T]) Reach() []T { return a.reach }

// Effort returns the time that the search of all centres takes for one row. The unit is the
// time for one feature of one centre when every distance is computed: about 70 picoseconds.
func (a *Assigner[T]) Effort() float64 {
	k, d := float64(a.k), float64(a.d)
	if a.filter != nil && a.filter.usable {
		return 30 + float64(1.5*d) + float64(0.75*k) + float64(0.11*k*d)
	}
	return 100 + float64(k*d)
}

// Assign writes to near and dist the nearest centre of each of the n rows of x and
// the distance to it, the root of the squared distance in float64.
func (a *Assigner[T]) Assign(x []T, n int, near []int32, dist []float64) {
	for lo := 0; lo < n; lo += chunk {
		hi := min(lo+chunk, n)
		a.assign(x[lo*a.d:hi*a.d], near[lo:hi])
		a.roots(dist[lo:hi])
	}
}

// Accumulate does [Assigner.Assign], [AccumulateCentroids] and [Inertia] in one pass over the
// rows, with the same bits. It is the hot loop of k-means. It returns inertia plus the inertia
// of these rows. Each squared distance in the inertia is the square of the rounded distance, as
// in Inertia.
func (a *Assigner[T]) Accumulate(x []T, n int, w []float64, near []int32, sums []float64, inertia float64) float64 {
	d := a.d
	for lo := 0; lo < n; lo += chunk {
		hi := min(lo+chunk, n)
		rows, own := x[lo*d:hi*d], near[lo:hi]
		next := x[hi*d : min(hi+chunk, n)*d]
		if a.ahead = nil; a.form.avx2 {
			a.ahead = next
		}
		a.assign(rows, own)
		var weights []float64
		if w != nil {
			weights = w[lo:hi]
		}
		// The rows of the next chunk are prefetched while the rows of this chunk are summed. Up
		// to half of the next rows were already prefetched by a.assign.
		accumulateCentroids(a.form, rows, hi-lo, d, weights, own, sums, len(next))
		dist := a.dist[:hi-lo]
		a.roots(dist)
		inertia = Inertia(hi-lo, weights, dist, inertia)
	}
	a.ahead = nil
	return inertia
}

// roots writes to dist the square roots of a.square, in float64.
func (a *Assigner[T]) roots(dist []float64) {
	square := a.square[:len(dist)]
	if n := len(dist) &^ 7; a.form.avx512 && n > 0 {
		if is64[T]() {
			wideRoots64(of64(square), n, &dist[0])
		} else {
			wideRoots32(of32(square), n, &dist[0])
		}
		square, dist = square[n:], dist[n:]
	}
	for i, v := range square {
		dist[i] = math.Sqrt(float64(v))
	}
}

// assign finds the nearest centre of every row of a chunk and leaves the squared distance to it
// in a.square. The guesses are tested first, unless most guesses were wrong in the previous
// chunks. The test of a right guess costs nothing, because the distance to this centre is
// needed anyway. A row within the reach of its guessed centre needs no search.
func (a *Assigner[T]) assign(x []T, near []int32) {
	for i, c := range near {
		if uint(c) >= uint(a.k) {
			near[i] = 0
		}
	}
	filtered := a.filter != nil && a.filter.usable && a.skip == 0
	known := !a.guessesFail
	if !filtered {
		a.skip = max(a.skip-1, 0)
		known = a.rest == 0
	}
	todo := a.todo[:len(near)]
	if known {
		a.own(x, near)
		m := 0
		for i, c := range near {
			todo[m] = int32(i)
			if !(a.square[i] < a.reach[c]) {
				m++
			}
		}
		if m*8 > len(near)*7 {
			a.rest = 8
		}
		todo = todo[:m]
	} else {
		a.rest = max(a.rest-1, 0)
		for i := range todo {
			todo[i] = int32(i)
		}
	}
	if filtered {
		todo = a.score(x, near, todo, known)
	}
	if len(todo) > 0 {
		a.exact.find(x, todo, near)
	}
}

// own writes to a.square the squared distance of each row i of a chunk to centre near[i]. It
// also prefetches rows of the next chunk.
func (a *Assigner[T]) own(x []T, near []int32) {
	for lo := 0; lo < len(near); lo += fetchEvery {
		hi := min(lo+fetchEvery, len(near))
		ownDistances(a.form, x[lo*a.d:hi*a.d], hi-lo, a.d, a.rows, near[lo:hi], a.square[lo:hi])
		a.fetch()
	}
}

// fetch prefetches the next few rows of a.ahead and removes them from it.
func (a *Assigner[T]) fetch() {
	n := min(len(a.ahead), fetched*a.d)
	if n == 0 {
		return
	}
	var one T
	fetchLines((*byte)(unsafe.Pointer(&a.ahead[0])), n*int(unsafe.Sizeof(one))/cacheLine)
	a.ahead = a.ahead[n:]
}

// score applies the filter to the rows listed in todo. Where the scores decide, it writes the
// nearest centre to near and its squared distance to a.square. It returns the rows for which
// the scores do not decide. known says whether a.square already has the squared distances to
// the guesses in near.
func (a *Assigner[T]) score(x []T, near, todo []int32, known bool) (left []int32) {
	left = todo[:0]
	changed := 0
	for lo := 0; lo < len(todo); lo += filterRows {
		part := todo[lo:min(lo+filterRows, len(todo))]
		if len(part) < leastFiltered {
			left = append(left, part...)
			break
		}
		a.fetch()
		settled := a.filter.block(x, part)
		a.fetch()
		for r, i := range part {
			if settled>>r&1 == 0 {
				left = append(left, i)
				continue
			}
			a.changed[changed] = i
			to := a.filter.near[r]
			if to != near[i] {
				changed++
			}
			near[i] = to
		}
	}
	if 4*len(left) > len(todo)+4*leastFiltered {
		a.skip = 16
	}
	a.guessesFail = 4*changed > len(near)
	if !known || a.guessesFail {
		a.own(x, near)
		return left
	}
	for _, i := range a.changed[:changed] {
		at := int(near[i]) * a.d
		a.square[i] = squaredDistance(x[int(i)*a.d:(int(i)+1)*a.d], a.rows[at:at+a.d])
	}
	return left
}

// search64 is the exactSearch for rows of float64.
type search64 struct {
	c *Centers
	search
}

func (s *search64) set(rows []float64) { s.c.Set(rows) }

func (s *search64) find(x []float64, todo, near []int32) { s.search.find(x, s.c, todo, near) }

// search32 is the exactSearch for rows of float32; it takes one row at a time.
type search32 struct {
	p      *Panels[float32]
	form   dispatch
	out    []float32
	square []float32
}

func (s *search32) set(rows []float32) { s.p.Set(rows) }

func (s *search32) find(x []float32, todo, near []int32) {
	d := s.p.d
	for _, i := range todo {
		panelDistances(s.form, x[int(i)*d:(int(i)+1)*d], s.p.values, s.out)
		best, at := uint32(noKey32), int32(-1)
		for c, v := range s.out {
			if key := math.Float32bits(v); key < best {
				best, at = key, int32(c)
			}
		}
		near[i], s.square[i] = at, math.Float32frombits(best)
	}
}

// noKey32 is the analogue of noKey for float32.
const noKey32 = 0x7f800001
