//go:build !soak

package mlp_test

// The number of reference networks of scikit-learn in the comparison. With the tag soak it runs
// on all.
const comparedNetworks = 1
