package plan

import (
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// didYouMean returns the last part of an error message about a name that does not exist. It
// suggests those of the existing names, have, that are spelled similarly. If no existing name
// is similar, it lists them all, unless there are none or more than 8.
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
