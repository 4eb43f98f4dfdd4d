package bins

import (
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// finder finds the cuts of features, a group of features at a time. Each subtask has a finder.
// The methods do not communicate. The caller reduces the numbers that one method computes over
// all subtasks, and passes the result to the next method:
//
//	for f.load() {
//		f.merge(all subtasks' f.distinct())
//		f.begin(Σ f.counts)
//		for f.searching() { f.narrow(Σ f.probe) }
//		f.divide()
//		for f.searching() { f.narrow(Σ f.probe) }
//		f.settle()
//		f.finish(max of f.neighbours)
//	}
//
// All numbers are integers, so the cuts do not depend on the distribution of rows among
// subtasks.
type finder struct {
	plan     *plan
	features []Feature
	missing  []int64 // for each feature, the number of rows of the job in which it is missing
	expect   []int64 // for each feature, the expected number of values on a subtask
	parts    []packed
	weights  [][]uint32 // weights[part][row]; nil if every row weighs 1
	weight   int64      // total weight of the parts' rows
	rows     int64

	next         int // the first feature of the next group
	work         []work
	pairs, other []uint64 // buffers for sorting
	spare        []uint32
	free         []column // columns whose memory newColumn reuses
}

// work is the state of the search for the cuts of one feature of the current group. Only
// column, search.lo and search.hi differ between subtasks.
type work struct {
	feature  int
	column   column
	values   []uint32 // keys of the distinct values, if there are at most Options.MaxBins
	many     bool     // there are more than Options.MaxBins distinct values
	total    int64
	search   *search // nil if there is nothing to search for
	division division
	cuts     []uint32
}

// Sizes of groups.
const (
	// groupEntries is roughly the number of values that a subtask sorts for a group. groupLeast
	// is the least number of features in a group; it limits the number of passes over the rows.
	// With weights, which take more memory, groupEntries and groupLeast are divided by 4.
	// groupMost is the largest number of features in a group.
	groupEntries = 8 << 20
	groupLeast   = 8
	groupMost    = 256
)

// load begins the next group of features and sorts the subtask's values of each of these
// features. It returns false if no feature is left.
func (f *finder) load() bool {
	f.work = f.work[:0]
	least, room := groupLeast, int64(groupEntries)
	if f.plan.weightAt >= 0 {
		least, room = least/4, room/4
	}
	for f.next < len(f.features) && len(f.work) < groupMost {
		if len(f.work) >= least && f.expect[f.next] > room {
			break
		}
		room -= f.expect[f.next]
		f.work = append(f.work, work{feature: f.next})
		f.next++
	}
	if len(f.work) == 0 {
		return false
	}
	f.extract()
	for i := range f.work {
		if f.features[f.work[i].feature].Categorical {
			f.work[i].column.keys = f.work[i].column.keys[:0] // for a categorical feature, only missing values are counted
			f.work[i].column.absent = 0
		}
	}
	return true
}

// extract sets work.column, the sorted values, for each feature of the group.
func (f *finder) extract() {
	if f.weights != nil {
		f.extractWeighted()
		return
	}
	if f.plan.kind == sparseRows {
		for i := range f.work {
			f.extractSparse(&f.work[i])
		}
	} else {
		f.extractDense()
	}
	for i := range f.work {
		c := &f.work[i].column
		if !f.features[f.work[i].feature].Categorical {
			f.spare = kernel.Sized(f.spare, len(c.keys))
			c.keys, f.spare = sortKeys(c.keys, f.spare)
		}
	}
}

// newColumn returns a column with capacity for n keys. It reuses the memory of a free column if
// that is large enough.
func (f *finder) newColumn(n int) column {
	for i, c := range f.free {
		if cap(c.keys) >= n {
			last := len(f.free) - 1
			f.free[i], f.free = f.free[last], f.free[:last]
			return column{keys: c.keys[:0], cum: c.cum[:0]}
		}
	}
	return column{keys: make([]uint32, 0, n)}
}

// extractDense reads the values of a group of dense features.
func (f *finder) extractDense() {
	for i := range f.work {
		f.work[i].column = f.newColumn(int(f.rows))
	}
	for _, p := range f.parts {
		if p.raw != nil {
			f.extractRaw(p)
			continue
		}
		for i := range f.work {
			w := &f.work[i]
			keys := w.column.keys
			for _, x := range p.values[w.feature*p.n : (w.feature+1)*p.n] {
				if x == x {
					keys = append(keys, keyOf(x))
				}
			}
			w.column.missing += int64(p.n - (len(keys) - len(w.column.keys)))
			w.column.keys = keys
		}
	}
}

// rawRows is the number of rows that are read together, one feature after the other. It is
// small, so that these rows stay in the cache.
const rawRows = 256

// extractRaw reads the values of a group of features from packed.raw.
func (f *finder) extractRaw(p packed) {
	first := f.work[0].feature
	for lo := 0; lo < p.n; lo += rawRows {
		hi := min(lo+rawRows, p.n)
		for i := range f.work {
			c := &f.work[i].column
			keys, j := c.keys, first+i
			for at := lo*p.d + j; at < hi*p.d; at += p.d {
				if x := Single(p.raw[at]); x == x {
					keys = append(keys, keyOf(x))
				}
			}
			c.missing += int64(hi - lo - (len(keys) - len(c.keys)))
			c.keys = keys
		}
	}
}

// extractSparse reads the values of a sparse feature.
func (f *finder) extractSparse(w *work) {
	number := int32(f.features[w.feature].Number)
	entries, nans := 0, 0
	for _, p := range f.parts {
		_, _, values := p.entries(number)
		entries += len(values)
	}
	w.column = f.newColumn(entries)
	c := &w.column
	for _, p := range f.parts {
		_, _, values := p.entries(number)
		for _, x := range values {
			if x != x {
				nans++
				continue
			}
			c.keys = append(c.keys, keyOf(x))
		}
	}
	c.missing = int64(nans)
	if f.plan.options.AbsentIsZero {
		c.absent = f.rows - int64(entries)
	} else {
		c.missing += f.rows - int64(entries)
	}
}

// extractWeighted does what extract does, if rows have weights. Rows of weight 0 are left out.
func (f *finder) extractWeighted() {
	for i := range f.work {
		w := &f.work[i]
		c := &w.column
		feature := &f.features[w.feature]
		f.pairs = kernel.Sized(f.pairs, int(f.rows))[:0]
		var present, values, weight int64
		for k := range f.parts {
			p := &f.parts[k]
			switch {
			case f.plan.kind == sparseRows:
				_, rows, entries := p.entries(int32(feature.Number))
				present += int64(len(rows))
				for e, x := range entries {
					v := f.weights[k][rows[e]]
					weight += int64(v)
					values += f.pair(x, v)
				}
			case p.raw != nil:
				for row, v := range f.weights[k] {
					values += f.pair(Single(p.raw[row*p.d+feature.Number]), v)
				}
			default:
				for row, x := range p.values[feature.Number*p.n : (feature.Number+1)*p.n] {
					values += f.pair(x, f.weights[k][row])
				}
			}
		}
		c.missing = f.rows - values
		if f.plan.kind == sparseRows && f.plan.options.AbsentIsZero {
			c.missing, c.absent = present-values, f.weight-weight
		}
		if !feature.Categorical {
			f.cumulate(c)
		}
	}
}

// pair appends the key of x and its weight to f.pairs, unless x is NaN or the weight is 0. It
// returns 0 if x is NaN and 1 otherwise. f.pairs must have the capacity.
func (f *finder) pair(x float32, weight uint32) int64 {
	if x != x {
		return 0
	}
	if weight > 0 {
		n := len(f.pairs)
		f.pairs = f.pairs[:n+1]
		f.pairs[n] = uint64(keyOf(x))<<32 | uint64(weight)
	}
	return 1
}

// cumulate sorts the pairs and sets c.keys and c.cum from them.
func (f *finder) cumulate(c *column) {
	f.other = kernel.Sized(f.other, len(f.pairs))
	sorted, rest := sortPairs(f.pairs, f.other)
	own := f.newColumn(len(sorted))
	c.keys, c.cum = own.keys[:len(sorted)], kernel.Sized(own.cum, len(sorted)+1)
	var total int64
	for i, w := range sorted {
		c.keys[i], c.cum[i] = uint32(w>>32), total
		total += int64(uint32(w))
	}
	c.cum[len(sorted)] = total
	f.pairs, f.other = sorted, rest
}

// weightBits is the number of bits of the largest weight after weights were rounded for the
// cuts.
const weightBits = 32

// setWeights rounds the weights of the parts' rows, half to even, to integers below 2^32.
// Weights are first scaled by a power of two, such that the largest weight of the job has 32
// bits. With 2^30 rows or more it has fewer bits, so that sums do not overflow. A weight of at
// most 2^−33 of the largest weight is rounded to 0.
func (f *finder) setWeights(largest float64, rows int64) {
	_, exponent := math.Frexp(largest)
	scale := min(weightBits, 62-bits.Len64(uint64(rows))) - exponent
	all := make([]uint32, 0, f.rows)
	for _, p := range f.parts {
		from := len(all)
		for _, w := range p.weight {
			v := uint32(min(math.RoundToEven(math.Ldexp(w, scale)), math.MaxUint32))
			all = append(all, v)
			f.weight += int64(v)
		}
		f.weights = append(f.weights, all[from:len(all):len(all)])
	}
}

// distinct returns, for each feature of the group, the number of distinct values on the
// subtask, followed by the keys of these values. If there are more than Options.MaxBins values,
// it returns −1 instead.
func (f *finder) distinct() []int32 {
	var all []int32
	var values []uint32
	for i := range f.work {
		w := &f.work[i]
		var few bool
		values, few = w.column.distinct(values[:0], f.plan.options.MaxBins)
		if !few {
			all = append(all, -1)
			continue
		}
		all = append(all, int32(len(values)))
		for _, k := range values {
			all = append(all, int32(k))
		}
	}
	return all
}

// merge sets the distinct values of the features. all has the results of distinct of all
// subtasks, concatenated.
func (f *finder) merge(all []int32) {
	for len(all) > 0 {
		for i := range f.work {
			w := &f.work[i]
			n := all[0]
			all = all[1:]
			if n < 0 {
				w.many = true
				continue
			}
			for _, k := range all[:n] {
				w.values = append(w.values, uint32(k))
			}
			all = all[n:]
		}
	}
	for i := range f.work {
		w := &f.work[i]
		if w.values = tidy(w.values); len(w.values) > f.plan.options.MaxBins {
			w.many = true
		}
	}
}

// countsLength returns the number of sums that begin takes.
func (f *finder) countsLength() int { return 2 * len(f.work) }

// counts adds to out, for each feature of the group, the weight of its values on the subtask
// and the number of the subtask's rows in which it is missing.
func (f *finder) counts(out []int64) {
	for i := range f.work {
		out[2*i] += f.work[i].column.total()
		out[2*i+1] += f.work[i].column.missing
	}
}

// begin starts the first search of each feature with more than Options.MaxBins distinct values.
// sums has the results of counts, summed over all subtasks.
func (f *finder) begin(sums []int64) {
	for i := range f.work {
		w := &f.work[i]
		w.total = sums[2*i]
		f.missing[w.feature] = sums[2*i+1]
		if w.many {
			w.search = newSearch(firstPositions(w.total, f.plan.options.MaxBins), &w.column)
		}
	}
}

// searching reports whether any search has not ended.
func (f *finder) searching() bool {
	for i := range f.work {
		if s := f.work[i].search; s != nil && s.shift > 0 {
			return true
		}
	}
	return false
}

// probeLength returns the number of sums that narrow takes.
func (f *finder) probeLength() int {
	n := 0
	for i := range f.work {
		if s := f.work[i].search; s != nil && s.shift > 0 {
			n += s.width()
		}
	}
	return n
}

// probe adds to out the weights of the subtask's values that the searches need.
func (f *finder) probe(out []int64) {
	for i := range f.work {
		if s := f.work[i].search; s != nil && s.shift > 0 {
			s.probe(&f.work[i].column, out)
			out = out[s.width():]
		}
	}
}

// narrow advances the searches by one round. sums has the results of probe, summed over all
// subtasks.
func (f *finder) narrow(sums []int64) {
	for i := range f.work {
		if s := f.work[i].search; s != nil && s.shift > 0 {
			width := s.width()
			s.narrow(&f.work[i].column, sums[:width])
			sums = sums[width:]
		}
	}
}

// divide ends the first search of each feature and starts the second search, where one is
// needed.
func (f *finder) divide() {
	for i := range f.work {
		w := &f.work[i]
		if w.search == nil {
			continue
		}
		w.division = divide(w.search, w.total, f.plan.options.MaxBins)
		w.search = nil
		if len(w.division.at) > 0 {
			w.search = newSearch(w.division.at, &w.column)
		}
	}
}

// settle computes provisional cuts from the results of both searches.
func (f *finder) settle() {
	for i := range f.work {
		w := &f.work[i]
		w.cuts = w.division.cuts
		if w.search != nil {
			w.cuts = nearest(w.cuts, w.search, w.division.segments)
			w.search = nil
		}
		w.cuts = tidy(w.cuts)
	}
}

// neighboursLength returns the number of maxima that finish takes.
func (f *finder) neighboursLength() int {
	n := 0
	for i := range f.work {
		n += 2 * len(f.work[i].cuts)
	}
	return n
}

// neighbours updates two maxima in out for each cut: the largest key of the values below the
// cut, and the largest negated key of the other values. It takes into account the subtask's
// values.
func (f *finder) neighbours(out []int64) {
	for i := range f.work {
		w := &f.work[i]
		for k, cut := range w.cuts {
			a, b := w.column.neighbours(cut)
			out[2*k], out[2*k+1] = max(out[2*k], a), max(out[2*k+1], -b)
		}
		out = out[2*len(w.cuts):]
	}
}

// finish sets the cuts of the features of the group. extremes has the results of neighbours, as
// maxima over all subtasks.
func (f *finder) finish(extremes []int64) {
	for i := range f.work {
		w := &f.work[i]
		feature := &f.features[w.feature]
		n := len(w.cuts)
		if len(f.free) < groupMost {
			f.free = append(f.free, w.column)
		}
		switch {
		case feature.Categorical:
		case !w.many:
			feature.Cuts, feature.Bins = cutsOf(w.values), len(w.values)
		default:
			a, b := make([]int64, n), make([]int64, n)
			for k := range n {
				a[k], b[k] = extremes[2*k], -extremes[2*k+1]
			}
			feature.Cuts = cutsBetween(a, b)
			feature.Bins = len(feature.Cuts) + 1
		}
		extremes = extremes[2*n:]
		*w = work{}
	}
}
