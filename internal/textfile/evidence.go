package textfile

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/internal/batch"
)

// evidence is what the values of a column could be.
type evidence struct {
	notBool, notWhole, notFloat bool
	values, missing, quoted     bool // quoted ones are missing unless this is text
	spelled, nan                bool // a cell is missing by a usual spelling, by NaN
	// numbers and texts count the values that are numbers, and those that are none, the first
	// of which is odd.
	numbers, texts int
	odd            sight
	// wide says that a whole number is beyond int64. altered counts those that float64 does
	// not write as they stand.
	wide         bool
	altered      int
	firstAltered sight
}

// place is where a cell stands: the offset in a file of its first byte.
type place struct {
	path   string
	offset int64
}

// sight is a cell that is told of, quoted.
type sight struct {
	place
	value string
}

// add adds a cell.
func (e *evidence) add(b []byte, quoted bool, tokens *nullTokens, at place) {
	if tokens.match(b) {
		// A quoted null token is text if the column turns out as utf8, as a column
		// of nothing else does, and missing in any other.
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
	// Of columns that are text for many reasons it is not told how many are numbers.
	if e.notFloat && e.texts > maxOdd {
		return
	}
	if _, err := parseFloat(b); err == nil {
		e.numbers++
		return
	}
	e.notFloat = true
	if e.texts++; e.texts == 1 {
		e.odd = sight{at, shorten(b)}
	}
}

// whole adds a whole number.
func (e *evidence) whole(b []byte, v int64, wide bool, at place) {
	e.numbers++
	if !wide && -1<<53 <= v && v <= 1<<53 {
		return
	}
	e.wide = e.wide || wide
	if !writtenBack(b) {
		if e.altered++; e.altered == 1 {
			e.firstAltered = sight{at, shorten(b)}
		}
	}
}

// writtenBack tells whether the shortest decimal of the float64 that is nearest to a whole
// number has its digits, but for zeros in front.
func writtenBack(digits []byte) bool {
	f, err := parseFloat(digits)
	if err != nil {
		return false
	}
	digits = bytes.TrimLeft(bytes.TrimLeft(digits, "+-"), "0")
	var buf [64]byte
	return bytes.Equal(strconv.AppendFloat(buf[:0], math.Abs(f), 'f', -1, 64), digits)
}

// maxOdd bounds the cells for which a column can be called one of numbers but for a few.
const maxOdd = 1000

// mixed tells that a column is text for the sake of at most a tenth of its values.
func (e *evidence) mixed() bool {
	return e.notWhole && e.typeName() == "utf8" && e.texts > 0 && e.texts <= maxOdd && e.numbers >= 9*e.texts
}

// long tells that a column is text as its whole numbers are too long.
func (e *evidence) long() bool {
	return e.values && e.notBool && !e.notWhole && e.wide && e.altered > 0
}

// typeName is the narrowest type that fits all evidence.
func (e *evidence) typeName() string {
	switch {
	case !e.values && e.nan: // which nothing but numbers has
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

// nullable tells that a value is missing in a column of the type.
func (e *evidence) nullable() bool {
	if e.typeName() == "utf8" {
		return e.missing
	}
	return e.missing || e.quoted || e.spelled
}

// Mixed is a column that is text although most or all of its values are numbers.
type Mixed struct {
	Column string
	// Texts are how many of the Values in the sample are no numbers, or, if Long is set, are
	// whole numbers beyond int64 or such as float64 would change, where some are beyond.
	Texts, Values int
	Long          bool `json:",omitempty"`
	// Path and Line are where the first of them stands, and Value is that, quoted.
	Path  string
	Line  int64
	Value string
}

// String tells it in a sentence.
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

// tell adds to a layout what is told of a column.
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

// lateColumn is a column without a value in the sample, or with one behind it since until
// rows were left to look at.
type lateColumn struct {
	at    int
	until int // rows
}

// full tells that nothing is looked at any more.
func (s *sample) full() bool { return s.rows >= s.limit && len(s.late) == 0 }

// lateCells says which cells are looked at behind the sample; nil means all.
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

// advance finds the columns to go on with when the sample is full, and those that are done
// with behind it.
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
