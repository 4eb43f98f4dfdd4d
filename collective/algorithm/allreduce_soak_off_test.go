//go:build !soak

package algorithm_test

// soakReducing says whether the tests run with the large numbers of ranks of a soak test.
const soakReducing = false
