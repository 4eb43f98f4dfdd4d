//go:build !soak

package algorithm_test

// soakReducing says whether to run the full counts.
const soakReducing = false
