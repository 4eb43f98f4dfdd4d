package operators

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// testShards is the number of shards of jobs in tests. It is small, so that tests are fast, but
// not less than the largest parallelism.
const testShards = 8

// setting has the options of a run: the parallelism, the number of rows per batch, and the
// number of workers, which is 0 for a run without workers.
type setting struct{ P, Rows, Workers int }

// diskSetting has the options of a run that may put rows on disk. A budget of 0 means no limit.
type diskSetting struct {
	budget     int64
	p, workers int
}

func (s setting) String() string {
	if s.Workers == 0 {
		return fmt.Sprintf("p=%d,rows=%d", s.P, s.Rows)
	}
	return fmt.Sprintf("p=%d,rows=%d,workers=%d", s.P, s.Rows, s.Workers)
}

func (s setting) options() []engine.Option {
	return []engine.Option{engine.Parallelism(s.P), engine.BatchRows(s.Rows), engine.Workers(s.Workers)}
}

// forEachSetting calls run with the options of a job: at parallelism 1, 2, 3 and 8, with 1, 7
// and 1024 rows per batch, without and with several workers, and with a checked allocator. Only
// in a soak test does it use all combinations of these values. run may append other options.
func forEachSetting(t *testing.T, run func(t *testing.T, opts ...engine.Option)) {
	t.Helper()
	spill := t.TempDir()
	for _, s := range append(asAWhole(), testsize.AsWorkers[setting]()...) {
		t.Run(s.String(), func(t *testing.T) {
			run(t, append(s.options(), engine.Shards(testShards),
				engine.Allocator(batchtest.Allocator(t)), engine.SpillDir(spill))...)
		})
	}
}

// drawWorkers returns the option Workers for a run of a property test. A third of the runs get
// several workers.
func drawWorkers(rt *rapid.T) engine.Option {
	return engine.Workers(rapid.SampledFrom([]int{0, 0, 0, 0, 2, 3}).Draw(rt, "workers"))
}

// outcome runs a job with one result and returns a line of text for each row: the shard and the
// values, separated by " | ". Floats with different bits have different text. The first line
// describes the columns.
func outcome(t *testing.T, build func(b *engine.Builder) *engine.Dataset, opts ...engine.Option) []string {
	t.Helper()
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(withShard(build(b)), "out")
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	defer result.Release()
	schema, err := result.Schema("out")
	require.NoError(t, err)
	recs, err := recordsOf(result, "out")
	require.NoError(t, err)
	var names []string
	for _, c := range batch.Columns(arrowrows.Arrow(schema)) {
		names = append(names, c.String())
	}
	lines := []string{strings.Join(names, " | ")}
	for _, rec := range recs {
		require.NoError(t, batch.Validate(rec))
		require.True(t, rec.Schema().Equal(arrowrows.Arrow(schema)), "a batch has the columns %v; they must equal the schema %v", rec.Schema(), schema)
		lines = append(lines, batchtest.Rows(rec)...)
	}
	return lines
}

// runOnly runs a job and ignores its results.
func runOnly(t *testing.T, build func(b *engine.Builder) *engine.Dataset, opts ...engine.Option) {
	t.Helper()
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(build(b), "out")
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	result.Release()
}

// sameEverywhere runs the job at every setting, requires that the outcome is always the same,
// and returns it.
func sameEverywhere(t *testing.T, build func(b *engine.Builder) *engine.Dataset) []string {
	t.Helper()
	var first []string
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		got := outcome(t, build, opts...)
		if first == nil {
			first = got
		}
		require.Equal(t, first, got)
	})
	return first
}

// requireRows requires that the job's result has these columns and rows at every setting.
// Columns are written as "name type" or "name type null", and rows as outcome writes them.
func requireRows(t *testing.T, columns string, rows []string, build func(b *engine.Builder) *engine.Dataset) {
	t.Helper()
	want := append([]string{"shard int64"}, rows...)
	if columns != "" {
		want[0] += " | " + columns
	}
	require.Equal(t, want, sameEverywhere(t, build))
}

// place returns the shard of row i of n rows in memory. It searches all shards, so that it does
// not use the formula that the tests check.
func place(i, n int) int {
	for s := range testShards {
		if i >= s*n/testShards && i < (s+1)*n/testShards {
			return s
		}
	}
	panic("no shard")
}

