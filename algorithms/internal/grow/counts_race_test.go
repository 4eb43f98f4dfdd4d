//go:build !soak && race

package grow

// referenceProblems is the number of random problems, fewer where each takes long.
const referenceProblems = 60
