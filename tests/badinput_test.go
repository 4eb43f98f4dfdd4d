package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// This file tests bad input from end to end. Every job reads a file or generates rows, and
// writes predictions or rows. Between input and output each job has one fault. The run must end
// with an error that says what is wrong and where. It must leave no goroutine, no allocated
// memory and no new file.

// jobDir has the paths of the input and the output of a job.
type jobDir struct{ input, output string }

// badJob is a job with one fault, and texts of the expected error.
type badJob struct {
	name  string
	input string // text of the input file; if it is empty, there is no file
	build func(b *engine.Builder, w jobDir)
	opts  []engine.Option
	says  []string // texts that the error must contain
}

// cluster returns a job that reads the input, clusters its rows by the columns a and b, and
// writes the predictions.
func cluster(o operators.CSVOptions, p kmeans.Params) func(b *engine.Builder, w jobDir) {
	return func(b *engine.Builder, w jobDir) {
		o.Header = true
		points := operators.Vectorize(operators.ReadCSV(b, w.input, o), "features", "a", "b")
		p.VectorCol = "features"
		model := kmeans.Train(points, p)
		operators.WriteCSV(kmeans.Predict(points, model, kmeans.PredictOptions{}), w.output, operators.CSVWriteOptions{})
	}
}

// floats has the options that read both columns as float64.
var floats = operators.CSVOptions{Types: map[string]string{"a": "float64", "b": "float64"}}

// numbered is a row of generated input.
type numbered struct{ ID, Group int64 }

// mapped returns a job that generates 1,000 rows, applies f, and writes the results.
func mapped(f func(numbered) (numbered, error)) func(b *engine.Builder, w jobDir) {
	return func(b *engine.Builder, w jobDir) {
		rows := operators.Generate(b, 1000, func(_ sharding.Random, i int64) numbered { return numbered{i, i % 10} })
		operators.WriteCSV(operators.MapErr(operators.PartitionByHash(rows, "group"), f), w.output, operators.CSVWriteOptions{})
	}
}

// queued returns a job that writes the rows of a queue to which change adds stages.
func queued(change func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue) func(b *engine.Builder, w jobDir) {
	return func(b *engine.Builder, w jobDir) {
		rows := operators.Generate(b, 1000, func(_ sharding.Random, i int64) numbered { return numbered{i, i % 10} })
		q := comqueue.New(b, "totals").
			InitWithPartitionedData(comqueue.PartitionedRows("rows"), rows).
			InitWithBroadcastData(broadcastRows, operators.First(rows, 5)).
			CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]numbered, error) { return []numbered{{1, 1}}, nil }))
		operators.WriteCSV(change(q).Exec(), w.output, operators.CSVWriteOptions{})
	}
}

var (
	broadcastRows = comqueue.BroadcastRows("side")
	unequal       = shared.Scratch[[]float64]("unequal")
	neverPut      = shared.Scratch[[]float64]("forgotten")
	errOfUser     = errors.New("the user's own error")
)

// differing builds a job that writes ten rows when it is built for the first time, and eleven
// rows when it is built for the second time.
func differing(b *engine.Builder, w jobDir) {
	path := w.input + ".builds"
	text, err := os.ReadFile(path)
	if err != nil {
		text = nil
	}
	if os.WriteFile(path, append(text, '.'), 0o644) != nil {
		return
	}
	if len(text) > 0 {
		os.Remove(path)
	}
	rows := operators.Generate(b, 1000, func(_ sharding.Random, i int64) numbered { return numbered{i, i} })
	operators.WriteCSV(operators.First(rows, int64(10+len(text))), w.output, operators.CSVWriteOptions{})
}

const goodRows = "a,b\n1,2\n2,3\n9,8\n8,9\n"

