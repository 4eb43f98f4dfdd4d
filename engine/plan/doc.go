// Package plan holds a job's graph and its plan as plain data.
//
// A Graph is what the user wrote: operators, their inputs and the facts they
// rest on. Compile turns it, as a pure function, into a Plan for one
// parallelism: forward edges are chained into vertices, the others become
// exchanges, shards are assigned to subtasks. Graphs and plans print as text, JSON
// and Graphviz. They hold no functions, locks or channels: the code that runs a
// plan binds functions to its nodes.
//
// Code that runs a job uses the package like this:
//
//	if err := g.Validate(); err != nil { … }      // all mistakes at once: Misuses(err)
//	if d := plan.Diff(first, second); d != "" { … } // two builds must be one graph
//	p, err := plan.Compile(g, 4)                  // again at every rescale
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
// A vertex is a chain of operators that one goroutine per subtask runs; its first
// line says how many subtasks there are and how many shards each owns. Below
// stand the parameters of its operators and its incoming edges. An edge that is
// "materialised" is held whole, in memory up to the budget and then on disk,
// because its receiver may have to finish another input first; the doc comment of
// Compile gives the rule and why no diamond can deadlock under it. The vertices
// of a queue are framed. "depends on parallelism" marks reductions whose bits
// are the same at one parallelism only.
//
// # What is checked where
//
// Validate trusts nothing, since graphs also arrive over the network: it bounds
// its report and takes time linear in the graph. Compile validates first, so that
// what follows may rely on it. DecodeGraph and DecodePlan are strict about
// the form. A plan that was decoded holds together, but only compiling the graph
// again tells whether it is the plan of that graph.
//
// The tests under testdata are scripts: graphs in a small language and the text
// of what becomes of them.
package plan
