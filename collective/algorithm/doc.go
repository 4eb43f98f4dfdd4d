// Package algorithm generates collective programs with the classic algorithms for each
// collective. Each algorithm has a file, which begins with a description and the source of the
// algorithm. Between them, a table has the steps (the length of the longest chain of messages
// that wait for each other), the number of elements that rank r sends, the scratch memory of a
// rank in elements, and the expression tree of reductions, called canonical if
// program.Program's CanonicalTree holds. There p is the number of ranks and n the number of
// elements of the data.
//
//	a, err := algorithm.Find(program.AllReduce, "direct")
//	pr := algorithm.Params{P: 8}
//	err = a.Supports(pr)
//	part := a.Generate(pr, rank) // the program of this rank, in time proportional to its length
//
// Generators are pure functions. Package check proves the claims of generated programs. The
// tests do so for many numbers of ranks.
package algorithm
