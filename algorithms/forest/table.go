package forest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// table is the rows that trees are grown on: all rows of the job, or those of a subtask.
type table struct {
	rows   int
	spans  []bins.Span // of all shards with rows, in order
	layout *bins.Layout
	cols   []column // of the features that can split rows
	label  []float64
	scaled
	classes int // 0 for a regression
}

// column says where the bins of a feature are.
type column struct {
	feature int    // index in Layout.Features
	bins    []byte // row r has bins[r*stride]
	stride  int
	// decode maps a byte to a bin. Bytes are bins, unless several features share the bytes.
	decode  *[256]byte
	wide    []uint16 // instead of bins: row r has wide[r]; nil where a byte holds a bin
	missing int      // the bin of missing values
}

// bin returns the bin of a row.
func (c *column) bin(row uint32) int {
	if c.wide != nil {
		return int(c.wide[row])
	}
	return int(c.decode[c.bins[int(row)*c.stride]])
}

// bytes returns how many bytes hold a bin.
func (c *column) bytes() int {
	if c.wide != nil {
		return 2
	}
	return 1
}

// scaled is the weights and labels of rows as integers. Their sums are exact in any order.
type scaled struct {
	// w is the weight of each row, times the factor of its class. The weight is w·wUnit.
	w     []uint32
	wUnit float64
	// With more than two classes, g is the row's class. With two classes it is w for rows of
	// the second, and 0 for those of the first. For a regression it is weight·(label − centre),
	// which is g·gUnit.
	g      []int64
	gUnit  float64
	centre float64
}

// weightBits is the largest number of bits of a weight. It leaves room for the draws of a
// bootstrap.
const weightBits = 27

// extent decides the units. It has two numbers about the weights, and then the same two about
// weight·(label − centre). The first is the largest absolute value. The second is minus the
// largest exponent of a power of two that divides all values. The extents of several subtasks
// are merged by taking the larger numbers.
type extent [4]float64

// noExponent stands for the exponent of zeros, which are multiples of everything.
const noExponent = 1 << 20

// extentOf returns the extent of rows. factors are the factors of the classes, nil for a
// regression. weight may be nil.
func extentOf(label, weight, factors []float64, centre float64) extent {
	e := extent{0, -noExponent, 0, -noExponent}
	note := func(at int, v float64) {
		if v = math.Abs(v); !finite(v) {
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

// unit returns the exponent of the unit, a power of two. Numbers divided by it become integers
// of at most most bits. If possible, the unit divides all numbers, so that small whole numbers
// are kept exactly.
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

// scale makes integers of labels and weights. rows and e are the number and the extent of all
// rows of the job. factors are the factors of the classes, nil for a regression. weight may be
// nil.
func scale(label, weight, factors []float64, centre float64, rows int64, e extent) (scaled, error) {
	// Every sum has at most one term for each row, which is drawn up to mostDraws times.
	room := 62 - bits.Len64(uint64(rows)) - bits.Len(mostDraws)
	unit, err := e.unit(0, min(weightBits, room))
	if err != nil {
		return scaled{}, fmt.Errorf("the weights %w", err)
	}
	if e[0] == 0 {
		return scaled{}, errors.New("no row has a weight above 0")
	}
	if !finite(e[0] * mostDraws * float64(rows)) {
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

// centreOf returns the number that is subtracted from labels between lo and hi. It is not 0 if
// they are far from 0 compared with their differences, so that digits are kept for these. It
// then has few digits and lies near their middle.
func centreOf(lo, hi float64) float64 {
	spread, middle := float64(hi/2)-float64(lo/2), float64(hi/2)+float64(lo/2)
	switch {
	case math.Abs(middle) <= 8*spread || !finite(middle):
		return 0
	case spread == 0:
		return lo
	}
	_, exponent := math.Frexp(spread)
	return math.Ldexp(math.RoundToEven(math.Ldexp(middle, -exponent)), exponent)
}

// newTable makes a table of rows, with labels and weights as integers.
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

// identity returns the decoding of bytes that are bins.
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
