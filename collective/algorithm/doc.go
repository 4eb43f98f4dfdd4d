// Package algorithm generates collective programs with the classic algorithms for each
// collective. Each algorithm has a file, which begins with a description, the steps and bytes,
// the order of its reductions, and its source.
//
//	a, err := algorithm.Find(program.AllReduce, "direct")
//	pr := algorithm.Params{P: 8}
//	err = a.Supports(pr)
//	part := a.Generate(pr, rank) // this rank's part, in time proportional to it
//
// Generators are pure functions. Package check proves their claims, for every number of ranks
// in its tests.
package algorithm
