//go:build !soak

package mlp_test

// How many of the networks of scikit-learn are compared with; counts_soak_test.go has all.
const comparedNetworks = 1
