// Package check proves collective programs: that the parts of all ranks fit
// together, compute the collective that they say they do, in the order of
// operations that they claim, at the cost that they declare, and end whatever
// the timing.
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
// One such run suffices. The halves of lanes are sequential processes that take
// messages from fixed partners in a fixed order, so what each of them sees, and
// whether all of them end, depends on no timing; and if they end at capacity 0
// they do with any amount of buffering. What a schedule could change are accesses
// to the memory that the halves of a rank share, and those must be ordered: each
// half keeps a vector clock of the parts of instructions known to be complete,
// and an access that conflicts with an earlier one not in its clock is a race,
// whichever of the two this run happened to make first.
package check
