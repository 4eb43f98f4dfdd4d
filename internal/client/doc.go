// Package client talks to a job manager for programs and commands: it finds the
// token and the certificates, compares versions, uploads executables and follows
// jobs.
//
//	c, err := client.Dial(ctx, client.Options{Address: "localhost:6123"})
//	if err != nil { … }
//	defer c.Close()
//	hash, err := c.Upload(ctx, "/path/of/program", "program", progress)
//	reply, err := c.Submit(ctx, &wire.SubmitRequest{Spec: wire.JobSpec{Artifact: hash, …}})
//	last, err := c.FollowToEnd(ctx, reply.Job, true, func(e *wire.Event) error { … })
//
// A Client has every request of a wire.Client. The errors of Dial, Upload and FollowToEnd also
// say what to do, and they wait for a job manager that is away for a moment. Explain gives the
// errors of other requests the same words.
package client
