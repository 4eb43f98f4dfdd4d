package signature

import (
	"fmt"
	"slices"
)

// Point is the features of a row: dense, or, with Indices that are not nil, the entries
// that are not 0.
type Point struct {
	Indices []int32
	Values  []float64
}

// Dense returns a point of all its components, which are borrowed.
func Dense(values []float64) Point { return Point{Values: values} }

// Sparse returns a point of the given entries, which are borrowed.
func Sparse(indices []int32, values []float64) Point {
	if indices == nil {
		indices = []int32{}
	}
	return Point{indices, values}
}

// Place returns where the feature of value q stands among columns, which ascend, −1 if it is none
// of them. Nil stands for all features.
func (p Point) Place(q int, columns []int32) int {
	j := q
	if p.Indices != nil {
		j = int(p.Indices[q])
	}
	if columns == nil {
		return j
	}
	if at, ok := slices.BinarySearch(columns, int32(j)); ok {
		return at
	}
	return -1
}

// Fits tells whether a point has dim components, or as many indices as values, which
// ascend below dim.
func (p Point) Fits(dim int) bool {
	if p.Indices == nil {
		return len(p.Values) == dim
	}
	return p.Problem(dim) == ""
}

// Problem tells what is wrong with the indices of a sparse point of dim components, "" if nothing.
func (p Point) Problem(dim int) string {
	if len(p.Indices) != len(p.Values) {
		return fmt.Sprintf("has %d indices and %d values", len(p.Indices), len(p.Values))
	}
	if due := OutOfOrder(p.Indices, dim); due != "" {
		return "has the index " + due
	}
	return ""
}

// Ascending tells whether indices ascend from 0 to below dim.
func Ascending(indices []int32, dim int) bool { return OutOfOrder(indices, dim) == "" }

// OutOfOrder tells of the first index that does not ascend from 0 to below dim, "" if all do.
func OutOfOrder(indices []int32, dim int) string {
	last := int32(-1)
	for _, j := range indices {
		if j <= last || int(j) >= dim {
			return fmt.Sprintf("%d where one above %d and below %d is due", j, last, dim)
		}
		last = j
	}
	return ""
}
