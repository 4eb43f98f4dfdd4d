package forest

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// loose returns the features that the rows store as Sparse. In the table each of them gets its
// own column.
func loose(l *bins.Layout) (features []int) {
	for i := range l.Features {
		if l.Features[i].Slot >= l.ColumnSlots {
			features = append(features, i)
		}
	}
	return features
}

// copied returns the number of bytes that a copy of all rows takes.
func copied(l *bins.Layout, rows int64) int64 {
	return rows * int64(len(l.Columns)+2*len(l.Wide)+len(loose(l))+16)
}

// spread returns a column of bins for each loose feature, indexed by the number of the feature.
// It returns nil if there are no loose features.
func spread(d *bins.Data) [][]byte {
	features := loose(d.Layout)
	if len(features) == 0 {
		return nil
	}
	columns := make([][]byte, len(d.Layout.Features))
	// owner and bin have the feature and the bin of each slot.
	first := d.Layout.ColumnSlots
	owner, bin := make([]int32, d.Layout.Slots-first), make([]uint8, d.Layout.Slots-first)
	for _, i := range features {
		f := &d.Layout.Features[i]
		columns[i] = make([]byte, d.Rows)
		for r := range columns[i] {
			columns[i][r] = uint8(max(f.Implicit, 0))
		}
		for slot := f.Slot; slot < f.Slot+f.Stored(); slot++ {
			owner[slot-first], bin[slot-first] = int32(i), uint8(f.BinOfSlot(slot))
		}
	}
	for r := range d.Rows {
		for _, slot := range d.Sparse.Slots[d.Sparse.RowPtr[r]:d.Sparse.RowPtr[r+1]] {
			at := int(slot) - first
			columns[owner[at]][r] = bin[at]
		}
	}
	return columns
}

// pack encodes the rows of a subtask for the other subtasks: spans, labels, weights, blocks,
// wide columns, and columns of loose features.
func pack(d *bins.Data, columns [][]byte) []byte {
	le := binary.LittleEndian
	dst := make([]byte, 0, 8+8*len(d.Shards)+int(copied(d.Layout, int64(d.Rows))))
	dst = le.AppendUint32(dst, uint32(len(d.Shards)))
	dst = le.AppendUint32(dst, uint32(d.Rows))
	for _, s := range d.Shards {
		dst = le.AppendUint32(dst, uint32(s.Shard))
		dst = le.AppendUint32(dst, uint32(s.Rows))
	}
	for _, v := range [][]float64{d.Label, d.Weight} {
		for _, x := range v {
			dst = le.AppendUint64(dst, math.Float64bits(x))
		}
	}
	for _, b := range d.Blocks {
		dst = append(dst, b.Bins[:d.Rows*b.Stride]...)
	}
	for _, column := range d.Wide {
		for _, bin := range column {
			dst = le.AppendUint16(dst, bin)
		}
	}
	for _, i := range loose(d.Layout) {
		dst = append(dst, columns[i]...)
	}
	return dst
}

// gathered has all rows of the job.
type gathered struct {
	spans         []bins.Span
	label, weight []float64
	blocks        []bins.Block
	wide          [][]uint16
	loose         [][]byte
}

var errRows = errors.New("the rows that a subtask sent are cut short")

// blocksOf returns the blocks of a layout, without rows.
func blocksOf(l *bins.Layout) (blocks []bins.Block) {
	for i := range l.Columns {
		k := l.Columns[i].Block
		for len(blocks) <= k {
			blocks = append(blocks, bins.Block{First: i})
		}
		blocks[k].Stride++
	}
	return blocks
}

// unpack joins the rows that the subtasks packed, in the order of the subtasks. l is the layout
// of the rows, and rows is their number.
func unpack(l *bins.Layout, src []byte, rows int, weighted bool) (*gathered, error) {
	blocks := blocksOf(l)
	g := &gathered{label: make([]float64, 0, rows)}
	if weighted {
		g.weight = make([]float64, 0, rows)
	}
	for _, b := range blocks {
		g.blocks = append(g.blocks, bins.Block{First: b.First, Stride: b.Stride, Bins: make([]byte, 0, rows*b.Stride)})
	}
	for range l.Wide {
		g.wide = append(g.wide, make([]uint16, 0, rows))
	}
	features := loose(l)
	if len(features) > 0 {
		g.loose = make([][]byte, len(l.Features))
		for _, i := range features {
			g.loose[i] = make([]byte, 0, rows)
		}
	}
	le := binary.LittleEndian
	for len(src) > 0 {
		if len(src) < 8 {
			return nil, errRows
		}
		spans, n := int(le.Uint32(src)), int(le.Uint32(src[4:]))
		need := 8 + 8*spans + n*(2*len(l.Wide)+len(features)+8)
		if weighted {
			need += 8 * n
		}
		for _, b := range blocks {
			need += n * b.Stride
		}
		if len(src) < need || len(g.label)+n > rows {
			return nil, errRows
		}
		src = src[8:]
		first := len(g.label)
		for range spans {
			s := bins.Span{Shard: int(le.Uint32(src)), First: first, Rows: int(le.Uint32(src[4:]))}
			g.spans = append(g.spans, s)
			first += s.Rows
			src = src[8:]
		}
		g.label, src = floats(g.label, src, n)
		if weighted {
			g.weight, src = floats(g.weight, src, n)
		}
		for k := range g.blocks {
			b := &g.blocks[k]
			b.Bins, src = append(b.Bins, src[:n*b.Stride]...), src[n*b.Stride:]
		}
		for k := range g.wide {
			for i := range n {
				g.wide[k] = append(g.wide[k], le.Uint16(src[2*i:]))
			}
			src = src[2*n:]
		}
		for _, i := range features {
			g.loose[i], src = append(g.loose[i], src[:n]...), src[n:]
		}
	}
	if len(g.label) != rows {
		return nil, errRows
	}
	return g, nil
}

// floats appends n numbers that it reads from src to dst. rest has the bytes after them.
func floats(dst []float64, src []byte, n int) (numbers []float64, rest []byte) {
	for i := range n {
		dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
	return dst, src[8*n:]
}
