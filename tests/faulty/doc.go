// Package faulty has only tests: programs of collectives run over connections with planned
// faults (mesh.FaultPlan), above the mesh and on the wire, in memory and over TCP.
//
// The following must hold of every run, whatever the fault. Each rank ends within the time in
// which a standstill is noticed. A rank that returns no error has exactly the right result.
// Ranks that return an error return the same one, of a kind that callers know. No goroutine is
// left. Each operation of a run has other data, and all messages of a step have equal lengths,
// so that a message taken for another one is noticed.
//
// Corrupted payloads are not part of this. They are noticed only on the wire and only with
// checksums, which has its own test. Failures print the plan and the run that reproduce them.
package faulty
