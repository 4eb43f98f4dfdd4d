package forest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// table is all rows of the job as trees see them.
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
	missing uint8 // the bin of what is missing
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

// scale makes integers of labels and weights. factors are those of the classes, nil for a
// regression; weight may be nil. poisson says that labels must be 0 or more, and are not
// centred.
func scale(label, weight, factors []float64, poisson bool) (scaled, error) {
	n := len(label)
	// Every sum has at most n terms, each drawn up to mostDraws times.
	room := 62 - bits.Len(uint(n)) - bits.Len(mostDraws)
	at := func(i int) float64 {
		w := 1.0
		if weight != nil {
			w = weight[i]
		}
		if factors != nil {
			w *= factors[int(label[i])]
		}
		return w
	}
	unit, err := unitOf(n, min(weightBits, room), at)
	if err != nil {
		return scaled{}, fmt.Errorf("the weights %w", err)
	}
	s := scaled{w: make([]uint32, n), wUnit: math.Ldexp(1, unit), g: make([]int64, n), gUnit: 1}
	any := false
	for i := range s.w {
		s.w[i] = uint32(math.RoundToEven(math.Ldexp(at(i), -unit)))
		any = any || s.w[i] > 0
	}
	if !any {
		return scaled{}, errors.New("no row has a weight above 0")
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
		if !poisson {
			s.centre = centreOf(label)
		}
		product := func(i int) float64 { return at(i) * (label[i] - s.centre) }
		if unit, err = unitOf(n, room, product); err != nil {
			return scaled{}, fmt.Errorf("the labels, times the weights, %w", err)
		}
		s.gUnit = math.Ldexp(1, unit)
		for i := range s.g {
			s.g[i] = int64(math.RoundToEven(math.Ldexp(product(i), -unit)))
		}
	}
	return s, nil
}

// unitOf returns the exponent of a power of two by which n numbers are divided to become
// integers of at most the given bits: one of which all are multiples, if there is one, so
// that small whole numbers stay what they are.
func unitOf(n, most int, at func(i int) float64) (int, error) {
	top, exact := 0.0, math.MaxInt
	for i := range n {
		v := math.Abs(at(i))
		if !finite(v) {
			return 0, errors.New("are so large that they exceed float64: scale them down")
		}
		if v == 0 {
			continue
		}
		top = max(top, v)
		fraction, exponent := math.Frexp(v)
		mantissa := uint64(math.Ldexp(fraction, 53))
		exact = min(exact, exponent-53+bits.TrailingZeros64(mantissa))
	}
	if top == 0 {
		return 0, nil
	}
	_, exponent := math.Frexp(top) // top < 2^exponent
	if exponent-exact <= most {
		return exact, nil
	}
	return exponent - most, nil
}

// centreOf returns what is subtracted from labels that lie far from 0 compared with how
// they differ, so that digits are kept for the difference: a number with few digits, near
// their middle.
func centreOf(label []float64) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range label {
		lo, hi = min(lo, v), max(hi, v)
	}
	spread, middle := hi/2-lo/2, hi/2+lo/2
	if math.Abs(middle) <= 8*spread || !finite(middle) || spread == 0 && middle == 0 {
		return 0
	}
	if spread == 0 {
		return lo
	}
	_, exponent := math.Frexp(spread)
	return math.Ldexp(math.RoundToEven(math.Ldexp(middle, -exponent)), exponent)
}

// newTable makes a table of all rows: their labels and weights, and where their bins are.
func newTable(l *bins.Layout, rows *gathered, factors []float64, poisson bool) (*table, error) {
	s, err := scale(rows.label, rows.weight, factors, poisson)
	if err != nil {
		return nil, err
	}
	same := new([256]byte)
	for b := range same {
		same[b] = uint8(b)
	}
	t := &table{rows: len(rows.label), spans: rows.spans, layout: l, label: rows.label, scaled: s, classes: len(factors)}
	for i := range l.Features {
		f := &l.Features[i]
		switch {
		case f.Column >= 0:
			c := &l.Columns[f.Column]
			col := column{feature: i, bins: rows.blocks[c.Block].Bins, stride: rows.blocks[c.Block].Stride, missing: uint8(f.Bins), decode: same}
			if len(col.bins) > 0 {
				col.bins = col.bins[c.Offset:]
			}
			if len(c.Features) > 1 || f.Implicit >= 0 {
				col.decode = decoding(c, f)
			}
			t.cols = append(t.cols, col)
		case f.Slot >= 0:
			t.cols = append(t.cols, column{feature: i, bins: rows.loose[i], stride: 1, missing: uint8(f.Bins), decode: same})
		}
	}
	return t, nil
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
