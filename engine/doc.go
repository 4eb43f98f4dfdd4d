// Package engine is what users of Superstep see: jobs, datasets, options, results and the
// command line.
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
// Main gives the program its command line. A program with a command line of its own, or a test,
// calls Run instead and works with the Result:
//
//	result, err := engine.Run(ctx, Copy, Args{…}, engine.Parallelism(4))
//	if err != nil { … }
//	defer result.Release()
//
// # On a cluster
//
// With Cluster, or --cluster on the command line, a cluster runs the same program, with the
// same results. The program is sent there, and its processes build the job anew from its
// arguments. Paths are paths on the cluster's machines; an output whose path begins with
// ClientPath is written where the program was started.
//
// # Building twice
//
// Every process of a run builds the graph for itself, by calling the same function with the
// same arguments: this is how functions, closures among them, reach all processes. So the
// function must depend on its arguments alone. What operators learn from outside, such as the
// list of files a pattern stands for, is a fact: resolved once, recorded in the graph and
// replayed in later builds. Run builds the graph twice from the start and refuses a job whose
// builds differ, showing where. Functions are compared by symbol and line. A closure that
// captures another value in each build, such as the time, is not noticed.
//
// # Mistakes
//
// Wrong use of operators does not stop the job's function. Each mistake is recorded with the
// user's source line, and Run returns all of them in one BuildError before anything has run.
//
// # What results depend on
//
// Rows live in shards, whose number is part of the job. Parallelism decides which subtask works
// on which shards and never what comes out; neither do batch sizes, memory budgets or timing.
// Results depend on the program, its arguments and data, the seed and the number of shards.
//
// # Writing operators
//
// Operators live in their own packages and use Builder.Add, Builder.AddQueue, Builder.Fact and
// Builder.Errorf; see Spec and QueueSpec. Tests of operators and jobs also run them with
// Workers. This finds operators that work in one process only, as their subtasks share too much.
package engine
