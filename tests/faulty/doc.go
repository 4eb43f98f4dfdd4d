// Package faulty has only tests. They execute collectives over connections with planned faults
// (mesh.FaultPlan), which are injected above the mesh or on the wire, in memory or over TCP.
//
// Every run must satisfy the following, whatever the fault. Each rank ends within the time in
// which a standstill is detected. A rank that returns no error has exactly the right result.
// All ranks that return an error return the same error, of a documented type. No goroutine is
// left. Each operation of a run has different data, and all messages of a step have the same
// length. So if a message is mistaken for another one, the result is wrong.
//
// These requirements do not include corrupted payloads, which are only detected on the wire and
// with checksums; a separate test covers this. Failing tests print the plan and the run, with
// which the failure can be reproduced.
package faulty
