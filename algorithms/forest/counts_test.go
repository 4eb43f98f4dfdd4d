//go:build !soak

package forest

// referenceTrials is how many problems are compared with the reference.
const referenceTrials = 300
