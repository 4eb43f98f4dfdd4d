package grow

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// sumRoots sums the pairs (gradient, hessian) of the subtask's rows in the bag of each tree,
// and counts these rows.
func (s *State) sumRoots() error {
	for i, j := range s.active() {
		t := &j.target
		if t.uneven([2]int64(s.spreads[2*i:]), s.all) {
			t.widen()
		}
		if s.learns {
			t.square(s.all)
		}
		j.unit = t.coarse
		at := len(s.buffers.counts)
		for range s.rootWords() {
			s.buffers.counts = append(s.buffers.counts, 0)
		}
		out := s.buffers.counts[at:]
		n := s.data.Rows
		if j.bagged {
			n = len(j.rows)
		}
		out[s.width] = int64(n)
		if s.countsRows() {
			out[2] = int64(n)
		}
		if s.learns {
			out[s.width+1] = j.sumSquares()
		}
		if !j.bagged && !t.isWide {
			out[0], out[1] = sumPacked(t.packed)
			continue
		}
		for i := range n {
			row := int32(i)
			if j.bagged {
				row = j.rows[i]
			}
			if err := s.addRow(j, row, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// rootWords returns the number of words for a root: its sums, its number of rows and, if
// State.learns is set, its sum of squares.
func (s *State) rootWords() int {
	if s.learns {
		return s.width + 2
	}
	return s.width + 1
}

// sumSquares returns the sum of target.squares over the subtask's rows in the bag. It skips
// rows that are out of range, for which addRow returns an error.
func (j *job) sumSquares() int64 {
	if !j.bagged {
		return total(j.target.squares)
	}
	var sum int64
	for _, r := range j.rows {
		if uint(r) < uint(len(j.target.squares)) {
			sum += j.target.squares[r]
		}
	}
	return sum
}

// sumPacked returns the sums g of the gradients and h of the hessians in packed pairs.
func sumPacked(pairs []int64) (g, h int64) {
	for len(pairs) > 0 {
		n := min(len(pairs), kernel.PackedRows)
		a, b := kernel.Unpack(total(pairs[:n]))
		g, h, pairs = g+a, h+b, pairs[n:]
	}
	return g, h
}

// addRow adds the pair of a row to out. It returns an error if the subtask does not have the
// row.
func (s *State) addRow(j *job, row int32, out []int64) error {
	if row < 0 || int(row) >= s.data.Rows {
		return fmt.Errorf("grow: row %d is in the bag of tree %d, and the subtask has %d", row, j.number, s.data.Rows)
	}
	g, h := j.target.histogramPair(row)
	out[0] += g
	out[1] += h
	return nil
}

// plantRoots adds the root of each tree. The slice all has the results of sumRoots, summed over
// all subtasks.
func (s *State) plantRoots(all []int64) error {
	s.phase = growing
	for k, j := range s.active() {
		root := j.add(-1, 0, 1, s.width)
		v := &j.nodes[root]
		own := all[k*s.rootWords():][:s.rootWords()]
		copy(j.total(root, s.width), own)
		if v.count = own[s.width]; s.learns {
			v.squares = own[s.width+1]
		}
		v.rows = s.data.Rows
		if j.bagged {
			v.rows, j.listed = len(j.rows), true
		}
		j.leaves = 1
		if s.worthLooking(j, root) && len(s.usable) > 0 {
			s.pending = append(s.pending, build{task{int32(k), root}, -1, true})
		}
	}
	s.endIfDone()
	return nil
}
