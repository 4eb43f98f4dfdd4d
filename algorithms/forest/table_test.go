package forest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

func TestSmallNumbersStayWhatTheyAre(t *testing.T) {
	s, err := scaleAll([]float64{3, -2, 0.5}, nil, nil, false)
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 1, 1}, s.w)
	require.Equal(t, 1.0, s.wUnit)
	require.Equal(t, []int64{6, -4, 1}, s.g)
	require.Equal(t, 0.5, s.gUnit)
	require.Zero(t, s.centre)

	s, err = scaleAll([]float64{0, 1, 1}, []float64{1.5, 0, 3}, []float64{1, 2}, false)
	require.NoError(t, err)
	require.Equal(t, []uint32{3, 0, 12}, s.w)
	require.Equal(t, 1.5, s.wUnit*float64(s.w[0]))
	require.Equal(t, []int64{0, 0, 12}, s.g)

	s, err = scaleAll([]float64{0, 4, 2}, nil, []float64{1, 1, 1, 1, 1}, false)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 4, 2}, s.g)
}

// TestScalesLoseLittle requires that numbers that are not kept exactly lose at most half a
// unit, which is tiny compared with the largest number.
func TestScalesLoseLittle(t *testing.T) {
	r := draws(1)
	const n = 1000
	label, weight := make([]float64, n), make([]float64, n)
	for i := range label {
		label[i], weight[i] = 1e9+r.NormFloat64(), r.Float64()
	}
	s, err := scaleAll(label, weight, nil, false)
	require.NoError(t, err)
	require.InDelta(t, 1e9, s.centre, 100)
	for i := range label {
		require.InDelta(t, weight[i], float64(s.w[i])*s.wUnit, 0x1p-27)
		require.InDelta(t, weight[i]*(label[i]-s.centre), float64(s.g[i])*s.gUnit, 1e-12)
	}
	// The sum of n rows, each drawn mostDraws times, must fit 62 bits.
	for i := range s.g {
		require.Less(t, math.Abs(float64(s.g[i]))*mostDraws*n, 0x1p62)
	}
}

func TestScalesRefuse(t *testing.T) {
	_, err := scaleAll([]float64{1, 2}, []float64{0, 0}, nil, false)
	require.ErrorContains(t, err, "no row has a weight above 0")
	_, err = scaleAll([]float64{1, 0}, []float64{1e300, 1}, []float64{1, 1e300}, false)
	require.ErrorContains(t, err, "the weights are so large that they exceed float64")
	_, err = scaleAll([]float64{1, 0}, []float64{1e307, 1}, nil, false)
	require.ErrorContains(t, err, "drawn more than once exceed float64")
	_, err = scaleAll([]float64{1e300, 0}, []float64{1e300, 1}, nil, false)
	require.ErrorContains(t, err, "the labels, times the weights, are so large")
}

func TestScalesOfExtremes(t *testing.T) {
	for _, label := range [][]float64{{1e308, -1e308}, {5e-324, 0}, {7, 7}, {0, 0}, {1e308, 1e308, 1e308 * (1 - 0x1p-52)}} {
		s, err := scaleAll(label, nil, nil, false)
		require.NoError(t, err, "%v", label)
		for i, v := range label {
			require.InEpsilon(t, 1+v, 1+s.centre+float64(s.g[i])*s.gUnit, 1e-9)
		}
	}
}

func TestRowsArePackedAndUnpacked(t *testing.T) {
	l := &bins.Layout{
		Features: []bins.Feature{
			{Number: 0, Bins: 3, Column: 0, Slot: 0, Implicit: -1, Cuts: []float32{1, 2}},
			{Number: 2, Bins: 2, Column: 1, Slot: 4, Implicit: -1, Cuts: []float32{1}},
			{Number: 5, Bins: 3, Column: -1, Slot: 7, Implicit: 3, Cuts: []float32{1, 2}},
			{Number: 7, Bins: 1, Column: -1, Slot: -1, Implicit: -1},
		},
		Columns: []bins.Column{{Slot: 0, Width: 4, Features: []int{0}}, {Slot: 4, Width: 3, Features: []int{1}, Block: 1}},
		Slots:   10, ColumnSlots: 7,
	}
	part := func(first int, shards []bins.Span, n int) *bins.Data {
		d := &bins.Data{Layout: l, Rows: n, Shards: shards, Blocks: []bins.Block{{Stride: 1}, {First: 1, Stride: 1}}, Sparse: bins.Sparse{RowPtr: []int64{0}}}
		for i := range n {
			d.Label, d.Weight = append(d.Label, float64(first+i)), append(d.Weight, 0.5)
			d.Blocks[0].Bins = append(d.Blocks[0].Bins, byte((first+i)%3))
			d.Blocks[1].Bins = append(d.Blocks[1].Bins, byte((first+i)%2))
			if i%2 == 0 {
				d.Sparse.Slots = append(d.Sparse.Slots, uint32(7+i%3))
			}
			d.Sparse.RowPtr = append(d.Sparse.RowPtr, int64(len(d.Sparse.Slots)))
		}
		return d
	}
	parts := []*bins.Data{part(0, []bins.Span{{Shard: 0, Rows: 2}, {Shard: 3, First: 2, Rows: 1}}, 3), part(3, nil, 0), part(3, []bins.Span{{Shard: 6, Rows: 4}}, 4)}
	var sent []byte
	for _, d := range parts {
		sent = append(sent, pack(d, spread(d))...)
	}
	g, err := unpack(l, sent, 7, true)
	require.NoError(t, err)
	require.Equal(t, []bins.Span{{Shard: 0, Rows: 2}, {Shard: 3, First: 2, Rows: 1}, {Shard: 6, First: 3, Rows: 4}}, g.spans)
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5, 6}, g.label)
	require.Equal(t, []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, g.weight)
	require.Equal(t, []byte{0, 1, 2, 0, 1, 2, 0}, g.blocks[0].Bins)
	require.Equal(t, []byte{0, 1, 0, 1, 0, 1, 0}, g.blocks[1].Bins)
	require.Equal(t, []byte{0, 3, 2, 0, 3, 2, 3}, g.loose[2])
	for cut := range sent {
		if _, err = unpack(l, sent[:cut], 7, true); err == nil {
			t.Fatalf("unpack must refuse %d of %d bytes", cut, len(sent))
		}
	}
	require.Len(t, newTable(l, g, scaled{}, 0).cols, 3)
}

func TestBundlesAreDecoded(t *testing.T) {
	// Two features share a column. Byte 0 belongs to neither of them. Bytes 1 to 3 are the bins
	// 1, 2 and missing of the first feature, whose bin 0 is implicit. Byte 4 is bin 0 of the
	// second feature, whose missing values are implicit.
	one := bins.Feature{Bins: 3, Slot: 101, Implicit: 0}
	two := bins.Feature{Bins: 1, Slot: 104, Implicit: 1}
	c := &bins.Column{Slot: 100, Width: 5, Features: []int{0, 1}}
	d := decoding(c, &one)
	require.Equal(t, []byte{0, 1, 2, 3, 0}, d[:5])
	d = decoding(c, &two)
	require.Equal(t, []byte{1, 1, 1, 1, 0}, d[:5])
}
