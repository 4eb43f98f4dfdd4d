package model

import "fmt"

// CheckSparse tells what is wrong with the sparse vector in a cell: it must have as many
// indices as values, and the indices must ascend from 0 to below size, which is what the
// reader of the cell expects. The size that the vector declares must be the same, unless
// it is 0, which leaves it open. A negative size stands for any: then only the declared
// one bounds the indices. A cell of another kind is right.
//
// Cells are filled by callers, who can put anything there: whoever computes with indices
// calls it first. It allocates nothing when all is well.
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

// misplaced says why an index cannot be behind another, which is -1 for none.
func (c *Cell) misplaced(last, j int32) error {
	switch {
	case j < 0:
		return fmt.Errorf("it has a component %d: indices begin at 0", j)
	case j == last:
		return fmt.Errorf("it has component %d twice: want each index once, ascending", j)
	}
	return fmt.Errorf("component %d is behind component %d: want ascending indices", j, last)
}
