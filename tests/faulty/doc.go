// Package faulty contains only tests. They execute collectives over connections with planned
// faults (mesh.FaultPlan). The faults are injected above the mesh or on the wire, in memory or
// over TCP.
//
// Every run must satisfy the following requirements, whatever the fault. Each rank ends within
// the time in which a standstill is detected. A rank that returns no error has exactly the
// right result. All ranks that return an error return the same error, of a documented type. No
// goroutine is left. Each operation of a run has different data, and all messages of a step
// have the same length. So if a rank uses one message in place of another message, the result
// is wrong.
//
// These requirements do not include corrupted payloads. They are detected only on the wire and
// with checksums; TestPayloadsNeedChecksums covers them. Failing tests print the fault plan and
// the scenario, with which the failure can be reproduced.
package faulty
