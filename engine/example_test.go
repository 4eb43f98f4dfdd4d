package engine_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Evens is the row type of the examples: one column of integers.
type Evens struct {
	Value int64 `column:"value"`
}

var schema = columnar.MustSchema(columnar.Column{Name: "value", Type: "int64"})

// evens adds a source of the first n even numbers. Operators are functions like
// this one: they take a builder or datasets, and return a dataset.
func evens(b *engine.Builder, n int) *engine.Dataset {
	return b.Add(engine.Spec{
		Op:     "Evens",
		Attrs:  []engine.Attr{{Key: "n", Value: fmt.Sprint(n)}},
		Schema: schema,
		Source: func() engine.Source { return &evenSource{n: n} },
	})
}

type evenSource struct{ n int }

func (s *evenSource) Open(*engine.Context) error { return nil }
func (s *evenSource) Close() error               { return nil }

// ReadShard emits the shard's part of the numbers. The split depends on the number of shards
// and not on the parallelism.
func (s *evenSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	var values []int64
	part := sharding.Split(s.n, c.Shards, shard)
	for i := part.Lo; i < part.Hi; i++ {
		values = append(values, 2*int64(i))
	}
	rows, err := columnar.NewBatch(c.Allocator, schema, values)
	if err != nil {
		return err
	}
	defer rows.Release()
	return out.Emit(shard, rows)
}

type Args struct {
	N int `help:"How many numbers." default:"5"`
}

var job = engine.Define("evens", func(b *engine.Builder, a Args) error {
	engine.Collect(evens(b, a.N), "evens")
	return nil
})

// A program with its own command line, or a test, runs a job with Run.
func ExampleRun() {
	result, err := engine.Run(context.Background(), job, Args{N: 4}, engine.Parallelism(2), engine.Shards(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	rows, err := engine.Rows[Evens](result, "evens")
	fmt.Println(rows, err)
	// Output: [{0} {2} {4} {6}] <nil>
}

// A program that only runs a job leaves its command line to Main, and prints the results in a
// hook. (Main exits the process; therefore this example is not executed.)
func ExampleMain() {
	main := func() {
		engine.Main(job, engine.AfterRun(func(a Args, r *engine.Result) error {
			rows, err := engine.Rows[Evens](r, "evens")
			fmt.Println(a.N, "numbers:", rows)
			return err
		}))
	}
	_ = main
}

// Compile shows how a job would run, without running it.
func ExampleCompile() {
	p, err := engine.Compile(job, Args{N: 4}, engine.Parallelism(2), engine.Shards(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(p.Vertices), "vertex:", p.Vertices[0].Name)
	// Output: 1 vertex: Evens → Collect(evens)
}

// A fact is a value that a job's function does not learn from its arguments. It is resolved
// once, although the function is called several times.
func ExampleBuilder_Fact() {
	asked := 0
	stamped := engine.Define("stamped", func(b *engine.Builder, _ struct{}) error {
		n, err := b.Fact("rows there are", func() (string, error) { asked++; return "3", nil })
		if err != nil {
			return err
		}
		evens(b, len(n))
		return nil
	})
	graph, err := engine.BuildGraph(stamped, struct{}{})
	fmt.Println(graph.Facts, "asked", asked, "time", err)
	// Output: [{rows there are 3}] asked 1 time <nil>
}
