//go:build soak

package optim_test

// everyCombination says whether tests try every combination.
const everyCombination = true
