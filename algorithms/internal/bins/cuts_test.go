package bins

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// drive finds the cuts of a matrix with d features. parts[i] has the rows of subtask i, and
// largest is the largest weight. drive runs a finder for each subtask and computes the sums and
// maxima over subtasks itself. It returns the features that each finder has found.
func drive(plan *plan, d int, parts [][]packed, largest float64) [][]Feature {
	var all []*finder
	rows := int64(0)
	for _, own := range parts {
		f := &finder{plan: plan, features: plan.list(d, nil), parts: own}
		for _, p := range own {
			f.rows += int64(p.n)
		}
		rows += f.rows
		all = append(all, f)
	}
	for _, f := range all {
		f.prepare(shardStats{Rows: rows, MaxWeight: largest}, len(all))
	}
	sum := func(n int, of func(f *finder, out []int64)) []int64 {
		out := make([]int64, n)
		for _, f := range all {
			of(f, out)
		}
		return out
	}
	search := func() {
		for all[0].searching() {
			sums := sum(all[0].probeLength(), (*finder).probe)
			for _, f := range all {
				f.narrow(sums)
			}
		}
	}
	for {
		more := false
		var values []int32
		for _, f := range all {
			more = f.load()
			values = append(values, f.distinct()...)
		}
		if !more {
			break
		}
		counts := sum(all[0].countsLength(), (*finder).counts)
		for _, f := range all {
			f.merge(values)
			f.begin(counts)
		}
		search()
		for _, f := range all {
			f.divide()
		}
		search()
		for _, f := range all {
			f.settle()
		}
		extremes := make([]int64, all[0].neighboursLength())
		for i := range extremes {
			extremes[i] = math.MinInt64
		}
		for _, f := range all {
			f.neighbours(extremes)
		}
		for _, f := range all {
			f.finish(extremes)
		}
	}
	var features [][]Feature
	for _, f := range all {
		features = append(features, f.features)
	}
	return features
}

// referenceCuts returns the cuts as the comment in cuts.go defines them. It shares no code with
// the package and computes with exact fractions over a sorted list of values.
func referenceCuts(values []float32, weights []int64, bins int) []float32 {
	weightOf := map[float32]int64{}
	for i, v := range values {
		if v == v && weights[i] > 0 {
			weightOf[v+0] += weights[i]
		}
	}
	var distinct []float32
	total := int64(0)
	for v, w := range weightOf {
		distinct = append(distinct, v)
		total += w
	}
	slices.Sort(distinct)
	middle := func(i int) float32 { // the threshold between distinct[i-1] and distinct[i]
		a, b := distinct[i-1], distinct[i]
		if m := float32((float64(a) + float64(b)) / 2); m > a {
			return m
		}
		return b
	}
	cut := map[int]bool{} // cut[i] says that there is a cut between distinct[i-1] and distinct[i]
	if len(distinct) <= bins {
		for i := 1; i < len(distinct); i++ {
			cut[i] = true
		}
	} else {
		heavy := func(i int) bool {
			return weightOf[distinct[i]] > total/int64(bins)
		}
		type segment struct {
			first, last int // the segment has the values distinct[first:last]
			weight      int64
			bins        int
			rest        *big.Rat
		}
		var segments []segment
		s := segment{}
		light, heavies := int64(0), 0
		for i, v := range distinct {
			if heavy(i) {
				s.last = i
				segments = append(segments, s)
				s = segment{first: i + 1}
				heavies++
				continue
			}
			s.weight += weightOf[v]
			light += weightOf[v]
		}
		s.last = len(distinct)
		segments = append(segments, s)
		left := bins - heavies
		order := make([]int, len(segments))
		for i := range segments {
			g := &segments[i]
			order[i] = i
			exact := new(big.Rat)
			if light > 0 {
				exact.SetFrac(new(big.Int).Mul(big.NewInt(int64(bins-heavies)), big.NewInt(g.weight)), big.NewInt(light))
			}
			floor := new(big.Int).Quo(exact.Num(), exact.Denom())
			g.bins = int(floor.Int64())
			g.rest = new(big.Rat).Sub(exact, new(big.Rat).SetInt(floor))
			left -= g.bins
		}
		sort.SliceStable(order, func(a, b int) bool { return segments[order[a]].rest.Cmp(segments[order[b]].rest) > 0 })
		for _, i := range order {
			if left > 0 && light > 0 {
				segments[i].bins++
				left--
			}
		}
		for k, g := range segments {
			empty := g.first == g.last
			if k > 0 && !(k == len(segments)-1 && g.bins == 0 && !empty) {
				cut[g.first] = true // above the heavy value before the segment
			}
			if k < len(segments)-1 && (g.bins > 0 || empty) {
				cut[g.last] = true // below the heavy value after the segment
			}
			for j := 1; j < g.bins; j++ {
				target := new(big.Int).Quo(new(big.Int).Mul(big.NewInt(int64(j)), big.NewInt(g.weight)), big.NewInt(int64(g.bins))).Int64()
				if target == 0 {
					continue
				}
				before := int64(0)
				for i := g.first; i < g.last; i++ {
					w := weightOf[distinct[i]]
					if before+w > target {
						if target-before <= before+w-target {
							cut[i] = true
						} else {
							cut[i+1] = true
						}
						break
					}
					before += w
				}
			}
		}
	}
	var at []int
	for i := range cut {
		if i > 0 && i < len(distinct) {
			at = append(at, i)
		}
	}
	sort.Ints(at)
	var cuts []float32
	for _, i := range at {
		cuts = append(cuts, middle(i))
	}
	return cuts
}

