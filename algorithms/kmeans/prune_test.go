package kmeans

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// magnitudes generates components of every kind: small integers, which cause ties, numbers of
// usual size, and numbers whose squares underflow or overflow.
func magnitudes() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-2, 2), func(v int) float64 { return float64(v) }),
		rapid.Float64Range(-1, 1),
		rapid.Map(rapid.IntRange(-3, 3), func(v int) float64 { return 1 + float64(v)*0x1p-52 }),
		rapid.Map(rapid.IntRange(-300, 300), func(v int) float64 { return math.Pow(10, float64(v)) }),
		rapid.Map(rapid.IntRange(-3, 3), func(v int) float64 { return float64(v) * 5e-324 }),
		rapid.SampledFrom([]float64{0, math.MaxFloat64, -math.MaxFloat64, 0x1p-450, 0x1p-451, 0x1p511, 0x1p512}),
	)
}

// moved returns the next centres. Centres may stay, move a little, move to the means of their
// rows, or jump.
func moved(t *rapid.T, k, d int, centers, sums []float64, component *rapid.Generator[float64]) []float64 {
	next := append([]float64(nil), centers...)
	how := rapid.SampledFrom([]string{"mean", "mean", "mean", "nudge", "stay", "jump", "onto"}).Draw(t, "how")
	for a := range k {
		for j := range d {
			c := &next[a*d+j]
			switch how {
			case "mean":
				if w := sums[a*(d+1)+d]; w > 0 {
					*c = sums[a*(d+1)+j] / w
				}
			case "nudge":
				*c *= 1 + float64(a-j)*0x1p-30
			}
			if math.IsNaN(*c) || math.IsInf(*c, 0) {
				*c = 0
			}
		}
	}
	a := rapid.IntRange(0, k-1).Draw(t, "who")
	switch how {
	case "jump":
		for j := range d {
			next[a*d+j] = component.Draw(t, "to")
		}
	case "onto": // moves a centre onto another centre
		b := rapid.IntRange(0, k-1).Draw(t, "whom")
		copy(next[a*d:(a+1)*d], next[b*d:(b+1)*d])
	}
	return next
}

// everyDistance assigns rows by computing every distance, adds them to sums and returns
// the inertia.
func everyDistance(c *kernel.Centers, x []float64, n, d int, w []float64, near []int32, sums []float64) float64 {
	dist := make([]float64, n)
	kernel.AssignEuclidean(x, n, c, near, dist)
	kernel.AccumulateCentroids(x, n, d, w, near, sums)
	return kernel.Inertia(n, w, dist, 0)
}

// TestPrunedIsUnpruned requires that assignments, sums and inertia have the same bits as if
// every distance were computed, whatever bounds rule out. It runs supersteps in which centres
// move, jump, coincide and lose all rows.
func TestPrunedIsUnpruned(t *testing.T) {
	pruned := 0
	rapid.Check(t, func(t *rapid.T) {
		n, d, k := rapid.IntRange(1, 60).Draw(t, "n"), rapid.IntRange(1, 9).Draw(t, "d"), rapid.IntRange(2, 24).Draw(t, "k")
		groups := rapid.IntRange(1, k).Draw(t, "groups")
		component := rapid.SampledFrom([]*rapid.Generator[float64]{rapid.Float64Range(-1, 1), rapid.Float64Range(1e8, 1e8+1), magnitudes()}).Draw(t, "component")
		x := rapid.SliceOfN(component, n*d, n*d).Draw(t, "x")
		for i := range n / 3 { // makes duplicate rows
			copy(x[i*d:(i+1)*d], x[(n-1-i)*d:(n-i)*d])
		}
		var w []float64
		if rapid.Bool().Draw(t, "weighted") {
			w = rapid.SliceOfN(rapid.Float64Range(0, 3), n, n).Draw(t, "w")
		}
		centers := rapid.SliceOfN(component, k*d, k*d).Draw(t, "centers")
		for a := range min(k, n) / 2 {
			copy(centers[a*d:(a+1)*d], x[a*d:(a+1)*d])
		}
		p := newPruner[float64](k, d, groups)
		if rapid.Bool().Draw(t, "switches") { // switches between using bounds and not using them
			p.sample = x[:(n+1)/2*d]
		}
		all := kernel.NewCenters(k, d)
		near, want := make([]int32, n), make([]int32, n)
		low := p.newBounds(n)
		sums, wantSums := make([]float64, k*(d+1)), make([]float64, k*(d+1))
		for range rapid.IntRange(1, 8).Draw(t, "supersteps") {
			if rapid.IntRange(0, 9).Draw(t, "resume") == 0 { // replaces the pruner and the bounds by new ones, as after resuming
				p, low = newPruner[float64](k, d, groups), p.newBounds(n)
				clear(near)
			}
			clear(sums)
			clear(wantSums)
			p.set(centers)
			all.Set(centers)
			before := append([]int32(nil), near...)
			got := p.accumulate(x, n, w, near, low, sums)
			inertia := everyDistance(all, x, n, d, w, want, wantSums)
			require.Equal(t, want, near)
			require.Equal(t, math.Float64bits(inertia), math.Float64bits(got))
			requireBits(t, wantSums, sums)
			requireBounds(t, p, x, near, low)
			pruned += p.skipped(before, low)
			centers = moved(t, k, d, centers, sums, component)
		}
	})
	require.Positive(t, pruned)
}

