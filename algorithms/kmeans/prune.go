package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// pruner assigns dense rows to their nearest centres by Euclidean distance, with the
// bits that computing every distance would give, and skips the distances that bounds
// rule out; see bounds.go. It computes the distance of each row to its own centre in
// any case, as the inertia needs it. A pruner belongs to one goroutine; the bounds of
// each shard are kept by the caller and are disposable: zeros say that nothing is
// known, and any superstep may begin with them.
type pruner[T kernel.Float] struct {
	k, d    int
	limits  limits
	centers []T // row-major
	near    grouping[T]
	all     distances[T]   // to all centres, in the order of near.member
	part    []distances[T] // to those of a group
	reach   []T            // see limits.reach
	drift   []float64      // by group, since the groups were made
	spread  float64        // mean distance of a centre to the nearest other, halved
	epoch   int            // counts how often the groups were made

	keep bool // whether there is room for bounds

	// add adds rows to the sums of their clusters.
	add func(x []T, n, d int, w []float64, near []int32, sums []float64)

	set0    []T // centres in the order of groups
	row     []T // distances of one row
	pending []int32
	kept    []float32 // bounds of one row, where none are kept
	key     []T       // squared distances of a chunk
	dist    []float64
}

// distances computes the squared distances of a row to some centres.
type distances[T kernel.Float] interface {
	set(centers []T)   // row-major
	to(x []T, out []T) // one per centre
}

// bounds are the bounds of the rows of a shard, as many a row as there are groups.
type bounds struct {
	low   []float32
	epoch int // of the groups they are for
}

// maxReach is the largest number of centres whose reach is worth k distances each a
// superstep; that of others is left at 0.
const maxReach = 512

// farMove is the mean over groups of the farthest move of a centre, in half distances
// between neighbours, beyond which the groups are made anew.
const farMove = 0.5

// newPruner returns a pruner for k centres in d dimensions that keeps as many bounds a
// row as groups says. With 0 it keeps none.
func newPruner(k, d, groups int) *pruner[float64] {
	p := preparePruner(k, d, groups, func(k int) distances[float64] { return newPanels[float64](k, d) })
	p.add = kernel.AccumulateCentroids
	return p
}

func preparePruner[T kernel.Float](k, d, groups int, search func(k int) distances[T]) *pruner[T] {
	keep := groups > 0
	groups = max(groups, 1)
	p := &pruner[T]{
		k: k, d: d, limits: limitsOf[T](d), centers: make([]T, k*d), keep: keep,
		near: newGrouping[T](k, d, groups), all: search(k),
		reach: make([]T, k), drift: make([]float64, groups),
		set0: make([]T, k*d), row: make([]T, k), pending: make([]int32, groups), kept: make([]float32, groups),
		key: make([]T, chunkRows), dist: make([]float64, chunkRows),
	}
	for g := range groups {
		from, to := p.near.span(g, g+1)
		p.part = append(p.part, search(to-from))
	}
	return p
}

// newBounds returns room for the bounds of n rows.
func (p *pruner[T]) newBounds(n int) *bounds {
	if !p.keep {
		return &bounds{}
	}
	return &bounds{low: make([]float32, n*len(p.part))}
}

// set copies the centres and brings the bounds' drifts up to date.
func (p *pruner[T]) set(centers []float64) {
	var sum float64
	for g := range p.drift {
		from, to := p.near.span(g, g+1)
		var most float64
		for _, a := range p.near.member[from:to] {
			lo, hi := int(a)*p.d, int(a+1)*p.d
			var moved T
			for j, v := range centers[lo:hi] {
				t := T(v) - p.centers[lo+j]
				moved += T(t * t)
			}
			most = max(most, p.limits.moves(float64(moved)))
		}
		p.drift[g] = drifts(p.drift[g], most)
		sum += most
	}
	for i, v := range centers {
		p.centers[i] = T(v)
	}
	// Where centres move far, bounds are of little use, and making others costs little.
	if p.epoch == 0 || sum > farMove*p.spread*float64(len(p.drift)) {
		p.epoch++
		p.near.divide(p.centers)
		clear(p.drift)
	}
	for i, a := range p.near.member {
		copy(p.set0[i*p.d:(i+1)*p.d], p.centers[int(a)*p.d:])
	}
	p.all.set(p.set0)
	for g := range p.part {
		from, to := p.near.span(g, g+1)
		p.part[g].set(p.set0[from*p.d : to*p.d])
	}
	p.setReach()
}

