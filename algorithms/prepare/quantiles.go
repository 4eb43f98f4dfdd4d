package prepare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// This file finds exact order statistics by radix selection. Numbers are mapped to unsigned
// integers of the same order. Each of eight passes determines the next eight bits of each
// wanted value, starting with the highest. To do so, a pass takes the values whose higher bits
// equal the bits determined so far, and counts how often each combination of their next eight
// bits occurs. A result depends only on the multiset of values, and not on the distribution of
// the values over shards. With fractional weights, sums are rounded, and a result also depends
// on the tree over shards. Selection takes 8 passes and 256 counters for each distinct prefix,
// but does not sort the data.

// target is a wanted order statistic: the value at a rank, counted from 0, among the values of
// a feature that are not missing. Each value counts with its weight. So the result is the least
// value x for which the total weight of the values up to and including x exceeds the rank.
type target struct {
	Feature int
	Rank    float64 // rank among the values that have the prefix
	Prefix  uint64  // the bits determined so far; after the last pass, the whole key
}

// group is a prefix of one or more targets of a feature.
type group struct {
	Feature int
	Prefix  uint64
}

const (
	radixBits   = 8
	radixPasses = 64 / radixBits
)

// selection returns the passes that find order statistics. begin is called after the moments
// and returns the targets.
func selection(begin func(f *facts) []target) []pass {
	var passes []pass
	for i := range radixPasses {
		shift := 64 - radixBits*(i+1)
		passes = append(passes, pass{
			name: "select",
			size: func(f *facts) (int, int) {
				if i == 0 && f.Targets == nil {
					f.Targets = begin(f)
					f.regroup()
				}
				return len(f.Groups) << radixBits, 0
			},
			sum: func(w *work, out []float64) error {
				first := make([]int, w.facts.Dim+1) // first[j] is the first group of feature j
				for _, g := range w.facts.Groups {
					first[g.Feature+1]++
				}
				for j := range w.facts.Dim {
					first[j+1] += first[j]
				}
				return w.values(func(j int, v float64) {
					key := kernel.OrderKey(v)
					groups := w.facts.Groups[first[j]:first[j+1]]
					// In the first pass the shift is 64. It gives 0, the empty prefix.
					at, ok := slices.BinarySearchFunc(groups, key>>(shift+radixBits), func(g group, p uint64) int { return cmp.Compare(g.Prefix, p) })
					if ok {
						out[(first[j]+at)<<radixBits|int(key>>shift&(1<<radixBits-1))] += w.weight
					}
				})
			},
			finish: func(f *facts, sums, _ []float64) error { return f.narrow(sums) },
		})
	}
	return passes
}

// regroup lists the distinct prefixes of the targets in order.
func (f *facts) regroup() {
	f.Groups = f.Groups[:0]
	for _, t := range f.Targets {
		f.Groups = append(f.Groups, group{t.Feature, t.Prefix})
	}
	slices.SortFunc(f.Groups, compareGroups)
	f.Groups = slices.Compact(f.Groups)
}

func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Prefix, b.Prefix))
}

// narrow determines the next bits of every target.
func (f *facts) narrow(counts []float64) error {
	for i := range f.Targets {
		t := &f.Targets[i]
		at, _ := slices.BinarySearchFunc(f.Groups, group{t.Feature, t.Prefix}, compareGroups)
		found, rank := -1, t.Rank
		for next, n := range counts[at<<radixBits : (at+1)<<radixBits] {
			if !(n > 0) {
				continue
			}
			// Because of rounding, a sum of weights may be less than in the pass before. Then
			// the target is the last value.
			found, t.Rank = next, rank
			if rank < n {
				break
			}
			rank -= n
		}
		if found < 0 {
			return fmt.Errorf("a value of feature %d is beyond the last", t.Feature)
		}
		t.Prefix = t.Prefix<<radixBits | uint64(found)
	}
	f.regroup()
	return nil
}

// quantileTargets returns the function that lists the targets for quantiles: the two values
// around each quantile of each feature that has values. quantile interpolates between the two.
func quantileTargets(probabilities []float64) func(f *facts) []target {
	return func(f *facts) []target {
		targets := make([]target, 0, 2*len(probabilities)*f.Dim)
		for j := range f.Dim {
			for _, p := range probabilities {
				if f.Count[j] == 0 {
					break
				}
				lo, hi, _ := quantileRanks(f.Total[j], p)
				targets = append(targets, target{Feature: j, Rank: lo}, target{Feature: j, Rank: hi})
			}
		}
		return targets
	}
}

// quantileRanks returns the ranks below and above a quantile, and the position of the quantile
// between them, from 0 to 1.
func quantileRanks(count, p float64) (lo, hi, between float64) {
	last := max(count-1, 0) // weights may sum to less than 1
	at := float64(last * p)
	lo = math.Floor(at)
	return lo, min(lo+1, last), at - lo
}

// quantile returns a quantile by linear interpolation between the values at the two ranks
// around (count-1)·p (type 7 of Hyndman and Fan, Sample quantiles in statistical packages, The
// American Statistician 50, 1996). The passes that find the targets of quantileTargets must
// have run. index is the index of the quantile in probabilities.
func (f *facts) quantile(feature, index int, probabilities []float64) float64 {
	at, _ := slices.BinarySearchFunc(f.Targets, feature, func(t target, feature int) int { return cmp.Compare(t.Feature, feature) })
	at += 2 * index
	a, b := kernel.OrderValue(f.Targets[at].Prefix), kernel.OrderValue(f.Targets[at+1].Prefix)
	_, _, between := quantileRanks(f.Total[feature], probabilities[index])
	if between == 0 || a == b {
		return a
	}
	// This formula avoids the difference of a and b, which may exceed float64.
	return float64(a*(1-between)) + float64(b*between)
}
