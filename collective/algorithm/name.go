package algorithm

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseName splits a string such as "torus:4x8" into the name ("torus") and the dimensions (4
// and 8).
func ParseName(s string) (name string, dims []int, err error) {
	name, list, found := strings.Cut(s, ":")
	if !found {
		return name, nil, nil
	}
	for part := range strings.SplitSeq(list, "x") {
		d, err := strconv.Atoi(part)
		if err != nil || d < 1 {
			return "", nil, fmt.Errorf("algorithm %q: %q is no dimension: want NAME or NAME:4x8", s, part)
		}
		dims = append(dims, d)
	}
	return name, dims, nil
}
