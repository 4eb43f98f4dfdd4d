// Package engine is the main package for users of Superstep. It has jobs, datasets, options,
// results and the command line.
//
// # A job
//
// A job is a named function of its arguments. It adds operators to a Builder and computes
// nothing itself:
//
//	type Args struct {
//		Input  string `help:"CSV file to read." required:""`
//		Output string `help:"CSV file to write." required:""`
//	}
//
//	var Copy = engine.Define("copy", func(b *engine.Builder, a Args) error {
//		rows := operators.ReadCSV(b, a.Input, operators.CSVOptions{Header: true})
//		operators.WriteCSV(rows, a.Output, operators.CSVWriteOptions{})
//		return nil
//	})
//
//	func main() { engine.Main(Copy) }
//
// Main makes a command line for the program. A program that has its own command line, or a test,
// calls Run instead and uses the Result:
//
//	result, err := engine.Run(ctx, Copy, Args{…}, engine.Parallelism(4))
//	if err != nil { … }
//	defer result.Release()
//
// # On a cluster
//
// With Cluster, or --cluster on the command line, the same program runs on a cluster, with the
// same results. The program is sent to the cluster, whose processes build the job again from its
// arguments. Paths are paths on the cluster's machines, except for outputs whose path begins with
// ClientPath, which are written on the machine on which the program was started.
//
// # Building twice
//
// Every process of a run builds the graph for itself, by calling the job's function with the
// same arguments. In this way the functions that operators call, closures included, exist in
// all processes. So the job's function must depend on its arguments alone. What operators learn
// from outside, such as the list of files that match a pattern, is called a fact. A fact is
// resolved once, recorded in the graph and replayed in later builds. Run builds the graph twice
// before it runs the job. It refuses a job whose builds differ, with an error that shows the
// difference. Functions are compared by symbol and line, so a closure that captures a different
// value in each build, such as the time, is not detected.
//
// # Mistakes
//
// Wrong use of operators does not stop the job's function. Each mistake is recorded with the
// user's source line, and Run returns all mistakes in one BuildError before anything has run.
//
// # What results depend on
//
// Rows are divided into shards, whose number is part of the job. Parallelism decides which
// subtask works on which shards. Results depend neither on parallelism nor on batch sizes, memory
// budgets or timing. They depend on the program, its arguments and data, the seed and the number
// of shards.
//
// # Writing operators
//
// Operators are in packages of their own and use Builder.Add, Builder.AddQueue, Builder.Fact and
// Builder.Errorf; see Spec and QueueSpec. Tests of operators and jobs should also run them with
// the option Workers. It reveals operators that work in one process only, because their subtasks
// share objects.
package engine
