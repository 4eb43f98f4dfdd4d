// Package jobmanager is the server of a cluster: it hears task managers and clients
// by gRPC, lets its core decide, and keeps executables, results, logs and the history
// of jobs.
//
//	m, err := jobmanager.New(ctx, jobmanager.Config{Dir: dir, ...})
//	if err != nil { ... }
//	defer m.Close()
//	fmt.Println("serving on", m.Address())
//	return m.Wait()
//
// Whatever happens becomes an event of package core. The effects that core returns are carried
// out in order, under one lock. Nothing under that lock waits for a network or a disk.
//
//	task managers ──► connection.go ─┐                        ┌─► connection.go: a queue and a writer each
//	deliver.go ◄── rows and logs     ├─► core.Step ─► effects ┼─► recorder.go: history, then followers
//	clients ──► submit, clients.go ──┘        ▲               └─► compile, forget
//	                 follow.go, logs.go       └── ticks, Persisted, Compiled
//
// The work directory has:
//
//	history.db          jobs, plans and outcomes (bbolt); its lock is that of the directory
//	artifacts/HASH      executables, by SHA-256
//	jobs/ID/events      what the client of a job is sent: rows, text, states (spool.go)
//	jobs/ID/log-W-POS   the last of what worker W wrote (worklog.go)
//
// A client that follows a job reads the job's spool at its own pace: it costs a file handle,
// and holds up neither the job nor other clients. A state is on disk, with everything before
// it, before any client is told of it: a client that has heard of its job's end hears the same
// after a restart.
//
// Everything that arrives is bounded: messages by package wire, executables, results
// and logs by Config, queues by what a task manager may leave unread, waits by
// Config.WriteTimeout.
package jobmanager
