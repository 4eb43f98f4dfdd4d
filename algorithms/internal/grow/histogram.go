package grow

import (
	"github.com/superstep-ml/superstep/internal/kernel"
)

// histogram computes the sums over the subtask's rows of node n, for all slots. The sum of a
// slot that subtask o owns is written to out[base(o)+slot*width:][:width].
func (s *State) histogram(j *job, n int32, out []int64, base func(owner int) int) {
	rows, all := []int32(nil), !j.listed
	if !all {
		rows = j.list(n)
	}
	for b := range s.data.Blocks {
		s.blockHistogram(j, b, rows, all, out, base)
	}
	for w := range s.data.Wide {
		s.wideHistogram(j, w, rows, all, out, base)
	}
	if s.data.Sparse.RowPtr != nil {
		s.sparseHistogram(j, n, out, base)
	}
}

// blockHistogram computes the histogram of the columns of a block over rows, or over all rows
// of the subtask if all is set.
func (s *State) blockHistogram(j *job, block int, rows []int32, all bool, out []int64, base func(owner int) int) {
	t, stride, bytes := &j.target, s.data.Blocks[block].Stride, s.data.Blocks[block].Bins
	n := len(rows)
	if all {
		n = s.data.Rows
	}
	counted := s.countsRows()
	words := 1
	if t.isWide || counted {
		words = 2
	}
	work := s.work[:words*stride*kernel.HistogramStride]
	step := kernel.PackedRows
	if t.isWide {
		step = max(n, 1)
	}
	for at := 0; at < n || at == 0; at += step {
		hi := min(at+step, n)
		clear(work)
		switch {
		case t.isWide && all:
			kernel.HistogramWide(work, bytes, stride, t.wide)
		case t.isWide:
			kernel.HistogramWideAt(work, bytes, stride, t.wide, rows)
		case counted && all:
			kernel.HistogramCounted(work, bytes[at*stride:], stride, t.packed[at:hi])
		case counted:
			kernel.HistogramCountedAt(work, bytes, stride, t.packed, rows[at:hi])
		case all:
			kernel.HistogramPacked(work, bytes[at*stride:], stride, t.packed[at:hi])
		default:
			kernel.HistogramPackedAt(work, bytes, stride, t.packed, rows[at:hi])
		}
		s.fold(block, work, words, t.isWide, at == 0, out, base)
	}
	if t.isWide && counted {
		s.countRows(block, rows, all, out, base)
	}
}

// fold adds the sums in work, which are sums for the columns of a block, to out. If first is
// set, it instead sets the elements of out to these sums. words is the number of words of a sum
// in work, and wide is set if they are sums of fine pairs.
func (s *State) fold(block int, work []int64, words int, wide, first bool, out []int64, base func(owner int) int) {
	for _, r := range s.slots.runs {
		if r.block != block {
			continue
		}
		from := work[words*(r.column*kernel.HistogramStride+r.from):][:words*r.n]
		to := out[base(r.owner)+r.slot*s.width:][:r.n*s.width]
		if first {
			clear(to)
		}
		switch {
		case words == 1:
			kernel.FoldPairs(to, from)
		case !wide:
			for i := 0; i < r.n; i++ {
				g, h := kernel.Unpack(from[2*i])
				to[3*i] += g
				to[3*i+1] += h
				to[3*i+2] += from[2*i+1]
			}
		default:
			w := s.width
			for i := 0; i < r.n; i++ {
				to[w*i] += from[2*i]
				to[w*i+1] += from[2*i+1]
			}
		}
	}
}

// makeOnes sets s.ones to a packed pair that counts 1 for each row. A sum of these pairs is a
// number of rows.
func (s *State) makeOnes() {
	for len(s.ones) < s.data.Rows {
		s.ones = append(s.ones, 1)
	}
}

// countRows adds the row counts of the bins of a block to the sums in out.
func (s *State) countRows(block int, rows []int32, all bool, out []int64, base func(owner int) int) {
	stride, bytes := s.data.Blocks[block].Stride, s.data.Blocks[block].Bins
	s.makeOnes()
	work := s.work[:stride*kernel.HistogramStride]
	clear(work)
	if all {
		kernel.HistogramPacked(work, bytes, stride, s.ones[:s.data.Rows])
	} else {
		kernel.HistogramPackedAt(work, bytes, stride, s.ones, rows)
	}
	for _, r := range s.slots.runs {
		if r.block == block {
			to := out[base(r.owner)+r.slot*s.width:][:r.n*s.width]
			for i, v := range work[r.column*kernel.HistogramStride+r.from:][:r.n] {
				to[s.width*i+s.width-1] += v
			}
		}
	}
}

// sparseHistogram computes the sums of the sparse features for node n.
func (s *State) sparseHistogram(j *job, n int32, out []int64, base func(owner int) int) {
	s.listRows(j)
	rows := j.list(n)
	if !j.target.isWide {
		s.packedSlots(j, rows, out, base)
		if s.countsRows() {
			s.countSlots(rows, out, base)
		}
		return
	}
	s.eachOwned(out, base, func(_ int, to []int64) { clear(to) })
	w, wide, counted := s.width, j.target.wide, s.countsRows()
	sparse := &s.data.Sparse
	for _, row := range rows {
		g, h := wide[2*int(row)], wide[2*int(row)+1]
		owner, at := 0, base(0)
		for _, slot := range sparse.Slots[sparse.RowPtr[row]:sparse.RowPtr[row+1]] {
			for int(slot) >= s.slots.cut[owner+1] {
				owner++
				at = base(owner)
			}
			sum := out[at+int(slot)*w:][:w]
			sum[0] += g
			sum[1] += h
			if counted {
				sum[2]++
			}
		}
	}
}
