package engine_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// splits are the ways in which tests divide slots among 1 to 4 workers. Each element has the
// number of slots of each worker.
var splits = [][]int{{1}, {3}, {1, 1}, {2, 3}, {1, 2, 1}, {1, 1, 1, 1}, {3, 2, 1, 2}}

// sameBits runs a job in this process and on workers, and compares the results and the files
// that the job writes to the given directory.
func sameBits[A any](t *testing.T, job *engine.Job[A], args func(out string) A, opts ...engine.Option) {
	t.Helper()
	for _, slots := range splits {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			parallelism := 0
			for _, n := range slots {
				parallelism += n
			}
			var output strings.Builder
			dir := t.TempDir()
			local := append([]engine.Option{engine.Shards(16), engine.Parallelism(parallelism), engine.Stdout(&output)}, opts...)
			want, err := engine.Run(t.Context(), job, args(dir), local...)
			require.NoError(t, err)
			defer want.Release()
			wantFiles := takeFiles(t, dir)
			got := engine.RunOnWorkers(t, job, args(dir), slots, opts...)
			require.NotNil(t, got.Result, "%v", got.Failures)
			defer got.Result.Release()
			require.Equal(t, engine.ResultText(want), engine.ResultText(got.Result))
			require.NotEmpty(t, engine.ResultText(want))
			require.Equal(t, output.String(), got.Output)
			require.Equal(t, wantFiles, takeFiles(t, dir))
		})
	}
}

// takeFiles reads and removes the files of a directory.
func takeFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return errors.Join(err, os.Remove(path))
	}))
	return files
}

// reading is a row with values of every magnitude.
type reading struct {
	Key   int64
	Value float64
	Label string
}

func makeReading(draws sharding.Random, i int64) reading {
	return reading{
		Key:   int64(draws.IntN(40)),
		Value: float64((draws.Float64() - 0.5) * math.Pow(10, float64(draws.IntN(24)-8))),
		Label: fmt.Sprintf("label %d", draws.IntN(5)),
	}
}

// outArgs are the arguments of a job that writes files.
type outArgs struct{ Out string }

func TestWorkersRunOperators(t *testing.T) {
	job := engine.Define("operators", func(b *engine.Builder, a outArgs) error {
		rows := operators.Generate(b, 3000, makeReading)
		halved := operators.Map(rows, func(r reading) reading { r.Value /= 2; return r })
		hashed := operators.PartitionByHash(halved, "key")
		engine.Collect(hashed, "hashed")
		engine.Collect(operators.GroupBy(operators.Rebalance(halved), "label").Aggregate(operators.SumOf("value"), operators.CountRows()), "sums")
		heads := operators.First(hashed, 20)
		engine.Collect(operators.MapWith(halved, heads, func(r reading, side []reading) (reading, error) {
			for _, s := range side {
				r.Value += s.Value
			}
			return r, nil
		}), "joined")
		sorted := operators.Sort(hashed, operators.Desc("value"))
		engine.Collect(sorted, "sorted")
		engine.Collect(operators.Filter(rows, func(reading) bool { return false }), "none")
		operators.WriteCSV(sorted, a.Out+"/sorted.csv", operators.CSVWriteOptions{})
		operators.WriteCSV(hashed, a.Out+"/parts", operators.CSVWriteOptions{PerShard: true})
		operators.Print(sorted, operators.PrintOptions{Rows: 5, Title: "largest"})
		engine.Collect(operators.MapPartition(hashed, func(s *operators.Shard[reading], emit func(reading)) error {
			for r := range s.Rows() {
				s.Accumulate("total", s.Index, r.Value)
			}
			return nil
		}), "seen")
		return nil
	})
	sameBits(t, job, func(out string) outArgs { return outArgs{out} }, engine.Seed(11))
}

