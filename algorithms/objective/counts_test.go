//go:build !soak

package objective_test

// everyDesign is the stride of the designs with which a loss is tested.
const everyDesign = 3

// thorough says whether every update is tested with every schedule, and long parameters with
// every method.
const thorough = false
