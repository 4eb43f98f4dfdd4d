// Command commitjobs is a program whose job writes so much output that tests have time to kill
// processes of a cluster while the output is assembled.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// args are the job's arguments.
type args struct {
	Rows     int64  `default:"1000" help:"Rows to generate."`
	Output   string `required:"" help:"CSV file or directory to write."`
	PerShard bool   `help:"Write one file per shard."`
	Outputs  int    `default:"1" help:"Outputs of the same rows to write; if several, with a number behind their path."`
	Hold     string `help:"A file that is made when some of the outputs are in their place; the commit goes on when it is gone."`
	HoldAt   int    `help:"How many outputs that are."`
}

// row is a row of the job.
type row struct {
	ID    int64
	Value float64
	Text  string
}

var job = engine.Define("commitjobs", func(b *engine.Builder, a args) error {
	rows := operators.Generate(b, a.Rows, func(draws sharding.Random, i int64) row {
		return row{i, draws.Float64(), "a text that takes some room, so that the file is large enough"}
	})
	for i := range a.Outputs {
		if a.Hold != "" && i == a.HoldAt {
			b.Add(engine.Spec{
				Op: "Hold", Inputs: []engine.Port{{From: rows}},
				Operator: func() engine.Operator { return ignore{} },
				Sink:     &hold{path: a.Hold},
			})
		}
		path := a.Output
		if a.Outputs > 1 {
			path = fmt.Sprintf("%s-%d", a.Output, i)
		}
		operators.WriteCSV(rows, path, operators.CSVWriteOptions{PerShard: a.PerShard})
	}
	engine.Collect(operators.First(rows, 3), "first")
	return nil
})

// hold is a sink that delays the commit: the sinks after it make their output visible only
// after Place has returned.
type hold struct {
	path    string
	resumed bool // whether this process resumes the commit; then Place does not wait
}

func (h *hold) Begin() error             { return nil }
func (h *hold) Commit() error            { return nil }
func (h *hold) Abort() error             { return nil }
func (h *hold) Join() error              { return nil }
func (h *hold) Leave() error             { return nil }
func (h *hold) Written() ([]byte, error) { return nil, nil }
func (h *hold) Aside() string            { return "" }
func (h *hold) Decide() error            { return nil }
func (h *hold) TakeBack() error          { return nil }
func (h *hold) Finish()                  {}
func (h *hold) Settle() error            { return nil }

func (h *hold) Complete(c engine.Completion) error {
	h.resumed = c.Resumed
	return nil
}

// Place creates the file path and waits until the test removes it.
func (h *hold) Place() error {
	if h.resumed {
		return nil
	}
	if err := os.WriteFile(h.path, nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(h.path); err != nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ignore is the operator of hold. It ignores all rows.
type ignore struct{ engine.BaseOperator }

func (ignore) Process(*engine.Context, int, int, engine.Batch, engine.Output) error { return nil }

func main() { engine.Main(job) }
