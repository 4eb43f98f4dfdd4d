//go:build soak

package mlp_test

// All the networks of scikit-learn are compared with.
const comparedNetworks = 4
