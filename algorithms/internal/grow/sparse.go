package grow

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// byFeature has the entries of sparse rows by feature. For each feature it has the rows that
// store a bin of the feature, in ascending order, and the stored bins.
type byFeature struct {
	start []int64 // index of the first entry of each feature of the layout, followed by the total number of entries
	rows  []int32
	bins  []byte
	dense []byte // buffer: the bins of one feature in all rows
	table [256]byte
}

// fewRows returns the number of rows up to which a binary search per row is faster than
// expanding a feature's bins for all rows of the subtask.
func fewRows(all int) int { return all / 64 }

// entries returns the entries of sparse rows by feature. The first call computes them.
func (s *State) entries() *byFeature {
	if s.sparse != nil {
		return s.sparse
	}
	d := s.data
	owner := make([]int32, d.Layout.Slots-d.Layout.ColumnSlots) // slot, counted from the first sparse slot -> feature
	for f := range d.Layout.Features {
		feature := &d.Layout.Features[f]
		if feature.Slot >= d.Layout.ColumnSlots {
			for i := range feature.Stored() {
				owner[feature.Slot-d.Layout.ColumnSlots+i] = int32(f)
			}
		}
	}
	e := &byFeature{start: make([]int64, len(d.Layout.Features)+1), rows: make([]int32, len(d.Sparse.Slots)), bins: make([]byte, len(d.Sparse.Slots))}
	for _, slot := range d.Sparse.Slots {
		e.start[owner[int(slot)-d.Layout.ColumnSlots]+1]++
	}
	for f := 1; f < len(e.start); f++ {
		e.start[f] += e.start[f-1]
	}
	next := slices.Clone(e.start)
	for row := range int32(d.Rows) {
		for _, slot := range d.Sparse.Slots[d.Sparse.RowPtr[row]:d.Sparse.RowPtr[row+1]] {
			f := owner[int(slot)-d.Layout.ColumnSlots]
			at := next[f]
			next[f]++
			e.rows[at], e.bins[at] = row, byte(d.Layout.Features[f].BinOfSlot(int(slot)))
		}
	}
	s.sparse = e
	return e
}

// partitionSparse partitions rows by a sparse feature. It moves the rows that go left to the
// front of the slice rows, and copies the other rows to s.spare. It returns how many rows go
// left.
func (s *State) partitionSparse(r *rule, rows []int32) (left int) {
	d := s.data
	f := &d.Layout.Features[r.feature]
	if len(rows) <= fewRows(d.Rows) || len(d.Sparse.Slots) > math.MaxInt32 {
		return r.partition(rows, f, d, s.spare)
	}
	e := s.entries()
	e.dense = kernel.Sized(e.dense, d.Rows)
	fill(e.dense, byte(f.Implicit))
	own := e.bins[e.start[r.feature]:e.start[r.feature+1]]
	for i, row := range e.rows[e.start[r.feature]:e.start[r.feature+1]] {
		e.dense[row] = own[i]
	}
	e.table = r.binTable(f.Bins)
	return kernel.PartitionRows(rows, e.dense, 1, &e.table, rows, s.spare)
}

// fill sets all bytes of b to v.
func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