// columnOf draws n values of a feature. shape selects the distribution.
func columnOf(r *sharding.Random, n, shape int) []float32 {
	values := make([]float32, n)
	for i := range values {
		u := r.Float64()
		switch shape {
		case 0: // almost all distinct
			values[i] = float32(u - 0.5)
		case 1: // 10 distinct values
			values[i] = float32(int(10*u)) - 3
		case 2: // small integers, of which the low ones are frequent
			values[i] = float32(int(1 / (u + 0.002)))
		case 3: // one heavy value in the middle, and missing values
			switch {
			case u < 0.5:
				values[i] = 0
			case u < 0.6:
				values[i] = float32(math.NaN())
			default:
				values[i] = float32(r.Float64()*2 - 1)
			}
		case 4: // all magnitudes of float32, and a few missing values
			values[i] = math.Float32frombits(uint32(r.Uint64()))
			values[i] = Single(float64(values[i]))
		case 5: // 40 frequent values, with rare values between them
			k := int(40 * u)
			values[i] = float32(k) + 0.5*float32(r.Float64())
			if r.Float64() < 0.7 {
				values[i] = float32(k)
			}
		}
	}
	return values
}

// TestCutsAreTheDefinition compares the cuts of finders on several subtasks with referenceCuts.
func TestCutsAreTheDefinition(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 7, 60, 400, 3000}).Draw(t, "rows")
		most := rapid.SampledFrom([]int{2, 3, 16, 50, 255}).Draw(t, "bins")
		tasks := rapid.IntRange(1, 4).Draw(t, "subtasks")
		weighted := rapid.Bool().Draw(t, "weighted")
		r := sharding.NewRandom(rapid.Uint64().Draw(t, "seed"), "cuts", 0, 0)
		const d = 6
		plan := &plan{kind: denseRows, dim: d, options: Options{MaxBins: most}, vector: -1, weightAt: -1}
		absent := rapid.Bool().Draw(t, "sparse")
		if absent {
			plan.kind, plan.options.AbsentIsZero = sparseRows, true
		}
		weights := make([]int64, n)
		weight := make([]float64, n)
		for i := range weights {
			weights[i], weight[i] = 1, 1
			if weighted {
				plan.weightAt = 0
				weight[i] = math.Ldexp(math.Floor(r.Float64()*(1<<20)), -20) // a multiple of 2^-20 in [0, 1)
				if r.Float64() < 0.1 {
					weight[i] = 0
				}
				weights[i] = int64(weight[i] * (1 << 32))
			}
		}
		weight[0], weights[0] = 0.75, 3<<30
		if !weighted {
			weights[0] = 1
		}
		columns := make([][]float32, d)
		for j := range columns {
			columns[j] = columnOf(&r, n, j)
		}
		parts := spread(columns, weight, weighted, tasks)
		if absent {
			parts = withoutZeros(parts, columns, tasks)
		}
		features := drive(plan, d, parts, 0.75)
		for task, own := range features {
			for j, f := range own {
				want := referenceCuts(columns[j], weights, most)
				require.Equal(t, want, f.Cuts, "the cuts of feature %d on subtask %d must equal the reference", j, task)
				require.LessOrEqual(t, f.Bins, most)
				seen[fmt.Sprint(j, len(want) == most-1)] = true
			}
		}
	})
	require.Len(t, seen, 12, "each of the 6 shapes must occur both with all bins used and with fewer bins used")
}

