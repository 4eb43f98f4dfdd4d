//go:build soak

package algorithm_test

// soakMoving says whether to run the full counts.
const soakMoving = true