var badJobs = []badJob{
	{
		name:  "missing file",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"in.csv", "does not exist", "badinput_test.go:"},
	},
	{
		name: "empty file", input: "\xef\xbb\xbf",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"in.csv", "empty", "badinput_test.go:"},
	},
	{
		name: "header only", input: "a,b\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"no rows"},
	},
	{
		name: "too few fields", input: goodRows + "5\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"in.csv:6", "1 field", "2", "ReadCSV", "badinput_test.go:"},
	},
	{
		name: "too many fields", input: goodRows + "5,6,7\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"in.csv:6", "3 fields", "2", "subtask"},
	},
	{
		name: "a field that does not parse", input: goodRows + "3,x7\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"in.csv:6", `column "b"`, `"x7"`, "float64", "subtask", "shard"},
	},
	{
		name: "an unclosed quote", input: goodRows + "5,\"6\n7,8\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"in.csv:6", "quote"},
	},
	{
		name: "a file that changes between building and reading", input: goodRows,
		build: func(b *engine.Builder, w jobDir) {
			rows := operators.ReadCSV(b, w.input, operators.CSVOptions{Header: true})
			operators.WriteCSV(rows, w.output, operators.CSVWriteOptions{})
			if err := os.WriteFile(w.input, []byte(goodRows+"5,5\n"), 0o644); err != nil {
				b.Errorf("%w", err)
			}
		},
		says: []string{"in.csv", "changed"},
	},
	{
		name: "a column that does not exist", input: "aa,b,c\n1,2,3\n",
		build: cluster(operators.CSVOptions{}, kmeans.Params{K: 2}),
		says:  []string{"badinput_test.go:", `"a"`, `"aa"`, "Vectorize"},
	},
	{
		name: "a column of the wrong type", input: "a,b\n1,red\n",
		build: cluster(operators.CSVOptions{}, kmeans.Params{K: 1}),
		says:  []string{"badinput_test.go:", `column "b" is utf8`, "Vectorize"},
	},
	{
		name: "NaN in features, which is missing", input: goodRows + "NaN,1\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{`column "a" is null`},
	},
	{
		name: "NaN in features, which is a number", input: goodRows + "NaN,1\n",
		build: cluster(operators.CSVOptions{Types: floats.Types, Nulls: []string{""}}, kmeans.Params{K: 2}),
		says:  []string{"NaN", `"features"`},
	},
	{
		name: "an infinity in features", input: goodRows + "1,-Inf\n",
		build: cluster(floats, kmeans.Params{K: 2}),
		says:  []string{"-Inf", `"features"`},
	},
	{
		name: "no clusters", input: goodRows,
		build: cluster(floats, kmeans.Params{}),
		says:  []string{"badinput_test.go:", "K is 0"},
	},
	{
		name: "more clusters than distinct points", input: goodRows + goodRows[4:],
		build: cluster(floats, kmeans.Params{K: 5}),
		says:  []string{"5 clusters are more than the 4 distinct points", "4 distinct"},
	},
	{
		name: "parallelism above shards", input: goodRows,
		build: cluster(floats, kmeans.Params{K: 2}),
		opts:  []engine.Option{engine.Parallelism(9)},
		says:  []string{"--parallelism is 9", "8 shards", "--shards to 16"},
	},
	{
		name: "shards that are no power of two", input: goodRows,
		build: cluster(floats, kmeans.Params{K: 2}),
		opts:  []engine.Option{engine.Shards(12)},
		says:  []string{"--shards is 12", "power of two"},
	},
	{
		name:  "two builds that differ",
		build: differing,
		says:  []string{"builds differently each time", "10", "11"},
	},
	{
		name: "a function that panics",
		build: mapped(func(r numbered) (numbered, error) {
			if r.ID == 777 {
				panic("a panic of the user's")
			}
			return r, nil
		}),
		says: []string{"a panic of the user's", "MapErr", "badinput_test.go:", "subtask", "shard", "panic"},
	},
	{
		name: "a function that returns an error",
		build: mapped(func(r numbered) (numbered, error) {
			if r.ID == 777 {
				return r, errOfUser
			}
			return r, nil
		}),
		says: []string{errOfUser.Error(), "MapErr", "badinput_test.go:", "subtask", "shard", "row"},
	},
	{
		name: "a queue without an end",
		build: queued(func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
			return q.Do(func(*comqueue.ComContext) error { return nil })
		}),
		says: []string{`"totals"`, "SetCompareCriterionOfNode0", "SetMaxIter", "badinput_test.go:"},
	},
	{
		name: "a key never put",
		build: queued(func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
			return q.Add(comqueue.AllReduce(neverPut)).SetMaxIter(3)
		}),
		says: []string{`"forgotten"`, "never", "badinput_test.go:"},
	},
	{
		name: "buffers of unequal length",
		build: queued(func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
			return q.Do(func(ctx *comqueue.ComContext) error {
				unequal.Put(ctx, make([]float64, 3+ctx.TaskID()/2))
				return nil
			}).Add(comqueue.AllReduce(unequal)).SetMaxIter(3)
		}),
		says: []string{`"unequal"`, "3", "4", "2"},
	},
	{
		// The job has only one subtask. If several subtasks modified the object, there would be
		// a data race.
		name: "a broadcast object that is modified",
		build: queued(func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
			return q.Do(func(ctx *comqueue.ComContext) error {
				if ctx.StepNo() == 2 {
					broadcastRows.Get(ctx).Ints("id")[0]++
				}
				return nil
			}).SetMaxIter(5)
		}),
		opts: []engine.Option{engine.CheckBroadcasts(true), engine.Parallelism(1)},
		says: []string{`queue "totals"`, `"side" was modified`, "superstep 2"},
	},
	{
		name: "an output that exists", input: goodRows,
		build: func(b *engine.Builder, w jobDir) {
			operators.WriteCSV(operators.ReadCSV(b, w.input, operators.CSVOptions{Header: true}), w.input, operators.CSVWriteOptions{})
		},
		says: []string{"in.csv exists", "--if-exists replace"},
	},
	{
		name: "a directory that cannot be written", input: goodRows,
		build: func(b *engine.Builder, w jobDir) {
			below := filepath.Join(w.input, "out.csv") // cannot be created, because the input is a file, not a directory
			operators.WriteCSV(operators.ReadCSV(b, w.input, operators.CSVOptions{Header: true}), below, operators.CSVWriteOptions{})
		},
		says: []string{"in.csv", "out.csv", "not a directory"},
	},
	{
		name: "an output in no directory", input: goodRows,
		build: func(b *engine.Builder, w jobDir) {
			operators.WriteCSV(operators.ReadCSV(b, w.input, operators.CSVOptions{Header: true}), w.output+"/none/out.csv", operators.CSVWriteOptions{})
		},
		says: []string{"out.csv", "does not exist"},
	},
}

