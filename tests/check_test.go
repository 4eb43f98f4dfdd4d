package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

type measured struct {
	Group int64
	Value float64
}

// before returns the caller's file and the number of the line above the caller's line, in the
// format in which errors name the positions of operators.
func before() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line-1)
}

func groupSums(s *operators.Shard[measured], emit func(measured)) error {
	groups := map[int64]float64{}
	for v := range s.Rows() {
		groups[v.Group] += v.Value
	}
	for group, sum := range groups { // Go iterates over a map in an order that differs from run to run
		emit(measured{group, sum})
	}
	return nil
}

// seen is a counter that is not reset between runs. So no two runs see the same values,
// whatever the order of their subtasks.
var seen atomic.Int64

// leaking has functions that add an operator whose user function depends on something other
// than its rows, for rows of shard inShard only. The key of the map names what the user
// function depends on. The functions return the operator's dataset, and the operator and line
// that an error must name.
var leaking = map[string]func(rows *engine.Dataset) (leaks *engine.Dataset, op, at string){
	"map iteration": func(rows *engine.Dataset) (*engine.Dataset, string, string) {
		leaks := operators.MapPartition(rows, groupSums)
		return leaks, "MapPartition", before()
	},
	"captured counter": func(rows *engine.Dataset) (*engine.Dataset, string, string) {
		count := func(v measured) measured {
			if n := seen.Add(1); v.Group == inShard {
				v.Value += float64(n)
			}
			return v
		}
		leaks := operators.Map(rows, count)
		return leaks, "Map", before()
	},
	"math/rand": func(rows *engine.Dataset) (*engine.Dataset, string, string) {
		keep := func(v measured) bool { return v.Group != inShard || rand.Float64() < 0.5 }
		leaks := operators.Filter(rows, keep)
		return leaks, "Filter", before()
	},
	"time": func(rows *engine.Dataset) (*engine.Dataset, string, string) {
		stamp := func(v measured) measured {
			if v.Group == inShard {
				v.Value = float64(time.Now().UnixNano() % 1e9)
			}
			return v
		}
		leaks := operators.Map(rows, stamp)
		return leaks, "Map", before()
	},
}

// inShard is the number of the shard, and also of the group, of the rows for which the user
// functions of leaking depend on something other than their rows.
const inShard = 5

const checkShards, checkRows = 8, 8 * 60

// ordered returns rows. The number of a row's group is the number of its shard. But if groups
// is true, each row of shard inShard has a different group, which the case "map iteration"
// needs.
func ordered(b *engine.Builder, groups bool) *engine.Dataset {
	return operators.Generate(b, checkRows, func(draws sharding.Random, i int64) measured {
		v := measured{Group: i * checkShards / checkRows, Value: draws.Float64()}
		if groups && v.Group == inShard {
			v.Group = i
		}
		return v
	})
}

// TestCheckNamesWhatLeaks checks jobs with an operator of leaking between correct operators.
// The error must name the operator, its line and the shard, and no output may be written.
func TestCheckNamesWhatLeaks(t *testing.T) {
	for name, leak := range leaking {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.csv")
			var op, at string
			job := engine.Define("leak", func(b *engine.Builder, _ struct{}) error {
				rows := operators.Filter(ordered(b, name == "map iteration"), func(v measured) bool { return v.Value >= 0 })
				var leaks *engine.Dataset
				leaks, op, at = leak(rows)
				operators.WriteCSV(operators.Map(leaks, func(v measured) measured { v.Value++; return v }), out, operators.CSVWriteOptions{})
				return nil
			})
			err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
			var found *engine.CheckError
			require.ErrorAs(t, err, &found)
			require.Equal(t, []any{"leak", op, at, inShard}, []any{found.Job, found.Operator, filepath.Base(found.Site), found.Shard}, "%v", err)
			for _, cause := range []string{"map", "math/rand", "clock"} {
				require.ErrorContains(t, err, cause)
			}
			require.NoFileExists(t, out)
		})
	}
}

// TestCheckNamesObjectsOfQueues checks a queue with an object whose value depends on the time
// from superstep 3 on. It requires an error that names the object.
func TestCheckNamesObjectsOfQueues(t *testing.T) {
	steady := shared.Replicated("steady", shared.Int())
	leaks := shared.Replicated("leaks", shared.Float64s())
	moment := time.Now()
	job := engine.Define("queue", func(b *engine.Builder, _ struct{}) error {
		rows := comqueue.New(b, "train").
			Do(func(ctx *comqueue.ComContext) error {
				steady.Put(ctx, ctx.StepNo())
				v := 0.0
				if ctx.StepNo() == 3 {
					v = float64(time.Since(moment))
					if ctx.TaskID() > 0 { // all subtasks use the value of subtask 0; otherwise the check that replicas are equal would fail
						v = 0
					}
				}
				if ctx.TaskID() == 0 || ctx.StepNo() != 3 {
					leaks.Put(ctx, []float64{v})
				}
				return nil
			}).
			Add(comqueue.Broadcast(leaks)).
			SetMaxIter(4).
			CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]measured, error) { return []measured{{1, 2}}, nil })).
			Exec()
		engine.Collect(rows, "rows")
		return nil
	})
	err := engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards))
	var found *engine.CheckError
	require.ErrorAs(t, err, &found)
	require.Equal(t, []any{`queue "train"`, 3, "leaks"}, []any{found.Operator, found.Superstep, found.Key}, "%v", err)
	require.Contains(t, found.Site, "check_test.go:")
}

// TestCheckOfCorrectJobs requires no error for correct jobs of every kind.
func TestCheckOfCorrectJobs(t *testing.T) {
	job := engine.Define("correct", func(b *engine.Builder, _ struct{}) error {
		rows := ordered(b, true)
		parts := operators.Split(operators.Rebalance(rows), 3, 1)
		grouped := operators.GroupBy(parts[0], "group").Aggregate(operators.SumOf("value").As("value"))
		engine.Collect(operators.Sort(operators.Union(grouped, operators.Select(parts[1], "group", "value")), operators.Desc("value")), "sorted")
		points := operators.Vectorize(rows, "features", "value")
		model := kmeans.Train(points, kmeans.Params{VectorCol: "features", K: 3, MaxIter: 4})
		operators.WriteCSV(operators.Select(kmeans.Predict(points, model, kmeans.PredictOptions{}), "group", "value"), filepath.Join(os.TempDir(), "is not written", "out.csv"), operators.CSVWriteOptions{})
		return nil
	})
	require.NoError(t, engine.Check(context.Background(), job, struct{}{}, engine.Shards(checkShards)))
}

// TestCheckFlag runs programs of the examples with --check. They must print one sentence and
// nothing else.
func TestCheckFlag(t *testing.T) {
	for _, pkg := range []string{"./examples/kmeans", "./examples/queue"} {
		dir := t.TempDir()
		got := programs.Execute(t, nil, programs.Build(t, pkg), "--check", "--shards", "8")
		require.Zero(t, got.Code, "%s: %s", pkg, got.Stderr)
		require.Regexp(t, `^checked: \d+ operators in 8 shards and [1-9]\d* supersteps gave the same with parallelism 1 and batches of 1024 rows and with parallelism 7, 2 workers and batches of 7 rows\n$`, got.Stdout, pkg)
		require.Empty(t, got.Stderr)
		require.NoDirExists(t, filepath.Join(dir, "out"))
	}
}