// TestPrunedIsUnprunedInSinglePrecision requires that assignments, sums and inertia in single
// precision have the same bits as those of a simple loop over all centres.
func TestPrunedIsUnprunedInSinglePrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d, k := rapid.IntRange(1, 50).Draw(t, "n"), rapid.IntRange(1, 9).Draw(t, "d"), rapid.IntRange(1, 20).Draw(t, "k")
		groups := rapid.IntRange(0, k).Draw(t, "groups")
		component := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Map(rapid.IntRange(-2, 2), func(v int) float64 { return float64(v) }),
			rapid.Map(rapid.IntRange(-45, 18), func(v int) float64 { return math.Pow(10, float64(v)) }))
		x := make([]float32, n*d)
		for i := range x {
			x[i] = float32(component.Draw(t, "x"))
		}
		for i := range n / 3 {
			copy(x[i*d:(i+1)*d], x[(n-1-i)*d:(n-i)*d])
		}
		var w []float64
		if rapid.Bool().Draw(t, "weighted") {
			w = rapid.SliceOfN(rapid.Float64Range(0, 3), n, n).Draw(t, "w")
		}
		centers := rapid.SliceOfN(component, k*d, k*d).Draw(t, "centers")
		p := newPruner[float32](k, d, groups)
		near, low := make([]int32, n), p.newBounds(n)
		sums := make([]float64, k*(d+1))
		for range rapid.IntRange(1, 8).Draw(t, "supersteps") {
			roundSingle(centers)
			p.set(centers)
			clear(sums)
			inertia := p.accumulate(x, n, w, near, low, sums)
			want, wantSums := 0.0, make([]float64, k*(d+1))
			for i := range n {
				row, least, at := x[i*d:(i+1)*d], float32(math.Inf(1)), 0
				for a := range k {
					var sum float32
					for j, v := range row {
						difference := v - float32(centers[a*d+j])
						sum += float32(difference * difference)
					}
					if sum < least {
						least, at = sum, a
					}
				}
				weight := 1.0
				if w != nil {
					weight = w[i]
				}
				distance := math.Sqrt(float64(least))
				want += float64(weight * float64(distance*distance))
				for j, v := range row {
					wantSums[at*(d+1)+j] += float64(weight * float64(v))
				}
				wantSums[at*(d+1)+d] += weight
				require.Equal(t, int32(at), near[i])
			}
			require.Equal(t, math.Float64bits(want), math.Float64bits(inertia))
			requireBits(t, wantSums, sums)
			centers = moved(t, k, d, centers, sums, component)
		}
	})
}

func requireBits(t require.TestingT, want, got []float64) {
	for i := range want {
		require.Equal(t, math.Float64bits(want[i]), math.Float64bits(got[i]), "value %d", i)
	}
}

