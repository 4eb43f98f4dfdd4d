package plan_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
)

// A job counts rows by key. The reader and the filter become one vertex, and the hash edge
// becomes an exchange.
func Example() {
	rows := []plan.Column{{Name: "species", Type: "utf8"}, {Name: "width", Type: "float64"}}
	g := &plan.Graph{
		Job:    "count",
		Shards: 8,
		Nodes: []plan.Node{
			{ID: 0, Op: "ReadCSV", Attrs: []plan.Attr{{Key: "path", Value: "iris.csv"}}, Schema: rows},
			{ID: 1, Op: "Filter", Name: "wide", Inputs: []plan.Input{{From: 0}}, Schema: rows},
			{ID: 2, Op: "Count", Inputs: []plan.Input{{From: 1, Partitioner: plan.Hash, Keys: []string{"species"}}}},
			{ID: 3, Op: "Collect", Name: "counts", Sink: true, Inputs: []plan.Input{{From: 2}}},
		},
	}
	p, err := plan.Compile(g, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p.Text())
	// Output:
	// plan of count at parallelism 3: 2 vertices, 3 slots, 8 shards, seed 0, graph 830812fc5f9b…
	// v0 ReadCSV → Filter(wide)   3 subtasks × 2–3 shards
	//      ReadCSV            path=iris.csv
	// v1 Count → Collect(counts)  3 subtasks × 2–3 shards
	//      ← v0 Filter(wide)  hash(species)
}

// Validate returns all mistakes together, with the lines of the user's program.
func ExampleGraph_Validate() {
	g := &plan.Graph{
		Shards: 100,
		Nodes: []plan.Node{
			{ID: 0, Op: "ReadCSV", Site: "main.go:12", Schema: []plan.Column{{Name: "species", Type: "utf8"}}},
			{ID: 1, Op: "Count", Site: "main.go:13", Inputs: []plan.Input{{From: 0, Partitioner: plan.Hash, Keys: []string{"specie"}}}},
		},
	}
	fmt.Println(g.Validate())
	// Output:
	// 100 shards: want a power of two between 1 and 1048576; set it with --shards
	// main.go:13: Count: key column "specie" does not exist in the rows of ReadCSV (main.go:12); did you mean "species"?
}

// Two builds of one job must give the same graph. If they do not, Diff shows the difference.
func ExampleDiff() {
	build := func(size string) *plan.Graph {
		return &plan.Graph{
			Shards: 8,
			Facts:  []plan.Fact{{Name: "size of iris.csv", Value: size}},
			Nodes:  []plan.Node{{ID: 0, Op: "ReadCSV"}},
		}
	}
	fmt.Print(plan.Diff(build("4551"), build("4600")))
	// Output:
	// the graphs first differ at fact "size of iris.csv"
	// - fact "size of iris.csv" = "4551"
	// + fact "size of iris.csv" = "4600"
}
