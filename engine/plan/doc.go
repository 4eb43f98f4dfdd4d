// Package plan holds a job's graph and its plan as plain data.
//
// A Graph describes the job that the user wrote: its operators, their inputs and
// the facts that they depend on. Compile, a pure function, turns a graph into a
// Plan for one parallelism: it chains operators along forward edges into
// vertices, makes exchanges of the other edges, and assigns shards to subtasks.
// Graphs and plans print as text, JSON and Graphviz. They hold no functions, locks
// or channels: the code that runs a plan binds functions to its nodes.
//
// Code that runs a job uses the package like this:
//
//	if err := g.Validate(); err != nil { … }      // all mistakes at once: Misuses(err)
//	if d := plan.Diff(first, second); d != "" { … } // two builds must give equal graphs
//	p, err := plan.Compile(g, 4)                  // called again at every rescale
//	fmt.Print(p.Text())                           // or p.JSON(), p.DOT()
//	for _, v := range p.Vertices {
//		for _, e := range p.In(v.ID) { … }        // set up its exchanges
//		for i, shards := range v.Ranges { … }     // start its subtasks
//	}
//
// # How a plan reads
//
//	plan of count at parallelism 3: 2 vertices, 3 slots, 8 shards, seed 0, graph 830812fc5f9b…
//	v0 ReadCSV → Filter(wide)   3 subtasks × 2–3 shards
//	     ReadCSV            path=iris.csv
//	v1 Count → Collect(counts)  3 subtasks × 2–3 shards
//	     ← v0 Filter(wide)  hash(species)
//
// A vertex is a chain of operators that one goroutine per subtask runs. Its first
// line gives the number of subtasks and the number of shards that each owns. The
// lines below it give the parameters of its operators and its incoming edges. The
// rows of an edge that is "materialised" are all kept, in memory up to the budget
// and then on disk, because its receiver may have to read another input to the
// end first. The doc comment of Compile gives the rule and says why it prevents
// deadlocks. A frame surrounds the vertices of a queue. "depends on parallelism"
// marks reductions whose result may have other bits at another parallelism.
//
// # What is checked where
//
// Validate assumes nothing about its input, since graphs also arrive over the
// network. Its report has a limited length, and its time is linear in the size of
// the graph.
// Compile calls Validate first and refuses graphs that are not valid. DecodeGraph
// and DecodePlan refuse JSON with unknown fields or names. DecodePlan also checks
// that the plan is consistent in itself. Whether it is the plan of a certain graph
// can only be found by compiling that graph again.
//
// The directory testdata has scripts for tests: graphs, in a small language, and
// the output that the functions of this package must give for them.
package plan
