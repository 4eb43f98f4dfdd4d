// Package jobmanager is the server of a cluster. It serves task managers and clients by gRPC,
// makes its decisions in package core, and stores executables, results, logs and the history of
// jobs.
//
//	m, err := jobmanager.New(ctx, jobmanager.Config{Dir: dir, ...})
//	if err != nil { ... }
//	defer m.Close()
//	fmt.Println("serving on", m.Address())
//	return m.Wait()
//
// Every message and tick becomes an event of package core. The effects that core returns are
// performed in order, under one lock. No code under that lock waits for a network or a disk.
//
//	task managers ──► connection.go ─┐                        ┌─► connection.go: a queue and a writer each
//	deliver.go ◄── rows and logs     ├─► core.Step ─► effects ┼─► recorder.go: history, then followers
//	clients ──► submit, clients.go ──┘        ▲               └─► compile, forget
//	                 follow.go, logs.go       └── ticks, Persisted, Compiled
//
// The work directory has:
//
//	history.db          jobs, plans and outcomes (bbolt); its lock protects the directory
//	artifacts/HASH      executables, by SHA-256
//	jobs/ID/events      the events of a job for its client: rows, text, states (spool.go)
//	jobs/ID/log-W-POS   the last part of the output of worker W (worklog.go)
//
// A client that follows a job reads the job's spool (jobs/ID/events) at its own pace. It needs
// an open file, and delays neither the job nor other clients. A state and all earlier events
// are on disk before the state is sent to any client. So a client that was told that a job has
// ended is told the same after a restart.
//
// All input is bounded: messages by package wire, executables, results and logs by Config,
// queues of messages to a task manager by maxQueued, and waits by Config.WriteTimeout.
package jobmanager
