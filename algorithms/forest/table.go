package forest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// table has the rows on which trees are grown: all rows of the job, or those of a subtask.
type table struct {
	rows   int
	spans  []bins.Span // the spans of all shards with rows, in order
	layout *bins.Layout
	cols   []column // the columns of the features that can split rows
	label  []float64
	scaled
	classes int // number of classes; 0 for a regression
}

// column describes where the bins of a feature are stored.
type column struct {
	feature int    // index in Layout.Features
	bins    []byte // the bin of row r is in bins[r*stride]
	stride  int
	// decode maps a byte to a bin. It is the identity unless several features share the column.
	decode  *[256]byte
	wide    []uint16 // used instead of bins: row r has the bin wide[r]; nil if a bin takes one byte
	missing int      // the bin of missing values
}

// bin returns the bin of a row.
func (c *column) bin(row uint32) int {
	if c.wide != nil {
		return int(c.wide[row])
	}
	return int(c.decode[c.bins[int(row)*c.stride]])
}

// bytes returns the number of bytes of a bin.
func (c *column) bytes() int {
	if c.wide != nil {
		return 2
	}
	return 1
}

// scaled has the weights and labels of rows as integers. Their sums are exact in any order.
type scaled struct {
	// w is the weight of each row, times the factor of its class, in units of wUnit.
	w     []uint32
	wUnit float64
	// With more than two classes, g is the class of each row. With two classes it is w for rows
	// of the second class and 0 for rows of the first. For a regression it is weight·(label −
	// centre) in units of gUnit.
	g      []int64
	gUnit  float64
	centre float64
}

// weightBits is the largest number of bits of a weight. A weight can still be multiplied by the
// number of draws of a bootstrap without overflowing 32 bits.
const weightBits = 27

// extent has the facts that determine the units: two numbers about the weights, and then the
// same two about weight·(label − centre). The first number is the largest absolute value. The
// second is −e, where 2^e is the largest power of two that divides all values. The extents of
// several subtasks are merged by taking the maximum of each number.
type extent [4]float64

// noExponent stands for e if all values are zero, and thus multiples of every power of two.
const noExponent = 1 << 20

// extentOf returns the extent of rows. factors has the factors of the classes; it is nil for a
// regression. weight may be nil.
func extentOf(label, weight, factors []float64, centre float64) extent {
	e := extent{0, -noExponent, 0, -noExponent}
	note := func(at int, v float64) {
		if v = math.Abs(v); !kernel.Finite(v) {
			e[at] = math.Inf(1)
		} else if v > 0 {
			fraction, exponent := math.Frexp(v)
			exponent += bits.TrailingZeros64(uint64(math.Ldexp(fraction, 53))) - 53
			e[at], e[at+1] = max(e[at], v), max(e[at+1], -float64(exponent))
		}
	}
	for i, y := range label {
		w := weigh(i, label, weight, factors)
		note(0, w)
		if factors == nil {
			note(2, float64(w*(y-centre)))
		}
	}
	return e
}

// weigh returns the weight of a row, times the factor of its class.
func weigh(i int, label, weight, factors []float64) float64 {
	w := 1.0
	if weight != nil {
		w = weight[i]
	}
	if factors != nil {
		w *= factors[int(label[i])]
	}
	return w
}

// unit returns the exponent of a unit that is a power of two; at is the index in e of the facts
// about the values. The values divided by the unit are rounded to integers, whose largest
// number of bits is most. If possible, the unit divides all numbers, so that small whole
// numbers are kept exactly.
func (e extent) unit(at, most int) (int, error) {
	switch top, exact := e[at], int(-e[at+1]); {
	case math.IsInf(top, 1):
		return 0, errors.New("are so large that they exceed float64: scale them down")
	case top == 0:
		return 0, nil
	default:
		_, exponent := math.Frexp(top) // top < 2^exponent
		if exponent-exact <= most {
			return exact, nil
		}
		return exponent - most, nil
	}
}

