//go:build soak

package objective_test

// everyDesign is how many designs there are between two that a loss is tested with.
const everyDesign = 1

// thorough tests every update with every schedule, and long parameters with every method.
const thorough = true