// spread divides the rows among the given number of tasks. The rows of a task are two parts: one
// of raw rows, and one packed by feature. Without weighted, the parts have no weights.
func spread(columns [][]float32, weight []float64, weighted bool, tasks int) [][]packed {
	n, d := len(columns[0]), len(columns)
	var all [][]packed
	for task := range tasks {
		own := sharding.Split(n, tasks, task)
		var parts []packed
		for k, r := range []sharding.Range{{Lo: own.Lo, Hi: (own.Lo + own.Hi) / 2}, {Lo: (own.Lo + own.Hi) / 2, Hi: own.Hi}} {
			p := packed{n: r.Len(), d: d}
			if k == 0 {
				p.raw = make([]float64, 0, p.n*d)
				for i := r.Lo; i < r.Hi; i++ {
					for _, c := range columns {
						p.raw = append(p.raw, float64(c[i]))
					}
				}
			} else {
				for _, c := range columns {
					p.values = append(p.values, c[r.Lo:r.Hi]...)
				}
			}
			if weighted {
				p.weight = weight[r.Lo:r.Hi]
			}
			parts = append(parts, p)
		}
		all = append(all, parts)
	}
	return all
}

// withoutZeros returns the rows of dense as sparse rows. A part stores the zeros of every
// seventh row only.
func withoutZeros(dense [][]packed, columns [][]float32, tasks int) [][]packed {
	row := 0
	var all [][]packed
	for task := range tasks {
		var parts []packed
		for _, from := range dense[task] {
			p := packed{n: from.n, d: from.d, weight: from.weight}
			for j, c := range columns {
				p.feature = append(p.feature, int32(j))
				p.start = append(p.start, int32(len(p.row)))
				for i, x := range c[row : row+from.n] {
					if x != 0 || i%7 == 3 {
						p.row, p.values = append(p.row, int32(i)), append(p.values, x)
					}
				}
			}
			p.start = append(p.start, int32(len(p.row)))
			row += from.n
			parts = append(parts, p)
		}
		all = append(all, parts)
	}
	return all
}

// TestKeysAreInTheOrderOfValues requires that keys have the order of the values, and that a
// threshold between two values is above the lower and at most the upper value.
func TestKeysAreInTheOrderOfValues(t *testing.T) {
	values := []float32{-math.MaxFloat32, -2, -1, -math.SmallestNonzeroFloat32, 0, math.SmallestNonzeroFloat32, 1, 2, math.MaxFloat32}
	for i, v := range values {
		require.Equal(t, v, valueOf(keyOf(v)))
		if i > 0 {
			require.Less(t, keyOf(values[i-1]), keyOf(v))
			m := between(values[i-1], v)
			require.Greater(t, m, values[i-1])
			require.LessOrEqual(t, m, v)
		}
	}
	require.EqualValues(t, zeroKey, keyOf(Single(math.Copysign(0, -1))))
	require.Equal(t, float32(math.MaxFloat32), Single(math.Inf(1)))
	require.Equal(t, float32(-math.MaxFloat32), Single(-1e300))
	require.Equal(t, float32(math.Nextafter32(1, 2)), between(1, math.Nextafter32(1, 2)))
	nan := Single(math.NaN())
	require.True(t, nan != nan)
}

// TestSortingAsTheLibraryDoes compares sortKeys and sortPairs with slices.Sorted.
func TestSortingAsTheLibraryDoes(t *testing.T) {
	r := sharding.NewRandom(5, "sort", 0, 0)
	for _, n := range []int{0, 1, 50, radixFrom - 1, radixFrom, 5000} {
		for _, mask := range []uint32{^uint32(0), 0xff, 0xfff00000, 0, 0x003ff800} {
			keys, pairs := make([]uint32, n), make([]uint64, n)
			for i := range keys {
				keys[i] = uint32(r.Uint64()) & mask
				pairs[i] = uint64(keys[i])<<32 | uint64(i)
			}
			want := slices.Sorted(slices.Values(keys))
			wantPairs := slices.Sorted(slices.Values(pairs))
			sorted, _ := sortKeys(keys, make([]uint32, n))
			sortedPairs, _ := sortPairs(pairs, make([]uint64, n))
			require.True(t, slices.Equal(want, sorted), "%d keys with mask %x must be sorted", n, mask)
			require.True(t, slices.Equal(wantPairs, sortedPairs), "%d pairs with mask %x must be sorted stably", n, mask) // requires a stable sort
		}
	}
}
