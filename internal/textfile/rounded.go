package textfile

import (
	"errors"
	"math"

	"github.com/apache/arrow/go/v15/arrow/array"
)

// Rounded describes the whole numbers in a column that float64 cannot represent; they are
// larger than 2^53. They are rounded when they are read as float64, or converted to float64 for
// computations.
type Rounded struct {
	Column  string
	Numbers int64
	// Path and Value are the file and the text of the first of these numbers.
	Path, Value string

	first complaint
}

// Line returns the line of the first of these numbers. It reads the file to count lines.
func (r Rounded) Line() (int64, error) { return r.first.part.lineOf(r.first.offset) }

// RoundedIn describes the rounded numbers of a shard that has been read to its end, with one
// element per column, in the order of the columns. The caller must not modify the result.
func (s *base) RoundedIn(shard int) []Rounded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[shard].rounded
}

// countRounded counts the rounded numbers of a column in the current records, after the column
// has read them.
func (r *csvReader) countRounded(c *column) {
	switch c.builder.(type) {
	case *array.Int64Builder:
		for row, v := range c.ints[:r.in.rows] {
			if (v > 1<<53 || v < -1<<53) && !holds(v) {
				r.round(c, row)
			}
		}
	case *array.Float64Builder:
		for row, f := range c.floats[:r.in.rows] {
			if !(f >= 1<<53 || f <= -1<<53) {
				continue
			}
			text := r.in.all[row*r.in.width+c.slot].text(&r.in, c)
			v, err := parseInt(text)
			wide := err != nil
			if !errors.Is(err, errNotWhole) && (wide && !roundTrips(text) || !wide && !holds(v)) {
				r.round(c, row)
			}
		}
	}
}

// round counts the cell of column c in a row as rounded.
func (r *csvReader) round(c *column, row int) {
	for i := range r.counts.rounded {
		if r.counts.rounded[i].Column == c.name {
			r.counts.rounded[i].Numbers++
			return
		}
	}
	k := r.in.all[row*r.in.width+c.slot]
	r.counts.rounded = append(r.counts.rounded, Rounded{c.name, 1, r.part.path, shorten(k.text(&r.in, c)),
		complaint{part: r.part, offset: r.sc.place(int(k.off))}})
}

// holds reports whether float64 represents v exactly.
func holds(v int64) bool {
	f := float64(v)
	return f < math.MaxInt64 && int64(f) == v // the result of int64(f) for f = 2^63 depends on the processor
}
