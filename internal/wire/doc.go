// Package wire has the messages between the processes of a cluster about jobs, and their
// transport. Both sides of each conversation are in one file.
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
// A job manager serves with what ServerOptions and RegisterJobManager give it, and a
// client calls with DialOptions and NewClient:
//
//	s := grpc.NewServer(append(wire.ServerOptions(), grpc.Creds(tls), …)...)
//	wire.RegisterJobManager(s, manager)
//
//	conn, err := grpc.NewClient(address, append(wire.DialOptions(), …)...)
//	reply, err := wire.NewClient(conn).Submit(ctx, &wire.SubmitRequest{Spec: spec})
//
// and pipes carry frames:
//
//	w := wire.NewWriter[wire.ToWorker](toWorker)
//	err := w.Write(&wire.ToWorker{Deployment: &d})
//	r := wire.NewReader[wire.FromWorker](fromWorker)
//	for {
//		m, err := r.Next() // io.EOF after the last
//		…
//	}
//
// Errors made with Error keep their code and their text on the way to the caller, without "rpc
// error"; Code and Reason return code and text of any other error.
//
// No sender is trusted: sizes are bounded by type (codec.go), and every length, depth and count
// is checked before the decoder allocates memory for it (examine.go).
//
// Fields are only ever added; a change of meaning raises Version, which both sides
// compare when they first meet.
package wire
