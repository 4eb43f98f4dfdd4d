//go:build !soak

package algorithm_test

// soakMoving says whether full counts are wanted.
const soakMoving = false
