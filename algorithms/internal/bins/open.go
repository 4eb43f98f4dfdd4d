package bins

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
)

// Open returns the binned rows of the subtask. Later calls in the same queue return the result
// of the first call.
func (t Table) Open(ctx *comqueue.ComContext) (*Data, error) {
	if d, ok := t.data.Lookup(ctx); ok {
		return d, nil
	}
	k, err := t.known(ctx)
	if err != nil {
		return nil, err
	}
	d := &Data{Facts: &k.Facts, Layout: &k.Layout}
	var parts []packed
	err = ctx.ForShards(func(shard int) error {
		p, err := unpack(t.rows.Get(ctx, shard))
		if err != nil || p.n == 0 {
			return err
		}
		if p.d != k.Facts.Declared && (t.plan.kind != sparseRows || t.plan.dim > 0) {
			return fmt.Errorf("evaluation set %q: rows have %d features, and the training rows have %d", t.name, p.d, k.Facts.Declared)
		}
		d.Shards = append(d.Shards, Span{Shard: shard, First: d.Rows, Rows: p.n})
		d.Rows += p.n
		parts = append(parts, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if d.Rows > math.MaxInt32 {
		return nil, fmt.Errorf("a subtask has %d rows, more than 2^31: use more subtasks", d.Rows)
	}
	if err := d.setScalars(t, k, parts); err != nil {
		return nil, err
	}
	if err := d.bin(ctx.HoldBlock, t.plan, parts); err != nil {
		return nil, err
	}
	t.data.Put(ctx, d)
	return d, nil
}

// state returns the number of bytes that Open and training keep on the heap for the rows of a
// shard.
func (t Table) state(ctx *comqueue.ComContext, rows *comqueue.Frame) int64 {
	n, entries, err := sizesOf(rows)
	if err != nil {
		return 0 // Open returns this error
	}
	p := t.plan
	each := 8 * int64(len(p.marginsAt))
	for _, at := range []int{p.labelAt, p.upperAt, p.weightAt} {
		if at >= 0 {
			each += 8
		}
	}
	if k, err := t.known(ctx); err == nil { // Open returns the error
		each += 2 * int64(len(k.Layout.Wide))
		if k.Layout.Slots > k.Layout.ColumnSlots {
			each += 8
		} else {
			entries = 0 // all entries are in columns
		}
		if t.State != nil {
			each += t.State(&k.Facts)
		}
	}
	return each*int64(n) + entryBytes*int64(entries)
}

// entryBytes is the heap memory for an entry of a sparse row: 4 bytes for its slot, 4 for its
// row and 1 for its bin. Row and bin are for lookups by feature.
const entryBytes = 4 + 4 + 1

// setScalars joins the labels, weights, margins and groups of the subtask's shards.
func (d *Data) setScalars(t Table, k *known, parts []packed) error {
	p := t.plan
	join := func(wanted bool, width int, of func(p *packed) []float64) []float64 {
		if !wanted {
			return nil
		}
		all := make([]float64, 0, d.Rows*width)
		for i := range parts {
			all = append(all, of(&parts[i])...)
		}
		return all
	}
	d.Label = join(p.labelAt >= 0, 1, func(p *packed) []float64 { return p.label })
	d.Upper = join(p.upperAt >= 0, 1, func(p *packed) []float64 { return p.upper })
	d.Weight = join(p.weightAt >= 0, 1, func(p *packed) []float64 { return p.weight })
	d.Outputs = len(p.marginsAt)
	d.Margins = join(d.Outputs > 0, d.Outputs, func(p *packed) []float64 { return p.margins })
	if p.groupAt >= 0 {
		d.Groups = []int32{0}
		for i, part := range parts {
			for _, end := range part.groups[1:] {
				d.Groups = append(d.Groups, int32(d.Shards[i].First)+end)
			}
		}
	}
	if p.label != ClassLabel {
		return nil
	}
	classes := k.classes()
	for i, part := range parts {
		own := part.dictionaries[0]
		number := make([]float64, len(own.Keys))
		for c, key := range own.Keys {
			at := classes.Number(key)
			if at < 0 {
				return fmt.Errorf("evaluation set %q: column %q has the class %q, which no training row has", t.name, p.columns.Label, own.Text(c))
			}
			number[c] = float64(at)
		}
		labels := d.Label[d.Shards[i].First:][:part.n]
		for r, c := range labels {
			labels[r] = number[int(c)]
		}
	}
	return nil
}

// holder is the type of comqueue.ComContext.HoldBlock. It allocates a block of zeroed bytes and
// calls fill for each piece of it. pieces has the lengths of the pieces.
type holder func(what string, pieces []int, fill func(piece int, b []byte) error) (block []byte, onDisk bool, err error)

// onHeap is a holder that allocates on the heap and needs no queue.
func onHeap(_ string, pieces []int, fill func(piece int, b []byte) error) ([]byte, bool, error) {
	var all []byte
	for i, size := range pieces {
		all = append(all, make([]byte, size)...)
		if err := fill(i, all[len(all)-size:]); err != nil {
			return nil, false, err
		}
	}
	return all, false, nil
}

// bin computes the bins of all rows. Each block of columns has a piece of memory for each
// shard.
func (d *Data) bin(hold holder, p *plan, parts []packed) error {
	first, size := 0, 0
	var pieces []int
	for _, stride := range d.Layout.Strides() {
		d.Blocks = append(d.Blocks, Block{First: first, Stride: stride})
		first += stride
		for i := range parts {
			pieces = append(pieces, parts[i].n*stride)
		}
		if len(parts) > 0 {
			pieces[len(pieces)-1] += blockBytes(d.Rows, stride) - d.Rows*stride
		}
		size += blockBytes(d.Rows, stride)
	}
	if size > 0 {
		filler := d.denseFiller
		if p.kind == sparseRows {
			filler = d.sparseFiller
		}
		fill := filler(p, parts)
		all, onDisk, err := hold("features as bins", pieces, func(piece int, to []byte) error {
			fill(piece/len(parts), piece%len(parts), to)
			return nil
		})
		if err != nil {
			return err
		}
		for i := range d.Blocks {
			b := &d.Blocks[i]
			b.Bins, all = all[:d.Rows*b.Stride:d.Rows*b.Stride], all[blockBytes(d.Rows, b.Stride):]
		}
		d.OnDisk = onDisk
	}
	d.fillWide(p, parts)
	if d.Layout.Slots > d.Layout.ColumnSlots {
		d.list(p, parts)
	}
	return nil
}

// blockBytes returns the size of a block, rounded up to whole cache lines.
func blockBytes(rows, stride int) int { return (rows*stride + 63) &^ 63 }

// binRows is the number of rows that are binned together, one column after the other. It is
// small, so that these rows of the block stay in the cache.
const binRows = 256

// denseFiller returns a function that writes the bins of one block to its last argument, for
// the rows of parts[part], which are dense.
func (d *Data) denseFiller(p *plan, parts []packed) func(block, part int, to []byte) {
	binners := make([]*binner, len(d.Layout.Columns))
	for c := range binners {
		binners[c] = newBinner(&d.Layout.Features[d.Layout.Columns[c].Features[0]], d.Rows)
	}
	codes := make([][][]uint8, len(parts))
	for i := range parts {
		codes[i] = p.textBins(&parts[i], binners)
	}
	return func(block, part int, to []byte) {
		b := &d.Blocks[block]
		b.fillPart(to, &parts[part], binners[b.First:b.First+b.Stride], codes[part][b.First:])
	}
}

// fillPart fills the slice all with the bins of the rows of a shard. codes has, for each text
// column, the bins of the shard's own categories.
func (b *Block) fillPart(all []byte, part *packed, columns []*binner, codes [][]uint8) {
	var values [binRows]float32
	for lo := 0; lo < part.n; lo += binRows {
		hi := min(lo+binRows, part.n)
		to := all[lo*b.Stride:]
		for c, one := range columns {
			feature := one.feature.Number
			from := values[:hi-lo]
			if part.raw != nil {
				for r := range from {
					from[r] = Single(part.raw[(lo+r)*part.d+feature])
				}
			} else {
				from = part.values[feature*part.n+lo : feature*part.n+hi]
			}
			if codes[c] != nil {
				one.fillText(to[c:], b.Stride, from, codes[c])
			} else {
				one.fill(to[c:], b.Stride, from)
			}
		}
	}
}

// fillText does what fill does, for values that are numbers of a shard's own categories. bin
// has the bin of each of these categories.
func (b *binner) fillText(to []byte, stride int, values []float32, bin []uint8) {
	for i, x := range values {
		if x != x {
			to[i*stride] = b.missing
		} else {
			to[i*stride] = bin[int(x)]
		}
	}
}

// textBins returns, for each column, the bins of a shard's own categories if the feature is
// text, else nil.
func (p *plan) textBins(part *packed, binners []*binner) [][]uint8 {
	all := make([][]uint8, len(binners))
	for c, one := range binners {
		if p.kind != separate || !p.text[one.feature.Number] {
			continue
		}
		d := part.dictionaries[p.textDictionary(one.feature.Number)]
		all[c] = make([]uint8, len(d.Keys))
		for i, key := range d.Keys {
			all[c][i] = one.missing
			if bin := one.feature.Category(key); bin >= 0 {
				all[c][i] = uint8(bin)
			}
		}
	}
	return all
}

// textDictionary returns the index in packed.dictionaries of the dictionary of a text feature.
func (p *plan) textDictionary(feature int) int {
	n := 0
	if p.label == ClassLabel {
		n++
	}
	for _, text := range p.text[:feature] {
		if text {
			n++
		}
	}
	return n
}

// sparseFiller returns a function that writes the bins of one block to its last argument, for
// the rows of parts[part], which are sparse.
func (d *Data) sparseFiller(p *plan, parts []packed) func(block, part int, to []byte) {
	of := -1                // the block whose features binners has
	var binners [][]*binner // the binners of each column of the block, one for each feature in the column
	return func(block, part int, to []byte) {
		b := &d.Blocks[block]
		if block != of {
			of, binners = block, make([][]*binner, b.Stride)
			for c := range binners {
				for _, i := range d.Layout.Columns[b.First+c].Features {
					f := &d.Layout.Features[i]
					binners[c] = append(binners[c], newBinner(f, entriesIn(f, parts)))
				}
			}
		}
		for c, columns := range binners {
			d.fillSparse(to[c:], b.Stride, &d.Layout.Columns[b.First+c], p, &parts[part], columns)
		}
	}
}

// fillSparse sets to[0], to[stride], … to the bytes of a column for the rows of a shard.
func (d *Data) fillSparse(to []byte, stride int, column *Column, p *plan, part *packed, binners []*binner) {
	if f := binners[0].feature; len(column.Features) == 1 {
		absent := byte(f.Bins)
		if p.options.AbsentIsZero {
			absent = byte(f.Bin(0))
		}
		for r := range part.n {
			to[r*stride] = absent
		}
	}
	for _, one := range binners {
		f := one.feature
		_, rows, values := part.entries(int32(f.Number))
		for e, x := range values {
			if bin := int(one.bin(x)); bin != f.Implicit {
				to[int(rows[e])*stride] = byte(f.SlotOf(bin) - column.Slot)
			}
		}
	}
}

// entriesIn returns the number of entries of a sparse feature in all parts.
func entriesIn(f *Feature, parts []packed) (n int) {
	for k := range parts {
		_, _, values := parts[k].entries(int32(f.Number))
		n += len(values)
	}
	return n
}

// list sets d.Sparse, the slots of the features without a column. It first computes the bins of
// all entries, feature by feature. It then writes the slots, shard by shard, so that the rows
// of a shard stay in the cache.
func (d *Data) list(p *plan, parts []packed) {
	var loose []*Feature // the features without a column, in the order of their slots
	for i := range d.Layout.Features {
		if f := &d.Layout.Features[i]; f.Slot >= d.Layout.ColumnSlots {
			loose = append(loose, f)
		}
	}
	numbers := make([][]byte, len(parts))
	for k := range parts {
		numbers[k] = make([]byte, len(parts[k].values))
	}
	ptr := make([]int64, d.Rows+1)
	for _, f := range loose {
		one, implicit := newBinner(f, entriesIn(f, parts)), byte(f.Implicit)
		for k := range parts {
			at, rows, values := parts[k].entries(int32(f.Number))
			if at < 0 {
				continue
			}
			bin := numbers[k][parts[k].start[at]:][:len(values)]
			one.fill(bin, 1, values)
			count := ptr[d.Shards[k].First+1:][:d.Shards[k].Rows]
			for e, b := range bin {
				if b != implicit {
					count[rows[e]]++
				}
			}
		}
	}
	for r := range d.Rows {
		ptr[r+1] += ptr[r]
	}
	slots := make([]uint32, ptr[d.Rows])
	var next []int64
	for k := range parts {
		next = append(next[:0], ptr[d.Shards[k].First:][:d.Shards[k].Rows]...)
		for _, f := range loose {
			at, rows, values := parts[k].entries(int32(f.Number))
			if at < 0 {
				continue
			}
			implicit, slot := byte(f.Implicit), uint32(f.Slot)
			for e, b := range numbers[k][parts[k].start[at]:][:len(values)] {
				if b == implicit {
					continue
				}
				to := slot + uint32(b)
				if b > implicit {
					to--
				}
				row := rows[e]
				slots[next[row]] = to
				next[row]++
			}
		}
	}
	d.Sparse = Sparse{RowPtr: ptr, Slots: slots}
}