// requireBounds requires that the computed distance of each centre of a group, except the row's
// own centre, is at least the bound of the group.
func requireBounds(t require.TestingT, p *pruner[float64], x []float64, near []int32, b *bounds) {
	if !p.bounded { // bounds are not used, and before they are used again they are computed anew
		return
	}
	for i, a := range near {
		for c := range p.k {
			g := int(p.near.of[c])
			left := float64(b.low[i*len(p.part)+g]) - p.drift[g]
			if c == int(a) || left <= 0 {
				continue
			}
			to := kernel.SquaredDistance(x[i*p.d:(i+1)*p.d], p.centers[c*p.d:(c+1)*p.d])
			require.GreaterOrEqual(t, math.Sqrt(to), left*(1-p.limits.slack), "the distance of row %d to centre %d must be at least the bound", i, c)
		}
	}
}

// skipped returns the number of bounds in b that are above 0 after the drift of their group is
// subtracted. Only such bounds can rule out a group. before has one element for each row of b.
func (p *pruner[T]) skipped(before []int32, b *bounds) (n int) {
	groups := len(p.part)
	for i := range before {
		for g, l := range b.low[i*groups : (i+1)*groups] {
			if float64(l)-p.drift[g] > 0 {
				n++
			}
		}
	}
	return n
}

// TestTiesAreNotPruned requires that a row exactly between two centres gets the right centre
// while the centres move by the smallest possible steps. It would fail if a bound were too high
// by one rounding error.
func TestTiesAreNotPruned(t *testing.T) {
	for _, at := range []float64{0, 1, 1e8, 1e-8} {
		for _, gap := range []float64{1, 3, 0.1} {
			t.Run(fmt.Sprintf("%v±%v", at, gap), func(t *testing.T) {
				x := []float64{at}
				p, all := newPruner[float64](2, 1, 2), kernel.NewCenters(2, 1)
				low, near, want := p.newBounds(1), make([]int32, 1), make([]int32, 1)
				left, right := at-gap, at+gap
				for step := range 200 {
					centers := []float64{right, left}
					p.set(centers)
					all.Set(centers)
					sums := make([]float64, 4)
					p.accumulate(x, 1, nil, near, low, sums)
					everyDistance(all, x, 1, 1, nil, want, make([]float64, 4))
					require.Equal(t, want, near, "at step %d, the row must get the centre that a search over all centres finds", step)
					if step%3 == 0 {
						left = math.Nextafter(left, right)
					} else if step%3 == 1 {
						right = math.Nextafter(right, left)
					}
				}
			})
		}
	}
}

// TestRoomOfBounds requires that bounds take at most a quarter of the memory of the rows.
func TestRoomOfBounds(t *testing.T) {
	for _, size := range []int{4, 8} {
		for d := 1; d < 200; d++ {
			for _, k := range []int{1, 2, 7, 8, 9, 64, 100, 256, 5000} {
				groups := groupsFor(k, d, size)
				require.LessOrEqual(t, 4*groups, d*size/4)
				require.LessOrEqual(t, groups, k)
				if d*size >= 16 {
					require.Positive(t, groups)
				}
			}
		}
	}
}

func TestGroupsAreEven(t *testing.T) {
	x := blobs(103, 3, 5, 0.1)
	for _, groups := range []int{1, 2, 5, 13, 103} {
		g := newGrouping[float64](103, 3, groups)
		g.divide(x)
		seen := make([]int, groups)
		for a, own := range g.of {
			seen[own]++
			from, to := g.span(int(own), int(own)+1)
			require.Contains(t, g.member[from:to], int32(a))
			require.InDelta(t, 103.0/float64(groups), to-from, 1)
		}
		require.NotContains(t, seen, 0)
	}
	// Centres of different blobs must not share a group if there are enough groups.
	var far []float64
	for a := range 32 {
		far = append(far, float64(a%4)*100+float64(a/4))
	}
	g := newGrouping[float64](32, 1, 4)
	g.divide(far)
	for a := range 32 {
		require.Equal(t, g.of[a%4], g.of[a])
	}
}
