//go:build !soak

package algorithm_test

// soakReducing says whether full counts are wanted.
const soakReducing = false
