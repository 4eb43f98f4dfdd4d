// Command killjobs is a program with the jobs whose clusters tests kill. The jobs need
// seconds, so that there is time to kill something in each of their phases. Each writes the
// same rows to a file and to a directory, so that the commit has several steps. Its client gets
// some of the rows through the job manager.
package main

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// args are the job's arguments.
type args struct {
	Job    string        `enum:"kmeans,logistic,trees,queue,shuffle" required:"" help:"What to run: k-means, logistic regression, boosted trees, a queue with state per shard, or shuffles and aggregations."`
	Rows   int64         `default:"20000" help:"Rows to generate."`
	Steps  int           `default:"60" help:"Supersteps of the queue, or iterations of the algorithm."`
	Read   time.Duration `help:"How long the source waits after every 500 rows."`
	Pause  time.Duration `help:"How long each superstep of the queue waits on each subtask."`
	Keep   int64         `default:"1" help:"Of the rows made, those whose key is a multiple of this number are written."`
	Output string        `required:"" help:"Path of the CSV file to write; the directory has .parts behind it."`
	Client string        `required:"" help:"Path of a CSV file with the first rows, which the client writes."`
}

// row is a row of the jobs.
type row struct {
	Key        int64
	A, B, C, D float64
	Label      int64
}

// rows adds the source of all jobs. Its rows lie around twelve centres. The label of a row
// depends on its numbers, but not on them alone.
func (a args) rows(b *engine.Builder) *engine.Dataset {
	return operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) row {
		if a.Read > 0 && i%500 == 0 {
			time.Sleep(a.Read)
		}
		centre := float64(draws.IntN(12))
		r := row{
			Key: int64(draws.IntN(997)),
			A:   centre + draws.NormFloat64(), B: float64(centre*0.5) - draws.NormFloat64(),
			C: draws.Float64() * 1e6, D: draws.NormFloat64() * 1e-3,
		}
		if float64(r.A*0.3)-float64(r.B*0.2)+draws.NormFloat64() > 1 {
			r.Label = 1
		}
		return r
	})
}

var job = engine.Define("killjobs", func(b *engine.Builder, a args) error {
	made, err := a.build(b)
	if err != nil {
		return err
	}
	if a.Keep > 1 { // every job has a column of this name
		made = operators.Filter(made, func(r struct{ Key int64 }) bool { return r.Key%a.Keep == 0 })
	}
	operators.WriteCSV(made, a.Output, operators.CSVWriteOptions{})
	operators.WriteCSV(made, a.Output+".parts", operators.CSVWriteOptions{PerShard: true})
	first := operators.First(made, 500)
	operators.WriteCSV(first, engine.ClientPath+a.Client, operators.CSVWriteOptions{})
	operators.Print(first, operators.PrintOptions{Rows: 3})
	return nil
})

// build adds the operators that make the output of the job.
func (a args) build(b *engine.Builder) (*engine.Dataset, error) {
	rows := a.rows(b)
	switch a.Job {
	case "kmeans":
		return a.clusters(rows), nil
	case "logistic":
		return a.odds(rows), nil
	case "trees":
		return a.trees(rows), nil
	case "queue":
		return a.queue(b, rows), nil
	case "shuffle":
		return a.shuffle(rows), nil
	}
	return nil, fmt.Errorf("there is no job %q", a.Job)
}

func main() { engine.Main(job) }
