package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// pruner assigns dense rows to their nearest centres by Euclidean distance. It skips distances
// to centres that bounds rule out. Its results have the same bits as if every distance were
// computed; see bounds.go. It always computes the distance of a row to its own centre, which
// the inertia needs. A pruner belongs to one goroutine. The caller stores the bounds of each
// shard. Before any superstep it may replace bounds by zeros, which mean that nothing is known.
type pruner[T kernel.Float] struct {
	k, d    int
	limits  limits
	centers []T // row-major
	near    grouping[T]
	all     *kernel.Panels[T]   // computes the distances to all centres, in the order of near.member
	part    []*kernel.Panels[T] // for each group, computes the distances to its centres
	reach   []T                 // see kernel.Assigner
	drift   []float64           // drift of each group since the groups were made
	move    []float64           // length of the move of each centre in the last update
	epoch   int                 // number of times that the groups were made
	keep    bool                // whether there is memory for bounds

	// every searches all centres without bounds, and its results have the same bits. It is
	// faster than bounds if bounds rule out few centres, for example while centres still move
	// far.
	every   *kernel.Assigner[T]
	bounded bool // whether this superstep uses bounds
	fresh   bool // whether this superstep is the first that uses the current bounds
	pause   int  // number of supersteps until bounds are considered again
	wait    int  // length of the next pause, if the next test finds that bounds do not save time
	sample  []T  // some of the rows, by which worthIt decides
	asked   int  // number of rows since the last call of set that were beyond the reach of their centre
	pend    int  // number of groups that were searched for the rows that asked counts, over all these rows

	first   []int32 // index in near.member of the first centre of each group
	ordered []T     // centres in the order of groups
	row     []T     // distances of one row
	pending []int32
	kept    []float32 // bounds of one row, if bounds are not stored
	key     []T       // squared distances of a chunk of rows
	dist    []float64
}

// bounds has the bounds of the rows of a shard: one bound for each row and group.
type bounds struct {
	low   []float32
	epoch int // pruner.epoch of the groups to which low belongs
}

// longestWait is the largest number of supersteps until the pruner tests again whether bounds
// save time. The test needs new groups of centres and the distances of a sample of rows.
const longestWait = 7

// newPruner returns a pruner for k centres in d dimensions. groups is the number of bounds for
// each row; with 0 no bounds are stored.
func newPruner[T kernel.Float](k, d, groups int) *pruner[T] {
	keep := groups > 0
	groups = max(groups, 1)
	p := &pruner[T]{
		k: k, d: d, limits: limitsOf[T](d), centers: make([]T, k*d), keep: keep,
		every: kernel.NewAssigner[T](k, d),
		near:  newGrouping[T](k, d, groups), all: kernel.NewPanels[T](k, d),
		move: make([]float64, k), drift: make([]float64, groups),
		first: make([]int32, groups+1), ordered: make([]T, k*d), row: make([]T, k), pending: make([]int32, groups), kept: make([]float32, groups),
		key: make([]T, chunkRows), dist: make([]float64, chunkRows),
	}
	for g := range groups {
		from, to := p.near.span(g, g+1)
		p.part = append(p.part, kernel.NewPanels[T](to-from, d))
		p.first[g+1] = int32(to)
	}
	return p
}

// newBounds returns bounds for n rows. They are zeros, which mean that nothing is known.
func (p *pruner[T]) newBounds(n int) *bounds {
	if !p.keep {
		return &bounds{}
	}
	return &bounds{low: make([]float32, n*len(p.part))}
}

// set copies the centres and updates the drifts of the groups.
func (p *pruner[T]) set(centers []float64) {
	for a := range p.move {
		own := p.centers[a*p.d : (a+1)*p.d]
		var moved T
		for j, v := range centers[a*p.d : (a+1)*p.d] {
			t := T(v) - own[j]
			moved += T(t * t)
			own[j] = T(v)
		}
		p.move[a] = p.limits.moves(float64(moved))
	}
	p.every.Set(centers)
	p.reach = p.every.Reach()
	if !p.bounded && p.pause > 0 {
		p.pause--
		return
	}
	for g := range p.drift {
		p.drift[g] = drifts(p.drift[g], p.farthestMove(g))
	}
	again := p.epoch == 0 || !p.bounded || p.expensive()
	if again {
		p.epoch++
		p.near.divide(p.centers)
		clear(p.drift)
	}
	for i, a := range p.near.member {
		copy(p.ordered[i*p.d:(i+1)*p.d], p.centers[int(a)*p.d:])
	}
	p.all.Set(p.ordered)
	for g := range p.part {
		from, to := p.near.span(g, g+1)
		p.part[g].Set(p.ordered[from*p.d : to*p.d])
	}
	if again {
		p.bounded = p.worthIt()
		p.pause, p.wait = p.wait, min(2*p.wait+1, longestWait)
		if p.bounded {
			p.pause, p.wait = 0, 0
		}
	}
	p.fresh = again
	p.asked, p.pend = 0, 0
}

