package forest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// table is rows as trees see them: all of the job, or some.
type table struct {
	rows   int
	spans  []bins.Span // of all shards with rows, in order
	layout *bins.Layout
	cols   []column // of the features that have a value to tell apart
	label  []float64
	scaled
	classes int // 0 for a regression
}

// column is where the bins of a feature are.
type column struct {
	feature int    // its number within Layout.Features
	bins    []byte // row r has bins[r*stride]
	stride  int
	// decode gives the bin of a byte: itself, but where several features share the bytes.
	decode  *[256]byte
	wide    []uint16 // in place of bytes: row r has wide[r]; nil where a byte holds a bin
	missing int      // the bin of what is missing
}

// bin returns the bin of a row.
func (c *column) bin(row uint32) int {
	if c.wide != nil {
		return int(c.wide[row])
	}
	return int(c.decode[c.bins[int(row)*c.stride]])
}

// bytes is how many hold a bin.
func (c *column) bytes() int {
	if c.wide != nil {
		return 2
	}
	return 1
}

// scaled is the weights and labels of rows as integers, of which sums are exact and need no
// order.
type scaled struct {
	// w is the weight of each row, times its class's: w·wUnit is the number.
	w     []uint32
	wUnit float64
	// g is the row's class where there are more than two. Of two classes it is w for rows of
	// the second, else 0. Of a regression it is weight times (label − centre): g·gUnit is the
	// number.
	g      []int64
	gUnit  float64
	centre float64
}

// weightBits bounds the bits of a weight: 27 leave room for the draws of a bootstrap.
const weightBits = 27

// extent is what units are chosen by: of the weights, and of the labels less the centre times
// the weights, the largest absolute value, and minus the largest exponent of a power of two of
// which all are multiples. Those of several subtasks are merged by taking the larger.
type extent [4]float64

// noExponent stands for the exponent of zeros, which are multiples of everything.
const noExponent = 1 << 20

// extentOf measures rows. factors are those of the classes, nil for a regression; weight may
// be nil.
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

// weigh returns the weight of a row, times its class's.
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

// unit returns the exponent of the power of two by which numbers are divided to become
// integers of at most the given bits: one of which all are multiples, if that will do, so
// that small whole numbers stay what they are.
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

// scale makes integers of labels and weights of some of the job's rows, whose number and
// extent are given. factors are those of the classes, nil for a regression; weight may be nil.
func scale(label, weight, factors []float64, centre float64, rows int64, e extent) (scaled, error) {
	// Every sum has at most one term of each row, drawn up to mostDraws times.
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

// centreOf returns what is subtracted from labels that lie far from 0 compared with how
// they differ, so that digits are kept for the difference: a number with few digits, near
// their middle.
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

// newTable makes a table of rows: their labels and weights as integers, and where their bins
// are.
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

// identity decodes bytes that are bins.
func identity() *[256]byte {
	same := new([256]byte)
	for b := range same {
		same[b] = uint8(b)
	}
	return same
}

// decoding returns the bins of a feature for the bytes of a column.
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
