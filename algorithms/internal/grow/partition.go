package grow

import (
	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// rule says for each bin of a split's feature whether rows with this bin go left or right.
type rule struct {
	feature     int32
	place       int32
	missingLeft bool
	categorical bool
	set         binSet
}

// rule returns the rule of the split p. The rule and p share the set.
func (p *split) rule() rule {
	return rule{p.feature, p.place, p.missingLeft, p.categorical, p.set}
}

// left reports whether rows with the given bin go left. bins is the number of the feature's
// bins for values. The bin with the number bins is the bin of missing values.
func (r *rule) left(bin, bins int) bool {
	switch {
	case bin == bins:
		return r.missingLeft
	case r.categorical:
		return r.set.has(bin)
	}
	return bin <= int(r.place)
}

// table returns, for each byte value of the feature's column, 1 if rows with this byte go left,
// else 0.
func (r *rule) table(l *bins.Layout) (t [256]byte) {
	f := &l.Features[r.feature]
	slot := l.Columns[f.Column].Slot
	rest := f.Implicit >= 0 && r.left(f.Implicit, f.Bins)
	for b := range t {
		left := rest
		if at := slot + b; at >= f.Slot && at < f.Slot+f.Stored() {
			left = r.left(f.BinOfSlot(at), f.Bins)
		}
		if left {
			t[b] = 1
		}
	}
	return t
}

// binTable returns, for each bin, 1 if rows with the bin go left, else 0. bins is as in left.
func (r *rule) binTable(bins int) (t [256]byte) {
	for bin := range bins + 1 {
		if r.left(bin, bins) {
			t[bin] = 1
		}
	}
	return t
}

// partition reorders rows so that the rows that go left come first, and returns the number of
// these rows. The partition is stable.
func (s *State) partition(r *rule, rows []int32) int {
	if len(rows) == 0 {
		return 0
	}
	s.spare = kernel.Sized(s.spare, len(rows))
	d := s.data
	f := &d.Layout.Features[r.feature]
	left := 0
	if wide := d.Layout.WideColumn(int(r.feature)); wide >= 0 {
		left = r.partitionWide(rows, d.Wide[wide], f.Bins, s.spare)
	} else if f.Column >= 0 {
		bytes, stride := s.column(f.Column, len(rows))
		table := r.table(d.Layout)
		left = kernel.PartitionRows(rows, bytes, stride, &table, rows, s.spare)
	} else {
		left = s.partitionSparse(r, rows)
	}
	copy(rows[left:], s.spare[:len(rows)-left])
	return left
}

// partitionWide partitions rows by a column of two-byte values. It moves the rows that go left
// to the front of the slice rows, and copies the other rows to spare. It returns how many rows
// go left. bins is as in left.
func (r *rule) partitionWide(rows []int32, column []uint16, bins int, spare []int32) (left int) {
	right := spare[:0]
	for _, row := range rows {
		if r.left(int(column[row]), bins) {
			rows[left] = row
			left++
		} else {
			right = append(right, row)
		}
	}
	return left
}

// copiedBytes is the largest total size of the copies of columns. The copies together are never
// larger than the blocks of columns.
const copiedBytes = 512 << 20

// column returns the bytes of the column with the given number, and the distance in bytes
// between the values of successive rows. rows is the number of rows for which the caller will
// read the column. Once a column has been read for more rows than the subtask has, the method
// makes a contiguous copy of the column, so that further splits read one byte per row instead
// of one cache line. If the blocks are on disk, no column is copied.
func (s *State) column(number, rows int) ([]byte, int) {
	c := &s.data.Layout.Columns[number]
	if s.copies == nil {
		s.copies, s.read = make([][]byte, len(s.data.Layout.Columns)), make([]int, len(s.data.Layout.Columns))
	}
	if s.copies[number] != nil {
		return s.copies[number], 1
	}
	block := &s.data.Blocks[c.Block]
	s.read[number] += rows
	if s.read[number] <= s.data.Rows || block.Stride == 1 || s.data.OnDisk || s.copied+s.data.Rows > copiedBytes {
		return block.Bins[c.Offset:], block.Stride
	}
	s.copied += s.data.Rows
	own := make([]byte, s.data.Rows)
	for i, at := 0, c.Offset; i < len(own); i, at = i+1, at+block.Stride {
		own[i] = block.Bins[at]
	}
	s.copies[number] = own
	return own, 1
}

// listRows sets j.rows to all rows of the subtask, which are the rows of the root, unless the
// rows are already listed or SetRows was called.
func (s *State) listRows(j *job) {
	if !j.listed && !j.bagged {
		j.rows = kernel.Sized(j.rows, s.data.Rows)
		for i := range j.rows {
			j.rows[i] = int32(i)
		}
	}
	j.listed = true
}
