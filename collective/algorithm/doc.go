// Package algorithm generates collective programs: every classic way to carry out
// each collective, one file an algorithm, opening with what it does, its steps and
// bytes, the order of its reductions, and where it comes from.
//
//	a, err := algorithm.Find(program.AllReduce, "direct")
//	pr := algorithm.Params{P: 8}
//	err = a.Supports(pr)
//	part := a.Generate(pr, rank) // this rank's part, in time proportional to it
//
// Generators are pure functions. Package check proves what they claim, for every
// number of ranks that its tests run.
package algorithm
