// Package check proves collective programs: the parts of all ranks fit together, compute their
// collective in the claimed order of operations at the declared cost, and end whatever the
// timing.
//
//	a, _ := algorithm.Find(program.AllReduce, "direct")
//	err := check.Algorithm(a, algorithm.Params{P: 8})
//
// proves the algorithm for eight ranks, whatever the values and, by default, for
// many lengths; [Programs] does so for programs that come from elsewhere.
//
// The programs are run on symbols instead of numbers. Every piece of input is a
// leaf; folding joins two terms into one; equal terms are one number, so that
// comparing results compares whole trees of operations. Messages are handed over
// directly (capacity 0).
//
// One such run suffices. The halves of lanes are sequential processes that receive messages
// from fixed partners in a fixed order. So the messages that each receives, and whether all of
// them end, do not depend on timing; and if they end at capacity 0, they end with any amount of
// buffering. Only accesses to the memory that the halves of a rank share could depend on the
// schedule, and those must be ordered. Each half keeps a vector clock of the parts of
// instructions known to be complete. An access that conflicts with an earlier one not in its
// clock is a race, whichever of the two came first in this run.
package check
