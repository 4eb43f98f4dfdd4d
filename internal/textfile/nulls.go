package textfile

import (
	"slices"
	"strings"
)

// usualNulls are the usual spellings of missing values in pandas, R and the UCI data sets. They
// are recognised in upper and lower case. They apply to columns that are not text, unless
// Dialect.NullTokens is set. In a float column that is not nullable, NaN is a number.
var usualNulls = []string{notANumber, "NA", "N/A", "n.a.", "#N/A", "#NA", "<NA>", "#N/A N/A", "null", "none", "nil", "-nan", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "?"}

const notANumber = "NaN"

// nullTokens recognises the spellings of a missing value.
type nullTokens struct {
	empty   bool
	typical bool // the usual spellings mean missing values
	quoted  bool // a quoted cell can be missing also in a utf8 column
	first   [256]bool
	words   []string
}

// newNullTokens returns the null tokens of a dialect. If d.NullTokens is nil, they are the
// empty cell and the usual spellings.
func newNullTokens(d Dialect) *nullTokens {
	if d.NullTokens == nil {
		return &nullTokens{empty: true, typical: true}
	}
	n := &nullTokens{quoted: d.QuotedNulls}
	for _, t := range d.NullTokens {
		if t == "" {
			n.empty = true
			continue
		}
		n.first[t[0]] = true
		n.words = append(n.words, t)
	}
	return n
}

func (n *nullTokens) match(b []byte) bool {
	if len(b) == 0 {
		return n.empty
	}
	return n.first[b[0]] && slices.Contains(n.words, view(b))
}

// matchText is match for a cell of a utf8 column.
func (n *nullTokens) matchText(b []byte, quoted bool) bool {
	return (!quoted || n.quoted && len(b) > 0) && n.match(b)
}

// usual returns the usual spelling that b equals, except for case. It returns "" if b equals no
// usual spelling, or if the dialect has other null tokens. It is called for cells that cannot
// be parsed as values of the type of their column.
func (n *nullTokens) usual(b []byte) string {
	if !n.typical || len(b) > len("#N/A N/A") {
		return ""
	}
	for _, word := range usualNulls {
		if len(word) == len(b) && strings.EqualFold(word, view(b)) {
			return word
		}
	}
	return ""
}
