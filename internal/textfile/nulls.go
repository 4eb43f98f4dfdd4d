package textfile

import (
	"slices"
	"strings"
)

// usualNulls are the spellings that are missing values in columns of other types than text,
// unless the dialect has a list: those of pandas and R, and what data sets of the UCI have.
// Case does not count. In a float column that has no missing values NaN is a number.
var usualNulls = []string{notANumber, "NA", "N/A", "n.a.", "#N/A", "#NA", "<NA>", "#N/A N/A", "null", "none", "nil", "-nan", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "?"}

const notANumber = "NaN"

// nullTokens recognises the spellings of a missing value.
type nullTokens struct {
	empty   bool
	typical bool // the usual ones count where no value is meant
	quoted  bool // a cell in quotes is missing in text too
	first   [256]bool
	words   []string
}

// newNullTokens returns those of a dialect, of which nil is the empty cell and the usual
// spellings.
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

// usual returns the usual spelling that a cell has which is no value of its column, "" if it
// has none or these do not count.
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
