// Package faulty holds nothing but tests: programs of collectives run over
// connections that misbehave by plan (mesh.FaultPlan), above the mesh and on the wire,
// in memory and over TCP.
//
// What must hold of every run, whatever the fault: each rank ends, within the time in
// which a standstill is noticed; a rank that returns no error has exactly the right
// result; ranks that return an error return the same one, which is of a kind that
// callers know; and no goroutine is left. Each operation of a run has other data, and
// all messages of a step are of equal lengths, so that a message taken for another one
// shows.
//
// Corrupted payloads are out of this: they are noticed on the wire, and with checksums
// only, which is tested apart. Failures print the plan and the run that show them again.
package faulty