// farthestMove returns the largest distance that a centre of group g moved.
func (p *pruner[T]) farthestMove(g int) (most float64) {
	for _, a := range p.near.member[p.first[g]:p.first[g+1]] {
		most = max(most, p.move[a])
	}
	return most
}

// These constants give the measured cost of a superstep for a row that is beyond the reach of
// its centre, in units of kernel.Assigner.Effort. With bounds a row costs askCost for each
// group. In addition, each search of a group costs searchCost, plus searchTimes for each
// component of the group's centres; searchTimes is above 1 because a group is searched for one
// row at a time. Work that is also needed without bounds is not included.
const (
	askCost     = 24
	searchCost  = 900
	searchTimes = 2
	// Bounds are introduced if the expected cost with bounds is less than gain times the cost
	// of searching all centres.
	gain = 0.5
)

// cost returns the cost of the given number of rows with bounds. searched is the sum, over
// these rows, of the number of groups that are searched.
func (p *pruner[T]) cost(rows, searched int) float64 {
	groups := len(p.part)
	one := float64(searchTimes*p.k*p.d)/float64(groups) + searchCost
	return float64(rows*askCost*groups) + float64(float64(searched)*one)
}

// costOfEvery returns the cost of the given number of rows if all centres are searched.
func (p *pruner[T]) costOfEvery(rows int) float64 { return float64(rows) * p.every.Effort() }

// expensive reports whether the previous superstep would have cost less without bounds. It
// returns false if that superstep was the first with the current bounds.
func (p *pruner[T]) expensive() bool {
	return !p.fresh && p.cost(p.asked, p.pend) > p.costOfEvery(p.asked)
}

// worthIt reports whether bounds that are computed in this superstep are likely to rule out
// enough centres in the next one. It counts how many groups bounds would rule out for a sample
// of rows, and assumes that the next moves of the centres are as long as the last ones. The
// result affects only speed.
func (p *pruner[T]) worthIt() bool {
	rows := len(p.sample) / p.d
	if rows == 0 {
		return true
	}
	asked, searched := 0, 0
	for i := range rows {
		p.all.To(p.sample[i*p.d:(i+1)*p.d], p.row)
		own, at := math.Inf(1), int32(0)
		for l, v := range p.row {
			if float64(v) < own {
				own, at = float64(v), p.near.member[l]
			}
		}
		if own < float64(p.reach[at]) {
			continue
		}
		asked++
		asks := math.Sqrt(own) + p.move[at]
		for g := range p.part {
			least := math.Inf(1)
			for l := p.first[g]; l < p.first[g+1]; l++ {
				if p.near.member[l] != at {
					least = min(least, float64(p.row[l]))
				}
			}
			if math.Sqrt(least)-p.farthestMove(g) < asks {
				searched++
			}
		}
	}
	return p.cost(asked, searched) < gain*p.costOfEvery(asked)
}

// accumulate assigns the n rows of x to their nearest centres, adds them to sums, and returns
// their inertia. The results have the same bits as the results of kernel.Assigner.Accumulate.
// On entry, near has each row's centre in the previous superstep. On return, near has each
// row's nearest centre.
func (p *pruner[T]) accumulate(x []T, n int, w []float64, near []int32, b *bounds, sums []float64) float64 {
	if !p.bounded {
		return p.every.Accumulate(x, n, w, near, sums, 0)
	}
	if b.epoch != p.epoch {
		clear(b.low)
		b.epoch = p.epoch
	}
	d := p.d
	var inertia float64
	for lo := 0; lo < n; lo += chunkRows {
		hi := min(lo+chunkRows, n)
		rows, own := x[lo*d:hi*d], near[lo:hi]
		p.assign(rows, own, b, lo)
		var weights []float64
		if w != nil {
			weights = w[lo:hi]
		}
		kernel.AccumulateCentroids(rows, hi-lo, d, weights, own, sums)
		dist := p.dist[:hi-lo]
		for i, v := range p.key[:hi-lo] {
			dist[i] = math.Sqrt(float64(v))
		}
		inertia = kernel.Inertia(hi-lo, weights, dist, inertia)
	}
	return inertia
}