func TestWorkersRunQueues(t *testing.T) {
	job := engine.Define("queues", func(b *engine.Builder, a outArgs) error {
		rows := operators.ReadCSV(b, "../examples/kmeans/data/iris.csv", operators.CSVOptions{
			Header: true, TrimSpace: true,
			Names: []string{"sepal_length", "sepal_width", "petal_length", "petal_width", "species"},
		})
		points := operators.Vectorize(rows, "features", "sepal_length", "sepal_width", "petal_length", "petal_width")
		model := kmeans.Train(points, kmeans.Params{VectorCol: "features", K: 3})
		engine.Collect(model, "model")
		operators.WriteCSV(kmeans.Predict(points, model, kmeans.PredictOptions{VectorCol: "features"}), a.Out+"/predicted.csv", operators.CSVWriteOptions{})
		return nil
	})
	sameBits(t, job, func(out string) outArgs { return outArgs{out} }, engine.Seed(3))
}

// TestWorkersOverTLS requires that rows and collectives are encrypted, at whatever addresses
// the workers listen.
func TestWorkersOverTLS(t *testing.T) {
	authority, err := security.NewAuthority()
	require.NoError(t, err)
	job := engine.Define("secure", func(b *engine.Builder, _ struct{}) error {
		rows := operators.Generate(b, 500, func(draws sharding.Random, i int64) []float64 { return []float64{draws.Float64(), draws.NormFloat64()} })
		points := operators.Map(rows, func(v []float64) point { return point{v} })
		engine.Collect(kmeans.Train(operators.Rebalance(points), kmeans.Params{VectorCol: "at", K: 4}), "model")
		return nil
	})
	want, err := engine.Run(t.Context(), job, struct{}{}, engine.Shards(16), engine.Parallelism(2))
	require.NoError(t, err)
	defer want.Release()
	got := engine.RunOnWorkersWith(t, job, struct{}{}, []int{1, 2, 1}, func(d *wire.Deployment) {
		d.Listen, d.Advertise = "0.0.0.0", "127.0.0.1"
		d.Credential.Authority = authority.PEM()
		d.Credential.Certificate, d.Credential.Key, err = authority.Issue(nil)
		require.NoError(t, err)
	})
	require.NotNil(t, got.Result, "%v", got.Failures)
	defer got.Result.Release()
	require.Equal(t, engine.ResultText(want), engine.ResultText(got.Result))
}

