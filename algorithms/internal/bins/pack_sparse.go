package bins

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// sparse packs sparse rows by feature.
func (k *packer) sparse() error {
	entries := 0
	for _, r := range k.runs {
		entries += entriesOf(k.batches[r.batch].Column(k.plan.vector), r.from, r.to)
	}
	if entries > math.MaxInt32/4 {
		return fmt.Errorf("a shard has %d entries: cut the data into more shards", entries)
	}
	at := make([]uint64, 0, entries) // feature in the upper half, index of the entry in the lower half
	rowOf := make([]int32, 0, entries)
	values := make([]float32, 0, entries)
	k.each(k.plan.vector, func(arr arrow.Array, from, to, out int) {
		vectors := batch.VectorsOf(arr)
		for i := from; i < to; i++ {
			if vectors.Null(i) {
				continue
			}
			indices, vals := vectors.Sparse(i)
			for e, index := range indices {
				at = append(at, uint64(index)<<32|uint64(len(at)))
				rowOf = append(rowOf, int32(out+i-from))
				values = append(values, Single(vals[e]))
				k.out.d = max(k.out.d, int(index)+1)
			}
		}
	})
	at, _ = sortPairs(at, make([]uint64, len(at)))
	k.makeValues(len(at))
	k.makeRows(len(at))
	for i, w := range at {
		if feature := int32(w >> 32); len(k.out.feature) == 0 || k.out.feature[len(k.out.feature)-1] != feature {
			k.out.feature = append(k.out.feature, feature)
			k.out.start = append(k.out.start, int32(i))
		}
		from := uint32(w)
		k.out.values[i], k.out.row[i] = values[from], rowOf[from]
	}
	k.out.start = append(k.out.start, int32(len(at)))
	return nil
}

// entriesOf returns the number of entries of rows [from, to) of a sparse column.
func entriesOf(column arrow.Array, from, to int) int {
	n := 0
	vectors := batch.VectorsOf(column)
	for i := from; i < to; i++ {
		if !vectors.Null(i) {
			indices, _ := vectors.Sparse(i)
			n += len(indices)
		}
	}
	return n
}

// codes appends a dictionary for each feature that is categorical and not text.
func (k *packer) codes() error {
	for _, feature := range k.plan.categories() {
		if _, text := k.plan.categorical(feature); text || k.plan.lenient {
			continue
		}
		var count []int64
		if feature < k.out.d || k.plan.kind == sparseRows {
			count = make([]int64, MaxCategory+1)
			seen := make([]bool, MaxCategory+1)
			k.out.column(k.plan.kind, feature, func(row int, x float32) {
				if x == x {
					seen[int(x)] = true
					if k.weightOf(row) > 0 {
						count[int(x)]++
					}
				}
			})
			k.zeroCodes(feature, count, seen)
			k.out.dictionaries = append(k.out.dictionaries, codeDictionary(count, seen))
			continue
		}
		k.out.dictionaries = append(k.out.dictionaries, dictionary{})
	}
	return nil
}

// zeroCodes counts the rows that do not store a feature as rows of category 0, if absent values
// are 0.
func (k *packer) zeroCodes(feature int, count []int64, seen []bool) {
	if k.plan.kind != sparseRows || !k.plan.options.AbsentIsZero {
		return
	}
	has := make([]bool, k.out.n)
	k.out.column(k.plan.kind, feature, func(row int, _ float32) { has[row] = true })
	for row, ok := range has {
		if !ok {
			seen[0] = true
			if k.weightOf(row) > 0 {
				count[0]++
			}
		}
	}
}

// codeDictionary returns the dictionary of the codes for which seen[code] is true, with their
// counts.
func codeDictionary(count []int64, seen []bool) dictionary {
	d := dictionary{}
	for code, ok := range seen {
		if ok {
			d.Keys = append(d.Keys, codeKey(int32(code)))
			d.Count = append(d.Count, count[code])
		}
	}
	return d
}

// column calls f for each row that stores a feature, with the value of the feature.
func (p *packed) column(kind layoutKind, feature int, f func(row int, x float32)) {
	switch {
	case kind == sparseRows:
		_, rows, values := p.entries(int32(feature))
		for i, x := range values {
			f(int(rows[i]), x)
		}
	case p.raw != nil:
		for i := range p.n {
			f(i, Single(p.raw[i*p.d+feature]))
		}
	default:
		for i, x := range p.values[feature*p.n : (feature+1)*p.n] {
			f(i, x)
		}
	}
}

// entries returns the rows and the values of the entries of a feature of sparse rows. at is the
// index of the feature in p.feature, or −1 if it has no entries.
func (p *packed) entries(feature int32) (at int, rows []int32, values []float32) {
	lo, hi := 0, len(p.feature)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.feature[mid] < feature {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(p.feature) || p.feature[lo] != feature {
		return -1, nil, nil
	}
	return lo, p.row[p.start[lo]:p.start[lo+1]], p.values[p.start[lo]:p.start[lo+1]]
}
