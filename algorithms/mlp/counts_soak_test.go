//go:build soak

package mlp_test

// The comparison runs on all reference networks of scikit-learn.
const comparedNetworks = 4
