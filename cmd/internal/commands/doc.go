// Package commands has what the binaries can do: the commands of superstep as kong structs.
// cmd/jobmanager and cmd/taskmanager have one of them each.
//
//	code := commands.Main(ctx, "superstep", &cli, os.Args[1:], commands.Standard())
//
// The Run method of a command finds its settings filled in, prints to Streams, and returns an
// error that tells what to do. Commands ask a job manager through the small interface
// jobManager, so that tests can answer.
package commands
