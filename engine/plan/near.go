package plan

import (
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// didYouMean returns the last part of an error message about a name that does not exist. known
// has the names that exist. The text suggests names that are spelled similarly. If there are
// none, it lists all of known if these are 1 to 8 names, and is empty otherwise.
func didYouMean(name string, known []string) string {
	if near := spelling.Near(name, known); len(near) > 0 {
		return "; did you mean " + quoteList(near, "or") + "?"
	}
	if len(known) > 0 && len(known) <= 8 {
		return "; there is " + quoteList(known, "and")
	}
	return ""
}

// quoteList returns names as text, such as `"a", "b" or "c"`. last is the word before the last
// name, such as "or".
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
