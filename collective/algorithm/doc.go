// Package algorithm generates collective programs with the classic algorithms for each
// collective. Each algorithm has a file with a comment that describes the algorithm and gives
// its source. A table in the comment has these entries: the steps are the length of the longest
// chain of messages that wait for each other; "sent by rank r" is the number of elements that
// rank r sends; the scratch memory of a rank is given in elements; the order is the expression
// tree of reductions, which is called canonical if it fulfils CanonicalTree of program.Program.
// In the comments, p is the number of ranks and n is the number of elements of the data.
//
//	a, err := algorithm.Find(program.AllReduce, "direct")
//	pr := algorithm.Params{P: 8}
//	err = a.Supports(pr)
//	part := a.Generate(pr, rank) // the program of this rank, in time proportional to its length
//
// Generators are pure functions. Package check proves the claims of generated programs. The
// tests do so for many numbers of ranks.
package algorithm
