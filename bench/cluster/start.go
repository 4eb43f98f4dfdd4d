package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// startCommand has the flags of the command start.
type startCommand struct {
	Slots  int `default:"200" help:"Parallelism of the job."`
	Shards int `default:"1024" help:"Shards of the job."`
	Rounds int `default:"5" help:"Rounds; the figures are medians."`
}

// row is a row of wide.
type row struct {
	Key   int64
	Value float64
}

// wide is a job on few rows with several kinds of exchanges and a superstep queue.
var wide = engine.Define("bench-start", func(b *engine.Builder, _ struct{}) error {
	rows := operators.Generate(b, 20_000, func(draws sharding.Random, i int64) row { return row{i % 997, draws.Float64()} })
	hashed := operators.PartitionByHash(rows, "key")
	spread := operators.Rebalance(hashed)
	engine.Collect(operators.First(operators.Sort(spread, operators.Desc("value")), 10), "sorted")
	engine.Collect(operators.Count(operators.GroupBy(spread, "key").Aggregate(operators.SumOf("value"))), "groups")
	sums := shared.Scratch[[]float64]("sums")
	data := comqueue.PartitionedRows("rows")
	engine.Collect(comqueue.New(b, "sums").
		InitWithPartitionedData(data, hashed).
		Add(comqueue.Named("preallocate", comqueue.Do(func(ctx *comqueue.ComContext) error {
			sums.Put(ctx, make([]float64, 8))
			return nil
		}))).
		Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			for i, v := range data.Get(ctx, shard).Floats("value") {
				out[i&7] += v
			}
			return nil
		})).
		Add(comqueue.AllReduce(sums)).
		SetMaxIter(1).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) { return sums.Get(ctx), nil })).
		Exec(), "sums")
	return nil
})

// Run measures the start of a job with an executable that is new to the cluster, and with an
// executable that the cluster has received with an earlier job.
func (s *startCommand) Run(f *flags) error {
	dir, err := os.MkdirTemp("", "superstep-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unknown := filepath.Join(dir, "program")
	if err := copySelf(unknown); err != nil {
		return err
	}
	var known, cold, whole []float64
	for range s.Rounds {
		if err := makeDifferent(unknown); err != nil {
			return err
		}
		first, _, err := s.once(f, unknown)
		if err != nil {
			return err
		}
		again, ran, err := s.once(f, unknown)
		if err != nil {
			return err
		}
		fmt.Printf("new executable: started after %.3f s   known: started after %.3f s, ended after %.3f s\n", first, again, ran)
		cold, known, whole = append(cold, first), append(known, again), append(whole, ran)
	}
	fmt.Printf("medians: new executable %.3f s, known %.3f s to the start, %.3f s to the end\n", rounds.Median(cold), rounds.Median(known), rounds.Median(whole))
	return nil
}

// once runs the job with the executable program. It returns the seconds from the submission of
// the job to the start of all its subtasks, and from the submission to the end of the job, by
// the clock of the job manager. An executable is uploaded before the submission.
func (s *startCommand) once(f *flags, program string) (started, ended float64, err error) {
	r, err := engine.Run(context.Background(), wide, struct{}{}, engine.Cluster(f.Cluster),
		engine.Parallelism(s.Slots), engine.Shards(s.Shards), engine.WorkerBinary(program))
	if err != nil {
		return 0, 0, err
	}
	r.Release()
	cmd := exec.Command(f.Superstep, "list", "-o", "json", "--cluster", f.Cluster)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("list the jobs: %w", err)
	}
	var jobs []struct{ Submitted, Started, Ended time.Time }
	if err := json.Unmarshal(out, &jobs); err != nil || len(jobs) == 0 {
		return 0, 0, fmt.Errorf("the list of jobs is %q: %w", out, err)
	}
	last := jobs[0]
	return last.Started.Sub(last.Submitted).Seconds(), last.Ended.Sub(last.Submitted).Seconds(), nil
}

// copySelf copies the executable of this program to the file to, which must not exist.
func copySelf(to string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, from); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// makeDifferent changes an executable file without changing the program's behaviour. It appends
// bytes after the last section, where the operating system ignores them.
func makeDifferent(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