// assign finds the nearest centre of every row of a chunk, and writes the squared distances to
// p.key. The bounds of the chunk begin at row lo of b.
func (p *pruner[T]) assign(x []T, near []int32, b *bounds, lo int) {
	p.own(x, near)
	if p.k == 1 {
		return
	}
	groups := len(p.part)
	for i, a := range near {
		key := p.key[i]
		if key < p.reach[a] {
			continue
		}
		p.asked++
		asks, n := p.limits.asks(float64(key)), 0
		kept := p.kept
		if p.keep {
			kept = b.low[(lo+i)*groups : (lo+i+1)*groups]
		} else {
			clear(kept)
		}
		drift, pending := p.drift[:len(kept)], p.pending[:len(kept)]
		for g, l := range kept {
			pending[n] = int32(g)
			if !(float64(l)-drift[g] >= asks) {
				n++
			}
		}
		if n > 0 {
			p.pend += n
			near[i], p.key[i] = p.search(x[i*p.d:(i+1)*p.d], a, key, kept, pending[:n])
		}
	}
}

// own computes the squared distance of each row of a chunk to its own centre, and writes it to
// p.key.
func (p *pruner[T]) own(x []T, near []int32) {
	kernel.OwnDistances(x, len(near), p.d, p.centers, near, p.key)
}

// search looks in the pending groups for a centre that is nearer to the row x than its current
// centre a. key is the squared distance to a. It stores new bounds for the searched groups in
// kept, and returns the nearest centre with its squared distance.
func (p *pruner[T]) search(x []T, a int32, key T, kept []float32, pending []int32) (int32, T) {
	groups := len(p.part)
	whole := 4*len(pending) >= 3*groups
	if whole {
		p.all.To(x, p.row)
		pending = p.pending[:groups]
		for g := range pending {
			pending[g] = int32(g)
		}
	}
	best, arg := math.Float64bits(float64(key)), a
	// home is the group in which the search found arg, or −1 while arg is a. If home is not −1,
	// second is the smallest squared distance of the other centres of home.
	home, second := int32(-1), uint64(0)
	for _, g := range pending {
		from, to := p.first[g], p.first[g+1]
		out := p.row[from:to]
		if !whole {
			p.part[g].To(x, out)
		}
		least := leastOf(out)
		kept[g] = p.limits.keeps(math.Float64frombits(least), p.drift[g])
		if least > best {
			continue
		}
		if at, other := twoLeast(out); least < best || p.near.member[int(from)+at] <= arg {
			best, arg, home, second = least, p.near.member[int(from)+at], g, other
		}
	}
	if home >= 0 {
		// If the group has only one centre, there are no other centres. second is then treated
		// as an infinite distance.
		kept[home] = p.limits.keeps(math.Float64frombits(min(second, infinity)), p.drift[home])
	}
	if arg != a {
		was := p.near.of[a]
		kept[was] = min(kept[was], p.limits.keeps(float64(key), p.drift[was]))
	}
	return arg, T(math.Float64frombits(best))
}

// leastOf returns the bits of the smallest number in out. No number may be negative. The bits,
// compared as integers, have the same order as the numbers, and the smallest is found without
// branches.
func leastOf[T kernel.Float](out []T) uint64 {
	if len(out) != 8 {
		least := math.Float64bits(float64(out[0]))
		for _, v := range out[1:] {
			least = min(least, math.Float64bits(float64(v)))
		}
		return least
	}
	o := (*[8]T)(out)
	return min(
		min(min(math.Float64bits(float64(o[0])), math.Float64bits(float64(o[1]))), min(math.Float64bits(float64(o[2])), math.Float64bits(float64(o[3])))),
		min(min(math.Float64bits(float64(o[4])), math.Float64bits(float64(o[5]))), min(math.Float64bits(float64(o[6])), math.Float64bits(float64(o[7])))))
}

// twoLeast returns the index at of the smallest number in out, which is the first of equal
// numbers. second has the bits of the smallest of the other numbers.
func twoLeast[T kernel.Float](out []T) (at int, second uint64) {
	least, second := math.Float64bits(float64(out[0])), uint64(math.MaxUint64)
	for l, v := range out[1:] {
		bits := math.Float64bits(float64(v))
		second = min(second, max(least, bits))
		if bits < least {
			least, at = bits, l+1
		}
	}
	return at, second
}

// infinity has the bits of +Inf.
const infinity = 0x7ff0000000000000
