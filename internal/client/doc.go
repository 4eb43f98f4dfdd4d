// Package client connects programs and commands to a job manager. It finds the token and the
// certificates, compares versions, uploads executables and follows jobs.
//
//	c, err := client.Dial(ctx, client.Options{Address: "localhost:6123"})
//	if err != nil { … }
//	defer c.Close()
//	hash, err := c.Upload(ctx, "/path/of/program", "program", progress)
//	reply, err := c.Submit(ctx, &wire.SubmitRequest{Spec: wire.JobSpec{Artifact: hash, …}})
//	last, err := c.FollowToEnd(ctx, reply.Job, true, func(e *wire.Event) error { … })
//
// A Client has all methods of a wire.Client. The errors of Dial, Upload and FollowToEnd also
// say what to do. If the job manager cannot be reached, FollowToEnd waits for it for some time.
// Explain adds what to do to the errors of other requests.
package client
