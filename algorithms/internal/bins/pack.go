package bins

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// run says that the rows [from, to) of a batch are packed as the rows [out, out+to−from) of the
// shard.
type run struct{ batch, from, to, out int }

// pack returns the shard's rows as a batch of packedSchema, which the caller owns. Arrays of
// feature values are allocated from mem.
func (o *checker) pack(mem memory.Allocator) (arrow.Record, error) {
	p := o.plan
	k := &packer{plan: p, batches: o.batches, mem: mem}
	defer k.release()
	k.out.n = o.rows - int(o.skipped)
	k.whole = o.skipped == 0
	if k.whole {
		for b, rec := range o.batches {
			k.runs = append(k.runs, run{batch: b, to: int(rec.NumRows()), out: k.count()})
		}
	} else {
		k.runs = runsOf(o.batches, o.skip)
	}
	if p.groupAt >= 0 {
		if err := k.group(); err != nil {
			return nil, err
		}
	}
	if err := k.scalars(); err != nil {
		return nil, err
	}
	raw, err := k.features(o.width)
	if err != nil {
		return nil, err
	}
	if raw != nil {
		defer raw.Release()
	}
	return k.out.record(raw)
}

// runsOf returns the runs of the rows that are kept: all rows without skip[batch][row].
func runsOf(batches []arrow.Record, skip [][]bool) []run {
	var all []run
	out := 0
	for b, rec := range batches {
		n := int(rec.NumRows())
		for from := 0; from < n; {
			if skip[b] != nil && skip[b][from] {
				from++
				continue
			}
			to := from + 1
			for to < n && (skip[b] == nil || !skip[b][to]) {
				to++
			}
			all = append(all, run{batch: b, from: from, to: to, out: out})
			out += to - from
			from = to
		}
	}
	return all
}

// packer packs the rows of a shard.
type packer struct {
	plan    *plan
	batches []arrow.Record
	mem     memory.Allocator // for arrays whose size is rows × features
	runs    []run
	whole   bool // all rows are kept, in their original order
	out     packed
}

// makeValues allocates out.values with n elements.
func (k *packer) makeValues(n int) {
	k.out.ofValues = newBuffer(k.mem, 4*n)
	k.out.values = arrow.Float32Traits.CastFromBytes(k.out.ofValues.Bytes())
}

// makeRows allocates out.row with n elements.
func (k *packer) makeRows(n int) {
	k.out.ofRow = newBuffer(k.mem, 4*n)
	k.out.row = arrow.Int32Traits.CastFromBytes(k.out.ofRow.Bytes())
}

func newBuffer(mem memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(n)
	return b
}

// release releases the packer's buffers. The packed batch has its own references to them.
func (k *packer) release() {
	for _, b := range []*memory.Buffer{k.out.ofValues, k.out.ofRow} {
		if b != nil {
			b.Release()
		}
	}
}

// count returns the number of rows in the runs so far.
func (k *packer) count() int {
	if len(k.runs) == 0 {
		return 0
	}
	last := k.runs[len(k.runs)-1]
	return last.out + last.to - last.from
}

// each calls f for each run, with the column of the run's batch and the run's fields from, to
// and out.
func (k *packer) each(column int, f func(arr arrow.Array, from, to, out int)) {
	for _, r := range k.runs {
		f(k.batches[r.batch].Column(column), r.from, r.to, r.out)
	}
}

// group reorders the rows so that the rows of each group are adjacent. Rows keep their order
// within a group, and groups are ordered by their first rows.
func (k *packer) group() error {
	number := map[string]int32{}
	of := make([]int32, k.out.n)
	var size []int32
	var key []byte
	for _, r := range k.runs {
		var keys batch.Keys
		if err := keys.Reset(k.batches[r.batch], []int{k.plan.groupAt}); err != nil {
			return err
		}
		for i := r.from; i < r.to; i++ {
			key = keys.Append(key[:0], i)
			g, ok := number[string(key)]
			if !ok {
				g = int32(len(size))
				number[string(key)] = g
				size = append(size, 0)
			}
			size[g]++
			of[r.out+i-r.from] = g
		}
	}
	k.out.groups = make([]int32, len(size)+1)
	for g, n := range size {
		k.out.groups[g+1] = k.out.groups[g] + n
	}
	if runs, moved := reorder(k.runs, of, k.out.groups); moved {
		k.runs, k.whole = runs, false
	}
	return nil
}

