// Package wire is what the processes of a cluster say to each other about jobs: the
// messages, both sides of each conversation in one file, and how they travel.
//
//	client ──── JobManager service (service.go, client.go) ────► job manager
//	task manager ──── Connect, one stream (taskmanager.go) ────► job manager
//	task manager ◄─── two pipes, frames (worker.go, frame.go) ──► worker process
//
// Messages are plain structs in msgpack, with gRPC beneath between machines and
// length-prefixed frames on the pipes between a task manager and a worker. Nothing
// here knows a graph, a plan or a batch: what user programs exchange among themselves
// (graphs, outcomes of workers, collected rows) travels as bytes.
//
// Fields are only ever added; a change of meaning raises Version, which both sides
// compare when they first meet.
package wire
