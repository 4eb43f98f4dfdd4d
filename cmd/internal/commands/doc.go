// Package commands is what the binaries can do: the commands of superstep as kong
// structs, of which cmd/jobmanager and cmd/taskmanager are one each.
//
//	code := commands.Main(ctx, "superstep", &cli, os.Args[1:], commands.Standard())
//
// A command's Run gets its settings filled in, prints to Streams, and returns an
// error that tells what to do. What is asked of a job manager goes through the small
// interface at its use, so that tests can answer.
package commands
