package textfile

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// evidence has the facts that determine the type of a column, collected from the values of the
// column in the sample.
type evidence struct {
	notBool, notWhole, notFloat bool
	values, missing, quoted     bool // quoted: a cell is a quoted null token, which is a missing value unless the column is text
	spelled, nan                bool // spelled: a cell has a usual spelling of missing values; nan: a cell has the spelling NaN
	// numbers is the number of values that are numbers, and texts is the number of other
	// values. odd is the first of the other values.
	numbers, texts int
	odd            quotedCell
	// wide says that a whole number is outside the range of int64. altered is the number of
	// whole numbers that a conversion to float64 would change; firstAltered is the first of
	// them.
	wide         bool
	altered      int
	firstAltered quotedCell
}

// place is the position of a cell: a file, and the offset of the first byte of the cell.
type place struct {
	path   string
	offset int64
}

// quotedCell is the position of a cell and its text in quotes, for a message.
type quotedCell struct {
	place
	value string
}

// add adds the cell b to the evidence.
func (e *evidence) add(b []byte, quoted bool, tokens *nullTokens, at place) {
	if tokens.match(b) {
		// A quoted null token is text if the column is utf8, and a missing value if it has
		// another type. A column that has only such cells becomes utf8.
		e.missing = e.missing || tokens.matchText(b, quoted)
		e.quoted = e.quoted || quoted
		return
	}
	if word := tokens.usual(b); word != "" {
		e.spelled = true
		e.nan = e.nan || word == notANumber
		return
	}
	e.values = true
	if !isBoolWord(b) {
		e.notBool = true
	}
	if !e.notWhole || e.texts <= maxOdd {
		v, err := parseInt(b)
		if err != errNotWhole {
			e.whole(b, v, err != nil, at)
			return
		}
		e.notWhole = true
	}
	// If a column has many texts, the number of numbers is not reported, so it need not be
	// counted.
	if e.notFloat && e.texts > maxOdd {
		return
	}
	if _, err := parseFloat(b); err == nil {
		e.numbers++
		return
	}
	e.notFloat = true
	if e.texts++; e.texts == 1 {
		e.odd = quotedCell{at, shorten(b)}
	}
}

// whole adds a whole number with the text b. wide says that it is outside the range of int64;
// otherwise its value is v.
func (e *evidence) whole(b []byte, v int64, wide bool, at place) {
	e.numbers++
	if !wide && -1<<53 <= v && v <= 1<<53 {
		return
	}
	e.wide = e.wide || wide
	if !roundTrips(b) {
		if e.altered++; e.altered == 1 {
			e.firstAltered = quotedCell{at, shorten(b)}
		}
	}
}

// roundTrips reports whether a conversion of a whole number to float64, and back to the
// shortest decimal, gives the same digits, except for leading zeros.
func roundTrips(digits []byte) bool {
	f, err := parseFloat(digits)
	if err != nil {
		return false
	}
	digits = bytes.TrimLeft(bytes.TrimLeft(digits, "+-"), "0")
	var buf [64]byte
	return bytes.Equal(strconv.AppendFloat(buf[:0], math.Abs(f), 'f', -1, 64), digits)
}

// maxOdd is the largest number of texts in a column that is reported as numbers with a few
// exceptions.
const maxOdd = 1000

// mixed reports whether a column is text although at least nine tenths of its values are
// numbers.
func (e *evidence) mixed() bool {
	return e.notWhole && e.typeName() == "utf8" && e.texts > 0 && e.texts <= maxOdd && e.numbers >= 9*e.texts
}

// long reports whether a column is text because float64 would change some of its whole numbers.
func (e *evidence) long() bool {
	return e.values && e.notBool && !e.notWhole && e.wide && e.altered > 0
}

