// Package wire defines the messages about jobs that the processes of a cluster exchange, and
// their transport. Each of these files has the messages of both sides of a connection:
//
//	client ──── JobManager service (service.go, client.go, cordon.go) ──► job manager
//	task manager ──── Connect, one stream (taskmanager.go) ────► job manager
//	task manager ◄─── two pipes, frames (worker.go, frame.go) ──► worker process
//
// Messages are plain structs that are encoded in msgpack. Between machines they are sent by
// gRPC, and on the pipes between a task manager and a worker as length-prefixed frames. The
// package does not depend on graphs, plans or batches: messages contain the data that user
// programs exchange (graphs, outcomes of workers, collected rows) as bytes.
//
// A job manager serves with ServerOptions and RegisterJobManager, and a client calls with
// DialOptions and NewClient:
//
//	s := grpc.NewServer(append(wire.ServerOptions(), grpc.Creds(tls), …)...)
//	wire.RegisterJobManager(s, manager)
//
//	conn, err := grpc.NewClient(address, append(wire.DialOptions(), …)...)
//	reply, err := wire.NewClient(conn).Submit(ctx, &wire.SubmitRequest{Spec: spec})
//
// Frames are written to pipes and read from them by a Writer and a Reader:
//
//	w := wire.NewWriter[wire.ToWorker](toWorker)
//	err := w.Write(&wire.ToWorker{Deployment: &d})
//	r := wire.NewReader[wire.FromWorker](fromWorker)
//	for {
//		m, err := r.Next() // io.EOF after the last frame
//		…
//	}
//
// If a method of the server returns an error that was made by Error, the caller gets an error
// with the same code and text, without "rpc error". Code and Reason return the code and the
// text of any error.
//
// Receivers do not trust senders. Each type of message has a maximum size (codec.go), and every
// length, depth and count is checked before the decoder allocates memory for it (examine.go).
//
// New fields may be added to messages, but fields must not be removed. If the meaning of a
// message changes, Version must be incremented. Both sides compare their versions at the
// beginning of a connection.
package wire
