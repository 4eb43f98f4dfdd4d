// Package check proves that the programs of all ranks together compute their collective, in the
// claimed order of operations and at the declared cost, and that they end, whatever the timing.
//
//	a, _ := algorithm.Find(program.AllReduce, "direct")
//	err := check.Algorithm(a, algorithm.Params{P: 8})
//
// proves the algorithm for eight ranks, whatever the values and, by default, for
// many lengths; [Programs] does so for programs that come from elsewhere.
//
// The programs are run on symbols instead of numbers. Every chunk of input is a term, a leaf.
// Folding joins two terms into one. Equal terms have the same id, so that comparing ids
// compares whole trees of operations. Messages are transferred without buffering (capacity 0).
//
// One such run suffices. The halves of lanes are sequential processes that receive messages
// from fixed partners in a fixed order. So the messages that each receives, and whether all of
// them end, do not depend on timing; and if they end at capacity 0, they end with any amount of
// buffering. Only the order of accesses to the memory that the halves of a rank share could
// depend on the schedule. So conflicting accesses must be ordered by the program. Each half
// keeps a vector clock of the parts of instructions known to be complete. An access that
// conflicts with an earlier access which is not in its clock is a race, whichever of the two
// came first in this run.
package check
