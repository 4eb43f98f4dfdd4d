package model

import "fmt"

// Features reads the features of single rows for models that implement Bind: those of one
// vector column, or of several columns joined in their order.
type Features struct {
	cells   []int
	names   []string
	scratch int
}

// FeatureRow is the features of a row: Dense, or, where Sparse, ascending Indices and their
// Values. It is good until the row changes.
type FeatureRow struct {
	Sparse  bool
	Dense   []float64
	Indices []int32
	Values  []float64
}

// BindFeatures finds the columns of features in a layout. Several columns are bools,
// numbers and dense vectors.
func BindFeatures(l *Layout, columns []Input) (*Features, error) {
	f := &Features{}
	for _, c := range columns {
		cell, err := l.Find(c.Column)
		if err != nil {
			return nil, err
		}
		f.cells, f.names = append(f.cells, cell), append(f.names, c.Column)
	}
	f.scratch = l.Add("")
	return f, nil
}

// Read returns the features of a row. ok is false where one of the columns is null. It
// allocates nothing once the row has had as many features.
func (f *Features) Read(row []Cell) (features FeatureRow, ok bool, err error) {
	if len(f.cells) == 1 {
		switch c := &row[f.cells[0]]; c.Kind {
		case DenseCell:
			return FeatureRow{Dense: c.Values}, true, nil
		case SparseCell:
			if err := c.CheckSparse(-1); err != nil {
				return FeatureRow{}, false, fmt.Errorf("column %q: %w", f.names[0], err)
			}
			return FeatureRow{Sparse: true, Indices: c.Indices, Values: c.Values}, true, nil
		}
	}
	n := 0
	for i, cell := range f.cells {
		switch c := &row[cell]; c.Kind {
		case NullCell:
			return FeatureRow{}, false, nil
		case DenseCell:
			n += len(c.Values)
		case BoolCell, IntCell, FloatCell:
			n++
		default:
			return FeatureRow{}, false, fmt.Errorf("column %q is %s: want a number or a vector", f.names[i], c.Kind)
		}
	}
	joined := row[f.scratch].MakeDense(n)
	at := 0
	for _, cell := range f.cells {
		c := &row[cell]
		if v, number := c.Number(); number {
			joined[at] = v
			at++
			continue
		}
		at += copy(joined[at:], c.Values)
	}
	return FeatureRow{Dense: joined}, true, nil
}