// cutShard splits a line of an outcome into the shard and the rest.
func cutShard(text string) (shard, rest string, ok bool) { return strings.Cut(text, " | ") }

// line returns the expected text of a row.
func line(values ...any) string {
	cells := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			cells[i] = "null"
		case float64:
			cells[i] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			cells[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(cells, " | ")
}

// runError runs a job that ends in Collect, requires that it fails, and returns the error.
func runError(t *testing.T, build func(b *engine.Builder) *engine.Dataset, opts ...engine.Option) error {
	t.Helper()
	opts = append([]engine.Option{engine.Shards(testShards), engine.Allocator(batchtest.Allocator(t)), engine.SpillDir(t.TempDir())}, opts...)
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		if d := build(b); d != nil {
			engine.Collect(d, "out")
		}
		return nil
	}), struct{}{}, opts...)
	if err == nil {
		result.Release()
	}
	require.Error(t, err)
	return err
}

// requireMisuse requires that the build of a job fails because of one misuse in the calling
// test's file, and that the message contains all words.
func requireMisuse(t *testing.T, build func(b *engine.Builder) *engine.Dataset, words ...string) {
	t.Helper()
	err := runError(t, build)
	var refused *engine.BuildError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Misuses, 1, "%v", err)
	require.Contains(t, refused.Misuses[0].Site, "_test.go:")
	for _, word := range words {
		require.ErrorContains(t, err, word)
	}
}

// requirePoisonSpreads requires that an operator on a poisoned dataset does not report another
// misuse.
func requirePoisonSpreads(t *testing.T, operator func(d *engine.Dataset) *engine.Dataset) {
	t.Helper()
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		poisoned := FromSlice(b, []chan int{})
		if d := operator(poisoned); d != nil {
			require.True(t, d.Poisoned())
			return d
		}
		return nil
	}, "FromSlice", "chan int")
}

// requireNilDataset requires that an operator refuses a nil dataset and that the error names
// the line of the call.
func requireNilDataset(t *testing.T, operator func(d *engine.Dataset) *engine.Dataset) {
	t.Helper()
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return operator(nil) }, "dataset is nil")
}

// withShard prepends a column with the shard of a row.
func withShard(d *engine.Dataset) *engine.Dataset {
	if d == nil || d.Poisoned() {
		return d
	}
	fields := append([]arrow.Field{{Name: "shard", Type: arrow.PrimitiveTypes.Int64}}, arrowrows.Arrow(d.Schema()).Fields()...)
	schema := arrow.NewSchema(fields, nil)
	return d.Builder().Add(engine.Spec{
		Op:       "WithShard",
		Schema:   arrowrows.Schema(schema),
		Inputs:   []engine.Port{{From: d}},
		Operator: func() engine.Operator { return &shardTag{schema: schema} },
	})
}

type shardTag struct {
	engine.BaseOperator
	schema *arrow.Schema
}

func (o *shardTag) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	bld := array.NewInt64Builder(c.Allocator)
	defer bld.Release()
	for range rows.NumRows() {
		bld.Append(int64(shard))
	}
	col := bld.NewArray()
	defer col.Release()
	rec := array.NewRecord(o.schema, append([]arrow.Array{col}, rows.Columns()...), rows.NumRows())
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// recordsOf returns collected rows as records.
func recordsOf(r *engine.Result, name string) ([]arrow.Record, error) {
	batches, err := r.Batches(name)
	return arrowrows.Records(batches), err
}

// fromRecords is FromBatches for records.
func fromRecords(b *engine.Builder, recs []arrow.Record) *engine.Dataset {
	return FromBatches(b, arrowrows.Batches(recs))
}

// ofRecords returns a function of batches that calls f, a function of records.
func ofRecords(f func(*engine.Context, arrow.Record) (arrow.Record, error)) func(*engine.Context, engine.Batch) (engine.Batch, error) {
	return func(c *engine.Context, rows engine.Batch) (engine.Batch, error) {
		made, err := f(c, arrowrows.Record(rows))
		return arrowrows.Batch(made), err
	}
}
