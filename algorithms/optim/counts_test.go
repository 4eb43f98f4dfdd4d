//go:build !soak

package optim_test

// thorough says whether tests try every combination of what they try.
const thorough = false
