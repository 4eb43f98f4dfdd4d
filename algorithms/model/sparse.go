package model

import "fmt"

// CheckSparse tells what is wrong with the sparse vector in a cell. The vector must have as
// many indices as values. The indices must ascend, and lie between 0 and size-1, where size is
// what the reader of the cell expects. The size that the vector declares must be the same,
// unless it is 0, which leaves it open. A negative size stands for any: then only the declared
// size bounds the indices. A cell of another kind passes.
//
// Callers can put anything into cells, so code that computes with indices calls CheckSparse
// first. Without an error it allocates nothing.
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
	// The last index is the largest.
	switch {
	case size >= 0 && int(last) >= size:
		return fmt.Errorf("it has a component %d, the model was trained on %d components", last, size)
	case c.Size != 0 && int(last) >= c.Size:
		return fmt.Errorf("it has a component %d and declares %d components", last, c.Size)
	}
	return nil
}

// misplaced returns the error for index j after the index last; -1 stands for no index before.
func (c *Cell) misplaced(last, j int32) error {
	switch {
	case j < 0:
		return fmt.Errorf("it has a component %d: indices begin at 0", j)
	case j == last:
		return fmt.Errorf("it has component %d twice: want each index once, ascending", j)
	}
	return fmt.Errorf("component %d follows component %d: want ascending indices", j, last)
}
