//go:build !soak && race

package grow

// referenceProblems is the number of random problems; they are few, as each takes long here.
const referenceProblems = 60