// TestWorkersAtPortsOfARange requires that each worker needs only one port of the range, for
// both rows and queues, and that a worker that finds no free port says so.
func TestWorkersAtPortsOfARange(t *testing.T) {
	job := engine.Define("ranged", func(b *engine.Builder, _ struct{}) error {
		points := operators.Map(operators.Generate(b, 60, func(draws sharding.Random, i int64) []float64 { return []float64{draws.Float64()} }),
			func(v []float64) point { return point{v} })
		engine.Collect(kmeans.Train(operators.Rebalance(points), kmeans.Params{VectorCol: "at", K: 2, MaxIter: 2}), "model")
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	run := func(ports wire.Ports) *engine.OnWorkers {
		return engine.RunOnWorkersWith(t, job, struct{}{}, []int{1, 1, 1}, func(d *wire.Deployment) { d.Ports = ports })
	}
	got := run(wire.Ports{First: taken - 60, Last: taken})
	require.NotNil(t, got.Result, "%v", got.Failures)
	got.Result.Release()
	got = run(wire.Ports{First: taken, Last: taken})
	require.Nil(t, got.Result)
	// A worker may learn of another worker's failure before it has tried to listen itself.
	cause := got.SomeFailure(t)
	require.Equal(t, wire.ClusterFailure, cause.Kind)
	require.Contains(t, cause.Message, fmt.Sprintf("listening at 127.0.0.1, ports %d-%d: none is free", taken, taken))
}

// point is a row with a vector.
type point struct{ At []float64 }

// TestWorkersOfAnotherSecret requires that a worker with the secret of another attempt cannot
// connect to the others, and that the job fails.
func TestWorkersOfAnotherSecret(t *testing.T) {
	job := engine.Define("mixed", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(operators.Rebalance(operators.Generate(b, 500, makeReading)), "rows")
		return nil
	})
	got := engine.RunOnWorkersWith(t, job, struct{}{}, []int{1, 1}, func(d *wire.Deployment) {
		if d.Worker == 1 {
			d.Credential.Secret = []byte("fedcba9876543210fedcba9876543210")
		}
	})
	require.Nil(t, got.Result)
	for _, f := range got.Failures {
		require.Equal(t, wire.PeerFailure, f.Kind, f.Message)
	}
}

// TestWorkersTellProgress requires that the progress of all workers adds up to all rows and all
// shards.
func TestWorkersTellProgress(t *testing.T) {
	job := engine.Define("progress", func(b *engine.Builder, _ struct{}) error {
		rows := operators.Generate(b, 2000, makeReading)
		engine.Collect(operators.PartitionByHash(rows, "key"), "rows")
		return nil
	})
	got := engine.RunOnWorkers(t, job, struct{}{}, []int{1, 2, 1})
	require.NotNil(t, got.Result, "%v", got.Failures)
	defer got.Result.Release()
	for v := range got.Result.Plan.Vertices {
		var rows int64
		shards := 0
		for _, p := range got.Progress {
			rows += p.Vertices[v].Rows
			shards += p.Vertices[v].ShardsDone
		}
		require.Equal(t, int64(2000), rows)
		require.Equal(t, 16, shards)
	}
}

// TestWorkersFail requires that the first cause of a failure is reported with its location, and
// that the other workers end.
func TestWorkersFail(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(r reading) error
		want []string
	}{
		"error": {func(reading) error { return errors.New("no such luck") }, []string{"operator Map (worker_cluster_test.go:", "subtask 2 of 4", "no such luck"}},
		"panic": {func(reading) error { panic("out of luck") }, []string{"operator Map (worker_cluster_test.go:", "subtask 2 of 4", "panic: out of luck", "worker_cluster_test.go:"}},
		"file":  {func(reading) error { _, err := os.Open("/nowhere/x"); return err }, []string{"open /nowhere/x: no such file", "paths of a job are those of its workers, here of task manager host1"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := engine.Define("failing", func(b *engine.Builder, a outArgs) error {
				rows := operators.Rebalance(operators.Generate(b, 3000, makeReading))
				failing := operators.MapPartition(rows, func(s *operators.Shard[reading], emit func(reading)) error {
					for r := range s.Rows() {
						if s.Index == 10 {
							if err := test.fail(r); err != nil {
								return err
							}
						}
						emit(r)
					}
					return nil
				})
				operators.WriteCSV(operators.Sort(failing, operators.Asc("value")), a.Out+"/rows.csv", operators.CSVWriteOptions{})
				return nil
			})
			dir := t.TempDir()
			got := engine.RunOnWorkers(t, job, outArgs{dir}, []int{2, 2})
			require.Nil(t, got.Result)
			f := got.SomeFailure(t)
			require.Equal(t, wire.UserFailure, f.Kind)
			require.Equal(t, 1, f.Worker)
			for _, want := range test.want {
				require.Contains(t, f.Message, strings.Replace(want, "operator Map (", "operator MapPartition (", 1))
			}
			require.Empty(t, takeFiles(t, dir), "no file may be left")
		})
	}
}

// TestWorkersOutputExists requires that a sink that cannot begin fails the job before anything
// runs.
func TestWorkersOutputExists(t *testing.T) {
	job := engine.Define("writing", func(b *engine.Builder, a outArgs) error {
		operators.WriteCSV(operators.Generate(b, 10, makeReading), a.Out+"/rows.csv", operators.CSVWriteOptions{})
		return nil
	})
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/rows.csv", []byte("kept"), 0o600))
	got := engine.RunOnWorkers(t, job, outArgs{dir}, []int{1, 1})
	f := got.SomeFailure(t)
	require.Contains(t, f.Message, "exists: choose another path")
	require.Contains(t, f.Message, "(paths of a job are those of its workers, here of task manager host0)")
	require.Equal(t, map[string]string{"/rows.csv": "kept"}, takeFiles(t, dir))

	require.NoError(t, os.WriteFile(dir+"/rows.csv", []byte("replaced"), 0o600))
	got = engine.RunOnWorkers(t, job, outArgs{dir}, []int{1, 1}, engine.IfExists(engine.Replace))
	require.NotNil(t, got.Result, "%v", got.Failures)
	got.Result.Release()
	require.NotContains(t, takeFiles(t, dir)["/rows.csv"], "replaced")
}