// scale returns labels and weights as integers. rows and e are the number and the extent of all
// rows of the job. factors has the factors of the classes; it is nil for a regression. weight
// may be nil.
func scale(label, weight, factors []float64, centre float64, rows int64, e extent) (scaled, error) {
	// A sum has at most one term for each row, multiplied by at most mostDraws.
	room := 62 - bits.Len64(uint64(rows)) - bits.Len(mostDraws)
	unit, err := e.unit(0, min(weightBits, room))
	if err != nil {
		return scaled{}, fmt.Errorf("the weights %w", err)
	}
	if e[0] == 0 {
		return scaled{}, errors.New("no row has a weight above 0")
	}
	if !kernel.Finite(e[0] * mostDraws * float64(rows)) {
		return scaled{}, errors.New("the weights are so large that sums of rows that are drawn more than once exceed float64: scale them down")
	}
	n := len(label)
	s := scaled{w: make([]uint32, n), wUnit: math.Ldexp(1, unit), g: make([]int64, n), gUnit: 1, centre: centre}
	for i := range s.w {
		s.w[i] = uint32(math.RoundToEven(math.Ldexp(weigh(i, label, weight, factors), -unit)))
	}
	switch {
	case len(factors) == 2:
		for i, c := range label {
			if c > 0 {
				s.g[i] = int64(s.w[i])
			}
		}
		s.gUnit = s.wUnit
	case factors != nil:
		for i, c := range label {
			s.g[i] = int64(c)
		}
	default:
		if unit, err = e.unit(2, room); err != nil {
			return scaled{}, fmt.Errorf("the labels, times the weights, %w", err)
		}
		s.gUnit = math.Ldexp(1, unit)
		for i, y := range label {
			s.g[i] = int64(math.RoundToEven(math.Ldexp(float64(weigh(i, label, weight, nil)*(y-centre)), -unit)))
		}
	}
	return s, nil
}

// centreOf returns the number that is subtracted from labels between lo and hi. It is 0 unless
// the labels are far from 0 compared with their differences. In that case it is a number with
// few digits near the middle of lo and hi, so that the differences keep their digits.
func centreOf(lo, hi float64) float64 {
	spread, middle := float64(hi/2)-float64(lo/2), float64(hi/2)+float64(lo/2)
	switch {
	case math.Abs(middle) <= 8*spread || !kernel.Finite(middle):
		return 0
	case spread == 0:
		return lo
	}
	_, exponent := math.Frexp(spread)
	return math.Ldexp(math.RoundToEven(math.Ldexp(middle, -exponent)), exponent)
}

// newTable returns the table of rows, whose labels and weights are given as integers in s.
func newTable(l *bins.Layout, rows *gathered, s scaled, classes int) *table {
	same := identity()
	t := &table{rows: len(rows.label), spans: rows.spans, layout: l, label: rows.label, scaled: s, classes: classes}
	for i := range l.Features {
		f := &l.Features[i]
		wide := l.WideColumn(i)
		switch {
		case wide >= 0:
			t.cols = append(t.cols, column{feature: i, wide: rows.wide[wide], missing: f.Bins})
		case f.Column >= 0:
			c := &l.Columns[f.Column]
			col := column{feature: i, bins: rows.blocks[c.Block].Bins, stride: rows.blocks[c.Block].Stride, missing: f.Bins, decode: same}
			if len(col.bins) > 0 {
				col.bins = col.bins[c.Offset:]
			}
			if len(c.Features) > 1 || f.Implicit >= 0 {
				col.decode = decoding(c, f)
			}
			t.cols = append(t.cols, col)
		case f.Slot >= 0:
			t.cols = append(t.cols, column{feature: i, bins: rows.loose[i], stride: 1, missing: f.Bins, decode: same})
		}
	}
	return t
}

// identity returns the decoding for bytes that are bins themselves.
func identity() *[256]byte {
	same := new([256]byte)
	for b := range same {
		same[b] = uint8(b)
	}
	return same
}

// decoding returns the decoding of a column's bytes to the bins of a feature.
func decoding(c *bins.Column, f *bins.Feature) *[256]byte {
	d := new([256]byte)
	for b := range d {
		d[b] = uint8(max(f.Implicit, 0))
		if slot := c.Slot + b; slot >= f.Slot && slot < f.Slot+f.Stored() {
			d[b] = uint8(f.BinOfSlot(slot))
		}
	}
	return d
}
