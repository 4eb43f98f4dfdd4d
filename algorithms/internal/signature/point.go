package signature

import (
	"fmt"
	"slices"
)

// Point has the features of a row. If Indices is nil, Values has all features. Otherwise the
// row is sparse: Values[q] is the value of the feature Indices[q], and all other features are
// 0.
type Point struct {
	Indices []int32
	Values  []float64
}

// Dense returns a point with the given components, which are borrowed.
func Dense(values []float64) Point { return Point{Values: values} }

// Sparse returns a point with the given entries, which are borrowed.
func Sparse(indices []int32, values []float64) Point {
	if indices == nil {
		indices = []int32{}
	}
	return Point{indices, values}
}

// Place returns the index in columns of the feature whose value is Values[q], or −1 if columns
// does not have the feature. columns must ascend; nil means all features.
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

// Fits reports whether the point is a valid row of dim features. A dense point must have dim
// values. A sparse point must have as many indices as values, and the indices must ascend and
// be in 0..dim−1.
func (p Point) Fits(dim int) bool {
	if p.Indices == nil {
		return len(p.Values) == dim
	}
	return p.Problem(dim) == ""
}

// Problem returns a description of the first error in the indices of a sparse point of dim
// features, or "" if there is no error.
func (p Point) Problem(dim int) string {
	if len(p.Indices) != len(p.Values) {
		return fmt.Sprintf("has %d indices and %d values", len(p.Indices), len(p.Values))
	}
	if due := OutOfOrder(p.Indices, dim); due != "" {
		return "has the index " + due
	}
	return ""
}

// Ascending reports whether indices are strictly ascending and in 0..dim−1.
func Ascending(indices []int32, dim int) bool { return OutOfOrder(indices, dim) == "" }

// OutOfOrder returns a description of the first index that is not above its predecessor or not
// in 0..dim−1. It returns "" if there is no such index.
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
