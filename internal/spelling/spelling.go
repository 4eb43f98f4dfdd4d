// Package spelling finds the names that a user may have meant by a misspelt name, for "did you mean"
// in error messages.
package spelling

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// most is the maximal number of names that Near returns.
	most = 3
	// longest is the length in bytes of the longest name that is compared. Longer names are
	// unlikely to be misspelt names, and the time of the comparison is quadratic in the length.
	longest = 64
)

// Near returns up to three of the names in all that a user may have meant by name. First come the
// names whose edit distance from name is at most a third of the shorter length, ordered by
// distance. Then come the names that contain name or are contained in it, ordered by the difference
// of the lengths. Equally near names keep their order. Case does not matter. Near does not return
// name itself.
func Near(name string, all []string) []string {
	want := strings.ToLower(name)
	if want == "" || len(want) > longest {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, other := range all {
		low := strings.ToLower(other)
		if low == "" || len(low) > longest || other == name {
			continue
		}
		shorter, longer := min(len(want), len(low)), max(len(want), len(low))
		distance := editDistance(want, low)
		if distance > max(1, (shorter+1)/3) || distance == longer {
			if shorter < 2 || !strings.Contains(low, want) && !strings.Contains(want, low) {
				continue
			}
			distance = longest + longer - shorter
		}
		near = append(near, candidate{other, distance})
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range near {
		if len(names) < most && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// DidYouMean returns a question that suggests the nearest of the names in all, or "" if none is
// near. The question begins with parting, which separates it from the message before it.
func DidYouMean(parting, name string, all []string) string {
	near := Near(name, all)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("%sdid you mean %q?", parting, near[0])
}

// editDistance returns the optimal string alignment distance of a and b over bytes: the minimal
// number of insertions, deletions, replacements and swaps of neighbours that turn a into b if no
// byte is edited twice (Damerau, A technique for computer detection and correction of spelling
// errors, CACM 7, 1964).
func editDistance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