// setReach finds how far each centre's nearest neighbour is.
func (p *pruner[T]) setReach() {
	clear(p.reach)
	measured := p.near.member[:min(p.k, maxReach)]
	p.spread = 0
	for i, a := range measured {
		p.all.to(p.centers[int(a)*p.d:int(a+1)*p.d], p.row)
		least := math.Inf(1)
		for other, v := range p.row {
			if other != i {
				least = min(least, float64(v))
			}
		}
		// The margin of the reach is far more than T may round it up by.
		p.reach[a] = T(p.limits.reach(least))
		p.spread += math.Sqrt(least) / 2 / float64(len(measured))
	}
}

// accumulate assigns the n rows of x, whose assignment of the superstep before is in
// near, adds them to sums, and returns their inertia, with the bits of
// kernel.AssignAccumulate.
func (p *pruner[T]) accumulate(x []T, n int, w []float64, near []int32, b *bounds, sums []float64) float64 {
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
		p.add(rows, hi-lo, d, weights, own, sums)
		dist := p.dist[:hi-lo]
		for i, v := range p.key[:hi-lo] {
			dist[i] = math.Sqrt(float64(v))
		}
		inertia = kernel.Inertia(hi-lo, weights, dist, inertia)
	}
	return inertia
}

// assign finds the nearest centre of every row of a chunk, which begins at row lo of the
// bounds, and leaves the squared distances in p.key.
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
			near[i], p.key[i] = p.search(x[i*p.d:(i+1)*p.d], a, key, kept, pending[:n])
		}
	}
}

// own computes the squared distance of each row of a chunk to its centre. Four rows
// advance together to hide the latency of their chains of additions.
func (p *pruner[T]) own(x []T, near []int32) {
	d, n := p.d, len(near)
	i := 0
	for ; i+4 <= n; i += 4 {
		r0 := x[i*d : i*d+d]
		r1, r2, r3 := x[(i+1)*d:][:len(r0)], x[(i+2)*d:][:len(r0)], x[(i+3)*d:][:len(r0)]
		c0, c1 := p.centers[int(near[i])*d:][:len(r0)], p.centers[int(near[i+1])*d:][:len(r0)]
		c2, c3 := p.centers[int(near[i+2])*d:][:len(r0)], p.centers[int(near[i+3])*d:][:len(r0)]
		var a0, a1, a2, a3 T
		for j, v := range r0 {
			t0, t1, t2, t3 := v-c0[j], r1[j]-c1[j], r2[j]-c2[j], r3[j]-c3[j]
			a0 += T(t0 * t0)
			a1 += T(t1 * t1)
			a2 += T(t2 * t2)
			a3 += T(t3 * t3)
		}
		key := (*[4]T)(p.key[i : i+4])
		key[0], key[1], key[2], key[3] = a0, a1, a2, a3
	}
	for ; i < n; i++ {
		p.key[i] = squared(x[i*d:i*d+d], p.centers[int(near[i])*d:][:d])
	}
}

// search looks for a centre nearer to a row than its own, a, at the squared distance
// key, in the pending groups, and takes new bounds for these.
func (p *pruner[T]) search(x []T, a int32, key T, kept []float32, pending []int32) (int32, T) {
	groups := len(p.part)
	whole := 4*len(pending) >= 3*groups
	if whole {
		p.all.to(x, p.row)
		pending = p.pending[:groups]
		for g := range pending {
			pending[g] = int32(g)
		}
	}
	best, arg := math.Float64bits(float64(key)), a
	// The group that arg is in and the least distance of its other centres, once known.
	home, second := int32(-1), uint64(0)
	for _, g := range pending {
		from, to := p.near.span(int(g), int(g)+1)
		out := p.row[from:to]
		if !whole {
			p.part[g].to(x, out)
		}
		// Bits of numbers of 0 or more order as they do, and select without a branch.
		m1, m2, at := math.Float64bits(float64(out[0])), uint64(math.MaxUint64), 0
		for l, v := range out[1:] {
			bits := math.Float64bits(float64(v))
			m2 = min(m2, max(m1, bits))
			if bits < m1 {
				m1, at = bits, l+1
			}
		}
		kept[g] = p.limits.keeps(math.Float64frombits(m1), p.drift[g])
		if c := p.near.member[from+at]; m1 < best || m1 == best && c <= arg {
			best, arg, home, second = m1, c, g, m2
		}
	}
	if home >= 0 {
		// A group of one centre has no other: as far as can be.
		kept[home] = p.limits.keeps(math.Float64frombits(min(second, infinity)), p.drift[home])
	}
	if arg != a {
		was := p.near.of[a]
		kept[was] = min(kept[was], p.limits.keeps(float64(key), p.drift[was]))
	}
	return arg, T(math.Float64frombits(best))
}

// infinity is the bits of +Inf.
const infinity = 0x7ff0000000000000
