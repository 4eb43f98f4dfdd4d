// Command commitjobs is a program whose job writes much, so that there is time to end
// the processes of a cluster while its output is put together.
package main

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// args are the job's arguments.
type args struct {
	Rows     int64  `default:"1000" help:"Rows to generate."`
	Output   string `required:"" help:"CSV file or directory to write."`
	PerShard bool   `help:"Write one file per shard."`
	Outputs  int    `default:"1" help:"Outputs of the same rows to write; if several, with a number behind their path."`
}

// row is a row of the job.
type row struct {
	ID    int64
	Value float64
	Text  string
}

var job = engine.Define("commitjobs", func(b *engine.Builder, a args) error {
	rows := operators.Generate(b, a.Rows, func(draws shared.Random, i int64) row {
		return row{i, draws.Float64(), "a text that takes some room, so that the file is large enough"}
	})
	for i := range a.Outputs {
		path := a.Output
		if a.Outputs > 1 {
			path = fmt.Sprintf("%s-%d", a.Output, i)
		}
		operators.WriteCSV(rows, path, operators.CSVWriteOptions{PerShard: a.PerShard})
	}
	operators.Collect(b, "first", operators.First(rows, 3))
	return nil
})

func main() { engine.Main(job) }