// reorder returns runs of the same rows, sorted stably by group, and whether their order
// differs from the original order. of[i] is the group of row i. Group g begins at row start[g]
// of the result.
func reorder(runs []run, of, start []int32) ([]run, bool) {
	type place struct{ batch, row int32 }
	next := append([]int32(nil), start...)
	at := make([]place, len(of))
	same := true
	for _, r := range runs {
		for i := r.from; i < r.to; i++ {
			g := of[r.out+i-r.from]
			same = same && int(next[g]) == r.out+i-r.from
			at[next[g]] = place{int32(r.batch), int32(i)}
			next[g]++
		}
	}
	if same {
		return runs, false
	}
	var all []run
	for out, p := range at {
		if last := len(all) - 1; last >= 0 && all[last].batch == int(p.batch) && all[last].to == int(p.row) {
			all[last].to++
			continue
		}
		all = append(all, run{batch: int(p.batch), from: int(p.row), to: int(p.row) + 1, out: out})
	}
	return all, true
}

// scalars packs labels, weights and margins.
func (k *packer) scalars() error {
	p := k.plan
	if p.weightAt >= 0 {
		k.out.weight = k.numbers(p.weightAt, make([]float64, k.out.n), 1, 0)
	}
	if p.upperAt >= 0 {
		k.out.upper = k.numbers(p.upperAt, make([]float64, k.out.n), 1, 0)
	}
	if m := len(p.marginsAt); m > 0 {
		k.out.margins = make([]float64, k.out.n*m)
		for i, at := range p.marginsAt {
			k.numbers(at, k.out.margins, m, i)
		}
	}
	if p.labelAt < 0 {
		return nil
	}
	k.out.label = make([]float64, k.out.n)
	if p.label != ClassLabel {
		k.numbers(p.labelAt, k.out.label, 1, 0)
		return nil
	}
	numbers := make([]int32, k.out.n)
	d, err := k.dictionary(p.labelAt, numbers, rows.MaxClasses)
	if err != nil {
		return fmt.Errorf("column %q: %w", p.columns.Label, rows.TooManyClasses())
	}
	d.Weight = make([]float64, len(d.Keys))
	for i, c := range numbers {
		k.out.label[i] = float64(c)
		d.Weight[c] += k.weightOf(i)
	}
	k.out.dictionaries = append(k.out.dictionaries, d)
	return nil
}

// weightOf returns the weight of a packed row.
func (k *packer) weightOf(row int) float64 {
	if k.out.weight == nil {
		return 1
	}
	return k.out.weight[row]
}

// numbers sets to[row*stride+offset] to the value of a number column, for each row, and returns
// the slice to.
func (k *packer) numbers(column int, to []float64, stride, offset int) []float64 {
	k.each(column, func(arr arrow.Array, from, end, out int) {
		for i := from; i < end; i++ {
			to[(out+i-from)*stride+offset] = numberAt(arr, i)
		}
	})
	return to
}

// dictionary returns the distinct values of a column, with the number of rows of positive
// weight that have each value. It sets numbers[i] to the index of the value of row i, or −1 for
// a null. More than limit distinct values are an error.
func (k *packer) dictionary(column int, numbers []int32, limit int) (dictionary, error) {
	c := newCollector()
	k.each(column, func(arr arrow.Array, from, to, out int) {
		nulls := arr.NullN() > 0
		for i := from; i < to; i++ {
			n := int32(-1)
			if (!nulls || !arr.IsNull(i)) && len(c.keys) <= limit {
				n = c.number(arr, i)
			}
			numbers[out+i-from] = n
		}
	})
	if len(c.keys) > limit {
		return dictionary{}, fmt.Errorf("there are more than %d different values", limit)
	}
	d, place := c.sorted()
	for i, n := range numbers {
		if n >= 0 {
			numbers[i] = place[n]
			if k.weightOf(i) > 0 {
				d.Count[place[n]]++
			}
		}
	}
	return d, nil
}

// features packs the features. If they are not copied, it returns the array that has them,
// which the caller owns; otherwise it returns nil. width is the length of ragged vectors.
func (k *packer) features(width int) (raw arrow.Array, err error) {
	p := k.plan
	k.out.d = p.dim
	switch p.kind {
	case raggedRows:
		k.out.d = max(0, width)
	case sparseRows:
		err = k.sparse()
	}
	if err != nil {
		return nil, err
	}
	if p.kind != sparseRows && int64(k.out.n)*int64(k.out.d) > math.MaxInt32 {
		return nil, fmt.Errorf("a shard has %d rows of %d features, which is more than 2^31 values: cut the data into more shards", k.out.n, k.out.d)
	}
	switch p.kind {
	case separate:
		err = k.separate()
	case denseRows, raggedRows:
		if raw = k.inOnePiece(); raw == nil {
			k.transpose()
		}
	}
	if err == nil {
		err = k.codes()
	}
	if err != nil && raw != nil {
		raw.Release()
		raw = nil
	}
	return raw, err
}

