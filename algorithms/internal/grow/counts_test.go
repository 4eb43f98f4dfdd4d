//go:build !soak && !race

package grow

// referenceProblems is the number of random problems.
const referenceProblems = 300
