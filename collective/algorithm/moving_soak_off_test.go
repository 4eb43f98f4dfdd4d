//go:build !soak

package algorithm_test

// soakMoving says whether the tests run with the large numbers of ranks of a soak test.
const soakMoving = false
