package tree

import (
	"fmt"
	"math"
	"slices"
)

// Equal tells whether two ensembles are the same, bit for bit: a nil slice equals an empty
// one, but 0 is not -0.
func Equal(a, b *Ensemble) bool { return Diff(a, b) == "" }

// Diff says where two ensembles differ first: in what they are as a whole, then in tree and
// node. It is empty if they are Equal.
func Diff(a, b *Ensemble) string {
	if d := head(a, b, true); d != "" {
		return d
	}
	for f := range a.Features {
		own, other := at(a.Seen, f), at(b.Seen, f)
		if i := firstOther(own, other); i >= 0 {
			return differ(fmt.Sprintf("feature %d: code %d that was seen", f, i), at(own, i), at(other, i))
		}
	}
	for t := range min(len(a.Trees), len(b.Trees)) {
		if d := diffTree(&a.Trees[t], &b.Trees[t]); d != "" {
			return fmt.Sprintf("tree %d: %s", t, d)
		}
	}
	if len(a.Trees) != len(b.Trees) {
		return differ("trees", len(a.Trees), len(b.Trees))
	}
	return ""
}

// head compares all but the trees, and bases if told to.
func head(a, b *Ensemble, bases bool) string {
	switch {
	case a.Outputs != b.Outputs:
		return differ("outputs", a.Outputs, b.Outputs)
	case a.Average != b.Average:
		return differ("average", a.Average, b.Average)
	case a.Single != b.Single:
		return differ("single", a.Single, b.Single)
	}
	if i := firstOther(a.Features, b.Features); i >= 0 {
		return differ(fmt.Sprintf("feature %d", i), at(a.Features, i), at(b.Features, i))
	}
	for f := range a.Features {
		own, other := at(a.Categories, f), at(b.Categories, f)
		if i := firstOther(own, other); i >= 0 {
			return differ(fmt.Sprintf("feature %d: category %d", f, i), at(own, i), at(other, i))
		}
	}
	if i := firstOtherBits(a.Base, b.Base); bases && i >= 0 {
		return differ(fmt.Sprintf("base %d", i), at(a.Base, i), at(b.Base, i))
	}
	return ""
}

func diffTree(a, b *Tree) string {
	switch {
	case a.Output != b.Output:
		return differ("output", a.Output, b.Output)
	case bitsOf(a.Weight) != bitsOf(b.Weight):
		return differ("weight", a.Weight, b.Weight)
	}
	for i := range min(len(a.Nodes), len(b.Nodes)) {
		if d := diffNode(&a.Nodes[i], &b.Nodes[i]); d != "" {
			return fmt.Sprintf("node %d: %s", i, d)
		}
	}
	if len(a.Nodes) != len(b.Nodes) {
		return differ("nodes", len(a.Nodes), len(b.Nodes))
	}
	if i := firstOther(a.Sets, b.Sets); i >= 0 {
		return differ(fmt.Sprintf("word %d of the sets", i), at(a.Sets, i), at(b.Sets, i))
	}
	if i := firstOtherBits(a.Values, b.Values); i >= 0 {
		return differ(fmt.Sprintf("entry %d of the values", i), at(a.Values, i), at(b.Values, i))
	}
	return ""
}

func diffNode(a, b *Node) string {
	switch {
	case a.Left != b.Left || a.Right != b.Right:
		return differ("children", fmt.Sprint(a.Left, " and ", a.Right), fmt.Sprint(b.Left, " and ", b.Right))
	case a.Feature != b.Feature:
		return differ("feature", a.Feature, b.Feature)
	case a.Flags != b.Flags:
		return differ("flags", a.Flags, b.Flags)
	case a.Set != b.Set || a.SetWords != b.SetWords:
		return differ("set", fmt.Sprint(a.SetWords, " words from ", a.Set), fmt.Sprint(b.SetWords, " words from ", b.Set))
	case a.Count != b.Count:
		return differ("count", a.Count, b.Count)
	}
	for _, f := range [...]struct {
		name string
		a, b float64
	}{{"threshold", a.Threshold, b.Threshold}, {"value", a.Value, b.Value}, {"gain", a.Gain, b.Gain}, {"cover", a.Cover, b.Cover}} {
		if bitsOf(f.a) != bitsOf(f.b) {
			return differ(f.name, f.a, f.b)
		}
	}
	return ""
}

// bitsOf are those of a number, equal for all NaNs, of which an ensemble may hold some before it
// is validated.
func bitsOf(x float64) uint64 {
	if x != x {
		x = math.NaN()
	}
	return math.Float64bits(x)
}

// firstOther returns the first index at which two lists differ, their lengths too, or -1.
func firstOther[T comparable](a, b []T) int {
	if slices.Equal(a, b) {
		return -1
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

func firstOtherBits(a, b []float64) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || bitsOf(a[i]) != bitsOf(b[i]) {
			return i
		}
	}
	return -1
}

// at returns the entry of a list, or the zero value behind its end.
func at[T any](list []T, i int) T {
	if i < len(list) {
		return list[i]
	}
	var none T
	return none
}

func differ[T any](what string, a, b T) string {
	return fmt.Sprintf("%s: %v and %v", what, a, b)
}
