// Package spelling finds the names that a writer may have meant, for the "did you mean" of error
// messages.
package spelling

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// most is how many names a message suggests.
	most = 3
	// longest is the length in bytes above which a name is not compared: it is no slip of the
	// pen, and the comparison takes quadratic time.
	longest = 64
)

// Near returns up to three of the names in all that the writer of name may have meant. First come
// the names within an edit distance of a third of the shorter length. Names that contain name, or
// are contained in it, come after those. The nearest come first; equally near names keep their
// order. Case does not count. A name that equals name is not returned.
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

// DidYouMean returns a question about the nearest of all names; "" if none is near. The question
// begins with parting, which separates it from the message.
func DidYouMean(parting, name string, all []string) string {
	near := Near(name, all)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("%sdid you mean %q?", parting, near[0])
}

// editDistance is the optimal string alignment distance over bytes: the least
// number of insertions, deletions, replacements and swaps of neighbours that
// make b of a, no byte touched twice (Damerau, A technique for computer detection
// and correction of spelling errors, CACM 7, 1964).
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
