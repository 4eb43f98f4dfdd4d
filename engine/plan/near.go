package plan

import (
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// didYouMean returns the last part of an error message about a name that does not exist. have
// lists the names that exist. The text suggests names of have that are spelled similarly. If
// there are none, it lists all names of have, unless have is empty or has more than 8 names.
func didYouMean(name string, have []string) string {
	if near := spelling.Near(name, have); len(near) > 0 {
		return "; did you mean " + quoteList(near, "or") + "?"
	}
	if len(have) > 0 && len(have) <= 8 {
		return "; there is " + quoteList(have, "and")
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
