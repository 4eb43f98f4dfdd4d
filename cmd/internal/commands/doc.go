// Package commands implements the commands of the superstep binary as kong structs. The binaries
// cmd/jobmanager and cmd/taskmanager have one of these commands each.
//
//	code := commands.Main(ctx, "superstep", &cli, os.Args[1:], commands.Standard())
//
// Main parses a command line into the fields of the command and calls the command's Run method.
// Run prints to Streams. The type of the error that it returns (UsageError, QuietError,
// ExitError or any other) determines the exit code, and whether Main prints the error. Commands
// call a job manager through the interface jobManager.
package commands
