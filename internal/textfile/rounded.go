package textfile

import (
	"errors"
	"math"

	"github.com/apache/arrow/go/v15/arrow/array"
)

// Rounded describes the whole numbers in a column, beyond 2^53, that float64 cannot represent:
// they are rounded when they are read, or used in computations, as float64.
type Rounded struct {
	Column  string
	Numbers int64
	// Path and Value are those of the first.
	Path, Value string

	first complaint
}

// Line returns the line of the first. It reads the file to count lines.
func (r Rounded) Line() (int64, error) { return r.first.part.lineOf(r.first.offset) }

// RoundedIn returns the rounded numbers of a shard that has been read to its end, one entry per
// column, in the order of the columns. The caller must not modify it.
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

// round counts the cell of a column in a row as rounded.
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

// holds reports whether float64 represents the number exactly.
func holds(v int64) bool {
	f := float64(v)
	return f < math.MaxInt64 && int64(f) == v // the conversion of 2^63 would depend on the processor
}
