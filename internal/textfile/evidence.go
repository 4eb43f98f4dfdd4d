package textfile

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/internal/batch"
)

// evidence is what the sample shows about the type of a column.
type evidence struct {
	notBool, notWhole, notFloat bool
	values, missing, quoted     bool // quoted cells are missing unless the column is text
	spelled, nan                bool // a cell is missing by a usual spelling; by NaN
	// numbers counts the values that are numbers, and texts counts the others; odd is the first
	// of the others.
	numbers, texts int
	odd            quotedCell
	// wide says that a whole number is beyond int64. altered counts the whole numbers that
	// would change as float64.
	wide         bool
	altered      int
	firstAltered quotedCell
}

// place is the place of a cell: the offset of its first byte in a file.
type place struct {
	path   string
	offset int64
}

// quotedCell is a cell for a message, quoted.
type quotedCell struct {
	place
	value string
}

// add adds a cell.
func (e *evidence) add(b []byte, quoted bool, tokens *nullTokens, at place) {
	if tokens.match(b) {
		// A quoted null token is text in a utf8 column, and missing in any other column. A column
		// with only such cells becomes utf8.
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
	// For columns with many texts, the number of numbers is not reported.
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

// whole adds a whole number.
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

// roundTrips reports whether a whole number is unchanged by a conversion to float64 and back
// to the shortest decimal, except for leading zeros.
func roundTrips(digits []byte) bool {
	f, err := parseFloat(digits)
	if err != nil {
		return false
	}
	digits = bytes.TrimLeft(bytes.TrimLeft(digits, "+-"), "0")
	var buf [64]byte
	return bytes.Equal(strconv.AppendFloat(buf[:0], math.Abs(f), 'f', -1, 64), digits)
}

// maxOdd bounds the texts in a column that is reported as numbers with a few exceptions.
const maxOdd = 1000

// mixed reports whether a column is text because of at most a tenth of its values.
func (e *evidence) mixed() bool {
	return e.notWhole && e.typeName() == "utf8" && e.texts > 0 && e.texts <= maxOdd && e.numbers >= 9*e.texts
}

// long reports whether a column is text because its whole numbers are too long.
func (e *evidence) long() bool {
	return e.values && e.notBool && !e.notWhole && e.wide && e.altered > 0
}

// typeName returns the narrowest type that fits all evidence.
func (e *evidence) typeName() string {
	switch {
	case !e.values && e.nan: // only columns of numbers have NaN
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

// nullable reports whether a value is missing in a column of the type.
func (e *evidence) nullable() bool {
	if e.typeName() == "utf8" {
		return e.missing
	}
	return e.missing || e.quoted || e.spelled
}

// Mixed is a column that is text although most or all of its values are numbers.
type Mixed struct {
	Column string
	// Texts is the number of Values in the sample that are not numbers. If Long is set, some
	// whole numbers are beyond int64, and Texts is the number of whole numbers that float64
	// would change.
	Texts, Values int
	Long          bool `json:",omitempty"`
	// Path and Line are the place of the first of these, and Value is its text, quoted.
	Path  string
	Line  int64
	Value string
}

// String describes the column in a sentence.
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
	return fmt.Sprintf("column %q is text as %d of %s %s, the first at %s:%d: %s", m.Column, m.Texts, plural(m.Values, "value"), are, m.Path, m.Line, m.Value)
}

// tell adds the messages about a column to a layout.
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

// lateColumn is a column without a value in the sample. Records after the sample are examined
// for it; once it has a value, until is the row where this ends.
type lateColumn struct {
	at    int
	until int // rows
}

// full reports whether no more records are examined.
func (s *sample) full() bool { return s.rows >= s.limit && len(s.late) == 0 }

// lateCells says which cells are examined after the sample; nil means all.
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

// advance finds, when the sample is full, the columns that need more records, and later those
// that are done.
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
