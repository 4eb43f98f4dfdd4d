package tests

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// reporting returns the dataset of a queue with the stage report. Only the values that this
// stage reports can differ between runs.
func reporting(d *engine.Dataset, report func(ctx *comqueue.ComContext) error) *engine.Dataset {
	return comqueue.New(d.Builder(), "q").InitWithPartitionedData(leakyRows, d).
		Do(report).SetMaxIter(3).
		CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]measured, error) { return []measured{{1, 2}}, nil })).Exec()
}

// TestCheckComparesReports requires that engine.Check finds reported values that differ between
// parallelisms. The error must name the queue, the value and the superstep.
func TestCheckComparesReports(t *testing.T) {
	for name, of := range map[string]struct {
		step  int
		build func(d *engine.Dataset) *engine.Dataset
	}{
		"draws": {2, func(d *engine.Dataset) *engine.Dataset {
			return reporting(d, func(ctx *comqueue.ComContext) error {
				ctx.Report("steady", float64(ctx.StepNo()))
				if ctx.StepNo() >= 2 {
					ctx.Report("r", rand.Float64())
				}
				return nil
			})
		}},
		"counter of shards": {1, func(d *engine.Dataset) *engine.Dataset {
			n := 0.0
			return reporting(d, func(ctx *comqueue.ComContext) error {
				return ctx.ForShards(func(shard int) error {
					n++
					ctx.ReportMax("steady", shard, 1)
					ctx.ReportSum("r", shard, n*float64(shard))
					return nil
				})
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			job := engine.Define("reports", func(b *engine.Builder, _ struct{}) error {
				engine.Collect(of.build(operators.Range(b, 0, capturedRows)), "out")
				return nil
			})
			err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
			var found *engine.CheckError
			require.ErrorAs(t, err, &found)
			require.Equal(t, []any{`queue "q"`, "r", of.step}, []any{found.Operator, found.Key, found.Superstep}, "%v", err)
			require.Contains(t, found.Site, "check_reports_test.go:")
			require.ErrorContains(t, err, `reports as "r"`)
		})
	}
}

// TestCheckComparesAccumulators requires that engine.Check finds accumulators that differ
// between parallelisms. The error must name the operator and the shard.
func TestCheckComparesAccumulators(t *testing.T) {
	var at string
	job := engine.Define("accumulates", func(b *engine.Builder, _ struct{}) error {
		count := func(s *operators.Shard[int64], _ func(int64)) error {
			s.Accumulate("rows", s.Index, float64(s.Len()))
			if s.Index >= inShard {
				s.Accumulate("a", s.Index, rand.Float64())
			}
			return nil
		}
		counted := operators.MapPartition(operators.Range(b, 0, capturedRows), count)
		at = before()
		engine.Collect(counted, "out")
		return nil
	})
	err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
	var found *engine.CheckError
	require.ErrorAs(t, err, &found)
	require.Equal(t, []any{"MapPartition", at, "a", inShard}, []any{found.Operator, filepath.Base(found.Site), found.Key, found.Shard}, "%v", err)
	require.ErrorContains(t, err, `accumulates as "a"`)
}

// TestCheckOfSteadyReports requires no error if all reported values are the same, including
// NaN.
func TestCheckOfSteadyReports(t *testing.T) {
	job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
		rows := operators.MapPartition(operators.Range(b, 0, capturedRows), func(s *operators.Shard[int64], emit func(int64)) error {
			for v := range s.Rows() {
				s.Accumulate("a", s.Index, 1/float64(v+1))
				emit(v)
			}
			return nil
		})
		engine.Collect(reporting(rows, func(ctx *comqueue.ComContext) error {
			if ctx.StepNo() != 2 {
				ctx.Report("sometimes", 0/(float64(ctx.StepNo())-3))
			}
			return ctx.ForShards(func(shard int) error { ctx.ReportSum("sum", shard, 1/float64(shard+1)); return nil })
		}), "out")
		return nil
	})
	require.NoError(t, engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards)))
}

// callsOfAll is a package variable that the user function of TestCheckTellsOfVariables changes.
var callsOfAll int64

// TestCheckTellsOfVariables checks a job whose function changes a package variable, so that
// even two runs at the same settings differ. It requires an error that suggests to look for
// such a variable.
func TestCheckTellsOfVariables(t *testing.T) {
	job := engine.Define("global", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(operators.Map(operators.Range(b, 0, 100), func(int64) int64 { return atomic.AddInt64(&callsOfAll, 1) }), "out")
		return nil
	})
	err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
	require.ErrorContains(t, err, "two runs by the same settings differ as well, so look for ")
	require.ErrorContains(t, err, "a variable of the package that the function changes")
}

// TestCheckNamesStagesOfReplicas requires that if a replicated object differs among subtasks,
// the error names the stage that made the difference and the usual causes.
func TestCheckNamesStagesOfReplicas(t *testing.T) {
	leaks := shared.Replicated("leaks", shared.Float64s())
	even := func(ctx *comqueue.ComContext) error { leaks.Put(ctx, []float64{float64(ctx.StepNo())}); return nil }
	reads := func(ctx *comqueue.ComContext) error { leaks.Get(ctx); return nil }
	odd := func(ctx *comqueue.ComContext) error {
		if ctx.StepNo() == 2 {
			leaks.Get(ctx)[0] += float64(ctx.TaskID())
		}
		return nil
	}
	at := before() // the line on which the function odd ends
	for name, workers := range map[string]bool{"workers": true, "a whole": false} {
		t.Run(name, func(t *testing.T) {
			build := func(b *engine.Builder) error {
				rows := comqueue.New(b, "q").Do(even).
					Add(comqueue.Repeat(2, nil, comqueue.Named("odd one", comqueue.Do(odd)), comqueue.Do(reads))).
					Do(reads).SetMaxIter(4).
					CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]measured, error) { return []measured{{1, 2}}, nil })).Exec()
				engine.Collect(rows, "out")
				return nil
			}
			var err error
			if workers {
				job := engine.Define("replicas", func(b *engine.Builder, _ struct{}) error { return build(b) })
				err = engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
			} else { // arguments that cannot be sent to workers
				job := engine.Define("replicas", func(b *engine.Builder, _ func()) error { return build(b) })
				err = engine.Check(context.Background(), job, nil, engine.Shards(checkShards))
			}
			require.ErrorContains(t, err, `the replicated object "leaks" differs between subtask 0 and subtask 1 at the beginning of superstep 3`)
			require.ErrorContains(t, err, `the stage "odd one" (check_reports_test.go:`)
			require.NotContains(t, err.Error(), at) // the error names the stage by its first line
			for _, cause := range []string{"TaskID", "captures and changes", "map", "math/rand"} {
				require.ErrorContains(t, err, cause)
			}
		})
	}
}
