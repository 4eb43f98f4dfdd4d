package plan

import (
	"slices"
	"strconv"
	"strings"
)

// NearNames returns up to three of the names in have that a writer of name may
// have meant, nearest first and in the order given where equally near. It
// compares without regard to case: names at a small edit distance, and names
// that begin with, end with or contain what was written (or the reverse).
func NearNames(name string, have []string) []string {
	// Beyond this length a name is no slip of the pen, and the quadratic
	// comparison is not worth its time.
	const longest = 64
	want := strings.ToLower(name)
	if want == "" || len(want) > longest {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, h := range have {
		low := strings.ToLower(h)
		if low == "" || len(low) > longest {
			continue
		}
		limit := (min(len(want), len(low)) + 1) / 3
		d := editDistance(want, low)
		if d > limit {
			if len(want) < 2 || len(low) < 2 || !strings.Contains(low, want) && !strings.Contains(want, low) {
				continue
			}
			// Behind every slip of the pen, the shorter addition first.
			d = longest + max(len(low), len(want)) - min(len(low), len(want))
		}
		near = append(near, candidate{h, d})
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range near {
		if len(names) < 3 && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// editDistance returns the least number of bytes to insert, delete or replace
// that makes b of a (the Wagner–Fischer recurrence, one row at a time).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// didYouMean returns the end of a message about a name that does not exist:
// the near names, or else the names there are, if they are few.
func didYouMean(name string, have []string) string {
	if near := NearNames(name, have); len(near) > 0 {
		return "; did you mean " + quoteList(near, "or") + "?"
	}
	if len(have) > 0 && len(have) <= 8 {
		return "; there is " + quoteList(have, "and")
	}
	return ""
}

// quoteList writes names as `"a", "b" or "c"`.
func quoteList(names []string, last string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" " + last + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(clip(name, 60)))
	}
	return b.String()
}
