//go:build soak

package optim_test

// thorough says whether tests try every combination.
const thorough = true