// typeName returns the narrowest type that all values of the sample have.
func (e *evidence) typeName() string {
	switch {
	case !e.values && e.nan: // a column that has only NaN is numeric
		return "float64"
	case !e.values, e.long():
		return "utf8"
	case !e.notBool:
		return "bool"
	case !e.notWhole && !e.wide:
		return "int64"
	case !e.notFloat:
		return "float64"
	}
	return "utf8"
}

// nullable reports whether the sample has a missing value, given the type of the column.
func (e *evidence) nullable() bool {
	if e.typeName() == "utf8" {
		return e.missing
	}
	return e.missing || e.quoted || e.spelled
}

// Mixed is a column that is text although most or all of its values are numbers.
type Mixed struct {
	Column string
	// Values is the number of values in the sample, and Texts is the number of these values
	// that are not numbers. If Long is set, some whole numbers are outside the range of int64,
	// and Texts is the number of whole numbers that a conversion to float64 would change.
	Texts, Values int
	Long          bool `json:",omitempty"`
	// Path and Line are the position of the first of the Texts values, and Value is its text,
	// in quotes.
	Path  string
	Line  int64
	Value string
}

// String returns a sentence that describes the column.
func (m Mixed) String() string {
	are := "are no numbers"
	switch {
	case m.Long && m.Texts == 1:
		are = "is a whole number that float64 would change, some beyond int64"
	case m.Long:
		are = "are whole numbers that float64 would change, some beyond int64"
	case m.Texts == 1:
		are = "is no number"
	}
	return fmt.Sprintf("column %q is text as %d of %s %s, the first at %s:%d: %s", m.Column, m.Texts, humanize.Count(m.Values, "value"), are, m.Path, m.Line, m.Value)
}

// tell appends a Mixed for column c to l.Mixed if the type of the column was inferred, and e is
// mixed or long.
func (s *sample) tell(l *Layout, c batch.Column, e *evidence, inferred bool) error {
	if inferred && (e.mixed() || e.long()) {
		m := Mixed{Column: c.Name, Texts: e.texts, Values: e.texts + e.numbers}
		first := e.odd
		if e.long() {
			m.Long, m.Texts, first = true, e.altered, e.firstAltered
		}
		line, err := s.lineOf(first.path, first.offset)
		if err != nil {
			return err
		}
		m.Path, m.Line, m.Value = first.path, line, first.value
		l.Mixed = append(l.Mixed, m)
	}
	return nil
}

// lateColumn is a column that has no value in the sample. Records after the sample are examined
// up to the first value of the column, and from there as many records as a sample has.
type lateColumn struct {
	at    int
	until int // number of rows after which no more rows are examined; 0 before the first value
}

// full reports whether no more records need to be examined.
func (s *sample) full() bool { return s.rows >= s.limit && len(s.late) == 0 }

// lateCells returns, by column, which cells of a record are examined after the sample; nil
// means all.
func (s *sample) lateCells() []bool {
	if s.rows < s.limit || len(s.late) == 0 {
		return nil
	}
	if s.wanted == nil {
		s.wanted = make([]bool, len(s.names))
		for _, c := range s.late {
			s.wanted[c.at] = true
		}
	}
	return s.wanted
}

// advance is called after each record. At the end of the sample it sets s.late to the columns
// that need more records. After that it removes columns for which enough records were examined.
func (s *sample) advance() {
	if s.rows == s.limit {
		for i := range s.seen {
			if !s.seen[i].values && !s.known(s.names[i]) {
				s.late = append(s.late, lateColumn{at: i})
			}
		}
		return
	}
	if s.rows < s.limit {
		return
	}
	s.partial = true
	left := s.late[:0]
	for _, c := range s.late {
		if c.until == 0 && s.seen[c.at].values {
			c.until = s.rows - 1 + s.limit
		}
		if c.until > 0 {
			if s.later == nil {
				s.later = map[string]int{}
			}
			s.later[s.names[c.at]] = s.rows
		}
		if c.until > 0 && s.rows >= c.until {
			s.wanted = nil
			continue
		}
		left = append(left, c)
	}
	s.late = left
}
