// Package jobmanager implements the job manager, which is the server of a cluster. It serves
// task managers and clients by gRPC. Package core makes its decisions. The job manager stores
// executables, results, logs and the history of jobs.
//
//	m, err := jobmanager.New(ctx, jobmanager.Config{Dir: dir, ...})
//	if err != nil { ... }
//	defer m.Close()
//	fmt.Println("serving on", m.Address())
//	return m.Wait()
//
// Every message and every tick of the clock is passed to package core as an event. The effects
// that core returns are performed in order, under one lock. No code under that lock waits for a
// network or a disk.
//
//	task managers ──► connection.go ─┐                        ┌─► connection.go: a queue and a writer each
//	deliver.go ◄── rows and logs     ├─► core.Step ─► effects ┼─► recorder.go: history, then followers
//	clients ──► submit, clients.go ──┘        ▲               └─► compile, forget
//	            cordon.go, follow.go, logs.go └── ticks, Persisted, Compiled, Cordoned
//
// The work directory has:
//
//	history.db          jobs, plans, outcomes, cordons, and what it takes to take a job up again
//	                    (bbolt); its lock protects the directory
//	artifacts/HASH      executables, by SHA-256
//	jobs/ID/events      the events of a job for its client: rows, text, states (spool.go)
//	jobs/ID/log-W-POS   the last part of the output of worker W (worklog.go)
//
// Events of a job are sent to a client that follows the job from the job's spool
// (jobs/ID/events), as fast as the client reads. This needs one open file per client, and
// delays neither the job nor other clients. A state and all earlier events are on disk before
// the state is sent to any client. So if a client has received the state that a job has ended,
// it receives the same state after a restart of the job manager.
//
// All input is bounded. Package wire bounds the size of messages. Config bounds the sizes of
// executables, results and logs. maxQueued bounds the queue of messages to a task manager, and
// Config.WriteTimeout bounds waits for clients and task managers.
package jobmanager
