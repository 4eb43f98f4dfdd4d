// Command pagerank finds the packages on which most of the standard library of Go depends. It
// ranks packages by the number and the ranks of the packages that import them (Page, Brin,
// Motwani and Winograd, "The PageRank Citation Ranking", 1999). It can also rank the pages of
// any other list of links.
package main

import (
	"embed"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

//go:embed data/imports.csv
var bundled embed.FS

type args struct { // the job's arguments are the program's flags
	Input   string  `help:"CSV file of links, two columns below a header (default: the imports of the standard library of Go)."`
	Damping float64 `help:"Probability that a reader follows a link; otherwise any page is next." default:"0.85"`
	Tol     float64 `help:"Stop once ranks change by less than this in all." default:"1e-12"`
	Top     int     `help:"How many pages to print." default:"10"`
}

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	if !(a.Damping >= 0 && a.Damping < 1) || !(a.Tol > 0) || a.Top < 0 {
		return errors.New("--damping must be at least 0 and below 1, --tol above 0, --top 0 or more")
	}
	return nil
}

// These are the types of the rows in the job. A link is a row of the input. A page has its
// number and the number of its outgoing links. An edge is a link between page numbers. A ranked
// is a row of the result.
type (
	link struct{ From, To string }
	page struct {
		Page         string
		Number, Outs int64
	}
	edge   struct{ From, To int64 }
	ranked struct {
		Page string
		Rank float64
	}
)

var (
	edges    = comqueue.PartitionedRows("edges")
	from, to = edges.Ints("from"), edges.Ints("to") // names and types are checked when the job is built
	pages    = comqueue.BroadcastRows("pages")      // sorted by number
	names    = pages.Texts("page")
	outs     = pages.Ints("outs")
	rank     = shared.Replicated("rank", shared.Float64s()) // the rank of each page; the same on every subtask
	moved    = shared.Replicated("moved", shared.Float64()) // the sum of the absolute changes of ranks
	inflow   = shared.Scratch[[]float64]("inflow")          // the rank that each page gets through links
)

// start gives all pages the same rank.
func start(ctx *comqueue.ComContext) error {
	r := make([]float64, len(outs.Get(ctx)))
	for i := range r {
		r[i] = 1 / float64(len(r))
	}
	rank.Put(ctx, r)
	return nil
}

// room allocates inflow.
func room(ctx *comqueue.ComContext) error {
	inflow.Put(ctx, make([]float64, len(outs.Get(ctx))))
	return nil
}

// spread adds to out[i] the rank that page i gets through the links in one shard. Each page
// divides its rank equally among its links.
func spread(ctx *comqueue.ComContext, shard int, out []float64) error {
	r, n, target := rank.Get(ctx), outs.Get(ctx), to.Get(ctx, shard)
	for i, p := range from.Get(ctx, shard) {
		out[target[i]] += r[p] / float64(n[p])
	}
	return nil
}

// update returns the function that computes the next ranks. The rank of pages without links is
// divided equally among all pages.
func update(damping float64) func(ctx *comqueue.ComContext) error {
	return func(ctx *comqueue.ComContext) error {
		r, in, lost, change := rank.Get(ctx), inflow.Get(ctx), 0.0, 0.0
		for i, n := range outs.Get(ctx) {
			if n == 0 {
				lost += r[i]
			}
		}
		anywhere := (1 - damping + float64(damping*lost)) / float64(len(r))
		for i := range r {
			next := anywhere + float64(damping*in[i]) // the conversion forbids fused multiply-add: same bits everywhere
			change += math.Abs(next - r[i])
			r[i] = next
		}
		moved.Put(ctx, change)
		ctx.Report("moved", change)
		return nil
	}
}

// result returns the rows of the queue: all pages with their ranks.
func result(ctx *comqueue.ComContext) ([]ranked, error) {
	all, texts := make([]ranked, len(rank.Get(ctx))), names.Get(ctx)
	for i, r := range rank.Get(ctx) {
		all[i] = ranked{texts.At(i), r}
	}
	return all, nil
}

// numbered returns the pages that occur in links, sorted by name and numbered from 0.
func numbered(links *engine.Dataset) *engine.Dataset {
	ends := operators.FlatMap(links, func(l link, emit func(page)) error {
		emit(page{Page: l.From, Outs: 1})
		emit(page{Page: l.To})
		return nil
	})
	all := operators.GroupBy(ends, "page").Aggregate(operators.SumOf("outs").As("outs"))
	return operators.ZipWithIndex(operators.Sort(all, operators.Asc("page")), "number")
}

// between returns the edge for link l: the numbers of its two pages.
func between(l link, pages *operators.Lookup[string, page]) (edge, error) {
	from, _ := pages.Get(l.From)
	to, _ := pages.Get(l.To)
	return edge{from.Number, to.Number}, nil
}

// job defines the dataflow. The engine compiles it to a plan and runs it.
var job = engine.Define("pagerank", func(b *engine.Builder, a args) error {
	read := operators.CSVOptions{Header: true, Names: []string{"from", "to"}}
	if a.Input == "" {
		a.Input, read.FS = "data/imports.csv", bundled
	}
	links := operators.Distinct(operators.ReadCSVAs[link](b, a.Input, read))
	all := numbered(links)
	ranks := comqueue.New(b, "ranks").
		InitWithPartitionedData(edges, operators.MapLookup(links, all, func(p page) string { return p.Page }, between)).
		InitWithBroadcastData(pages, all).
		Begin(start).
		Init(room).
		Add(comqueue.ForEachShard(inflow, spread)).
		Add(comqueue.AllReduce(inflow)). // gives every subtask the sums over all shards
		Do(update(a.Damping)).
		SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) { return moved.Get(ctx) < a.Tol, nil }).
		CloseOnNode0(comqueue.Output(result)).
		SetMaxIter(1000).
		Exec()
	engine.Collect(operators.Sort(ranks, operators.Desc("rank"), operators.Asc("page")), "ranks")
	return nil
})

// report prints the pages with the highest ranks.
func report(a args, r *engine.Result) error {
	ranks, err := engine.Rows[ranked](r, "ranks")
	for _, p := range ranks[:min(a.Top, len(ranks))] {
		fmt.Printf("%.4f  %s\n", p.Rank, p.Page)
	}
	return err
}

func main() { engine.Main(job, engine.AfterRun(report)) }