func TestBadInput(t *testing.T) {
	for _, job := range badJobs {
		t.Run(job.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			err := runBad(t, job)
			require.Error(t, err)
			for _, words := range job.says {
				require.ErrorContains(t, err, words)
			}
		})
	}
}

// runBad runs a job in a new directory and returns the error of the job. It requires that the
// job leaves no new file in the directory.
func runBad(t *testing.T, job badJob) error {
	t.Helper()
	dir := t.TempDir()
	w := jobDir{filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv")}
	if job.input != "" {
		require.NoError(t, os.WriteFile(w.input, []byte(job.input), 0o644))
	}
	spill := t.TempDir()
	before := programs.Listing(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	opts := append([]engine.Option{
		engine.Parallelism(3), engine.Shards(8), engine.SpillDir(spill), engine.Allocator(batchtest.Allocator(t)),
	}, job.opts...)
	result, err := engine.Run(ctx, engine.Define("bad", func(b *engine.Builder, _ struct{}) error {
		job.build(b, w)
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, ctx.Err(), "the run must end within the time limit: %v", err)
	if err == nil {
		result.Release()
	}
	require.Equal(t, before, programs.Listing(t, dir), "the job must leave no new files")
	require.Empty(t, programs.Listing(t, spill), "the job must leave no temporary files")
	return err
}

// TestFewRows requires that jobs with unusual but valid input succeed.
func TestFewRows(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	require.NoError(t, os.WriteFile(input, []byte(goodRows), 0o644))
	var want string
	for _, p := range []int{1, 8} { // 8 subtasks are more than the 4 rows
		output := filepath.Join(dir, fmt.Sprint(p))
		result, err := engine.Run(t.Context(), engine.Define("few", func(b *engine.Builder, _ struct{}) error {
			cluster(floats, kmeans.Params{K: 2})(b, jobDir{input, output})
			return nil
		}), struct{}{}, engine.Parallelism(p), engine.Shards(8))
		require.NoError(t, err)
		result.Release()
		text, err := os.ReadFile(output)
		require.NoError(t, err)
		if want == "" {
			want = string(text)
		}
		require.Equal(t, want, string(text))
		require.Equal(t, 5, strings.Count(want, "\n"))
	}
}

// TestSkippedRowsAreCounted requires that a job with OnError Skip succeeds and says how many
// rows it skipped.
func TestSkippedRowsAreCounted(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	require.NoError(t, os.WriteFile(input, []byte(goodRows+"1\nx,2\n4,4,4\n6,6\n"), 0o644))
	for _, p := range []int{1, 3} {
		result, err := engine.Run(t.Context(), engine.Define("skip", func(b *engine.Builder, _ struct{}) error {
			o := floats
			o.Header, o.OnError = true, operators.Skip
			engine.Collect(operators.ReadCSV(b, input, o), "rows")
			return nil
		}), struct{}{}, engine.Parallelism(p), engine.Shards(8))
		require.NoError(t, err)
		recs, err := arrowbridge.Records(result, "rows")
		require.NoError(t, err)
		var rows, skipped int64
		for _, rec := range recs {
			rows += rec.NumRows()
		}
		for _, v := range result.Report.Vertices {
			for _, s := range v.Subtasks {
				for _, o := range s.Operators {
					for _, c := range o.Counters {
						if c.Name == "skipped rows" {
							skipped += c.Value
						}
					}
				}
			}
		}
		require.Equal(t, []int64{5, 3}, []int64{rows, skipped})
		result.Release()
	}
}
