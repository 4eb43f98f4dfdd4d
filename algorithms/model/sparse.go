package model

import "fmt"

// CheckSparse returns an error if the sparse vector in a cell is not valid. The vector must
// have as many indices as values. The indices must ascend and be in 0..size-1, where size is
// the size that the reader of the cell expects. The size that the vector declares must equal
// size, or be 0, which means that it declares no size. If size is negative, any declared size
// is accepted, and the indices must be below the declared size unless it is 0. For a cell that
// does not hold a sparse vector, CheckSparse returns nil.
//
// Callers can store any vector in a cell, so code that uses indices calls CheckSparse first. If
// there is no error, CheckSparse does not allocate memory.
func (c *Cell) CheckSparse(size int) error {
	if c.Kind != SparseCell {
		return nil
	}
	switch {
	case len(c.Indices) != len(c.Values):
		return fmt.Errorf("it has %d indices and %d values: want as many of each", len(c.Indices), len(c.Values))
	case c.Size < 0:
		return fmt.Errorf("it declares %d components: want 0 for an open size or a positive number", c.Size)
	case size >= 0 && c.Size != 0 && c.Size != size:
		return fmt.Errorf("it has %d components, the model was trained on %d", c.Size, size)
	}
	last := int32(-1)
	for _, j := range c.Indices {
		if j <= last {
			return c.misplaced(last, j)
		}
		last = j
	}
	// Indices ascend, so the last index is the largest.
	switch {
	case size >= 0 && int(last) >= size:
		return fmt.Errorf("it has a component %d, the model was trained on %d components", last, size)
	case c.Size != 0 && int(last) >= c.Size:
		return fmt.Errorf("it has a component %d and declares %d components", last, c.Size)
	}
	return nil
}

// misplaced returns the error for the index j, which must be greater than last. last is the
// index before j, or -1 if j is the first index.
func (c *Cell) misplaced(last, j int32) error {
	switch {
	case j < 0:
		return fmt.Errorf("it has a component %d: indices begin at 0", j)
	case j == last:
		return fmt.Errorf("it has component %d twice: want each index once, ascending", j)
	}
	return fmt.Errorf("component %d follows component %d: want ascending indices", j, last)
}