// column returns the packed values of a dense feature.
func (k *packer) column(feature int) []float32 {
	return k.out.values[feature*k.out.n : (feature+1)*k.out.n : (feature+1)*k.out.n]
}

// separate packs features that are separate columns. Texts are packed as their indices in a
// dictionary.
func (k *packer) separate() error {
	k.makeValues(k.out.n * k.out.d)
	var numbers []int32
	for j, at := range k.plan.features {
		to := k.column(j)
		if k.plan.text[j] {
			if numbers == nil {
				numbers = make([]int32, k.out.n)
			}
			d, err := k.dictionary(at, numbers, MaxCategories)
			if err != nil {
				return tooManyCategories(k.plan.describe(j))
			}
			k.out.dictionaries = append(k.out.dictionaries, d)
			for i, n := range numbers {
				if to[i] = float32(n); n < 0 {
					to[i] = float32(math.NaN())
				}
			}
			continue
		}
		k.each(at, func(arr arrow.Array, from, end, out int) {
			if doubles, ok := arr.(*array.Float64); ok && arr.NullN() == 0 {
				for i, v := range doubles.Float64Values()[from:end] {
					to[out+i] = Single(v)
				}
				return
			}
			for i := from; i < end; i++ {
				to[out+i-from] = Single(numberAt(arr, i))
			}
		})
	}
	return nil
}

// inOnePiece sets out.raw and returns the array of the values of dense rows, which the caller
// owns, if all batches are contiguous in memory, like slices of one batch. Otherwise it returns
// nil.
func (k *packer) inOnePiece() arrow.Array {
	if !k.whole || k.plan.kind != denseRows || k.out.d == 0 {
		return nil
	}
	var first *array.Float64
	var at int
	var all []float64
	for _, rec := range k.batches {
		list := rec.Column(k.plan.vector).(*array.FixedSizeList)
		values, ok := list.ListValues().(*array.Float64)
		if !ok || list.NullN() > 0 {
			return nil
		}
		lo, _ := list.ValueOffsets(0)
		_, hi := list.ValueOffsets(list.Len() - 1)
		part := values.Float64Values()[lo:hi]
		switch {
		case first == nil:
			first, at, all = values, int(lo), part
		case cap(all)-len(all) >= len(part) && &all[:len(all)+1][len(all)] == &part[0]:
			all = all[:len(all)+len(part)]
		default:
			return nil
		}
	}
	d := first.Data()
	data := array.NewData(d.DataType(), len(all), d.Buffers(), nil, 0, d.Offset()+at)
	defer data.Release()
	joined := array.NewFloat64Data(data)
	k.out.raw = joined.Float64Values()
	return joined
}

// tile is the number of rows that are transposed at a time. It equals the number of float32 in
// a cache line.
const tile = 16

// transpose copies the values of dense rows to out.values, by feature.
func (k *packer) transpose() {
	n, d := k.out.n, k.out.d
	k.makeValues(n * d)
	k.each(k.plan.vector, func(arr arrow.Array, from, to, out int) {
		vectors := batch.VectorsOf(arr)
		if doubles, ok := arr.(*array.FixedSizeList); ok && doubles.ListValues().DataType().ID() == arrow.FLOAT64 {
			lo, _ := doubles.ValueOffsets(from)
			all := doubles.ListValues().(*array.Float64).Float64Values()[lo:]
			for i := from; i < to; i += tile {
				transposeTile(all[(i-from)*d:], min(tile, to-i), d, k.out.values[out+i-from:], n)
			}
			return
		}
		for i := from; i < to; i++ {
			for j, v := range vectors.Dense(i) {
				k.out.values[j*n+out+i-from] = Single(v)
			}
		}
	})
}

// transposeTile transposes a number of rows with d values each. Feature j is copied into
// to[j*n:j*n+rows].
func transposeTile(from []float64, rows, d int, to []float32, n int) {
	for j := range d {
		line := to[j*n : j*n+rows]
		for i := range line {
			line[i] = Single(from[i*d+j])
		}
	}
}
