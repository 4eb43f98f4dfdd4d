package operators

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/shared/sharding"
)

var numberSchema = arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)

// everyThird is a source with 50 numbers in two of every three shards.
type everyThird struct{}

func (everyThird) Open(*task.Context) error { return nil }
func (everyThird) Close() error             { return nil }

func (everyThird) ReadShard(c *task.Context, shard int, out task.Output) error {
	if shard%3 == 1 {
		return nil
	}
	b := array.NewInt64Builder(c.Allocator)
	defer b.Release()
	for i := range 50 {
		b.Append(int64(100*shard + i))
	}
	col := b.NewArray()
	defer col.Release()
	rec := array.NewRecord(numberSchema, []arrow.Array{col}, 50)
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// numberRows writes numbers as text.
type numberRows struct{ w io.Writer }

func (r numberRows) Close() error { return nil }

func (r numberRows) Write(rows arrow.Record) error {
	for _, n := range rows.Column(0).(*array.Int64).Int64Values() {
		if _, err := fmt.Fprintln(r.w, n); err != nil {
			return err
		}
	}
	return nil
}

// numberText is a text format, and numberColumns a columnar format.
var (
	numberText = FileFormat{Op: "WriteNumbers", Extension: "txt",
		Rows: func(w io.Writer) RowWriter { return recordWriter{numberRows{w}} },
		Head: func(w io.Writer) error { _, err := io.WriteString(w, "n\n"); return err }}
	numberColumns = FileFormat{Op: "WriteArrow", Extension: "arrow", File: newArrowFile}
)

const partShards = 16

// writeParts runs a job that writes the numbers with five subtasks on the given number of
// workers. sink returns the sink of a worker.
func writeParts(t *testing.T, workers int, sink func(worker int) *fileOutput) error {
	column := []plan.Column{{Name: "n", Type: "int64"}}
	g := &plan.Graph{Job: "parts", Shards: partShards, Nodes: []plan.Node{
		{ID: 0, Op: "Numbers", Schema: column},
		{ID: 1, Op: "WriteNumbers", Sink: true, Inputs: []plan.Input{{From: 0}}},
	}}
	p, err := plan.Compile(g, 5)
	require.NoError(t, err)
	slots := make([]sharding.Range, workers)
	for i := range slots {
		slots[i] = sharding.Split(p.Slots, workers, i)
	}
	env := task.Env{Allocator: batchtest.Allocator(t), SpillDir: t.TempDir()}
	_, err = task.RunParts(context.Background(), p, g, slots, func(worker int) (task.Bindings, task.Env, error) {
		out := sink(worker)
		out.mem, out.schema, out.shards, out.disk = env.Allocator, numberSchema, partShards, osDisk{}
		return task.Bindings{
			Sources:   map[plan.NodeID]func() task.Source{0: func() task.Source { return everyThird{} }},
			Operators: map[plan.NodeID]func() task.Operator{1: func() task.Operator { return &fileWriter{out: out} }},
			Sinks:     map[plan.NodeID]task.Sink{1: out},
		}, env, nil
	})
	return err
}

// TestOutputOfParts requires the same bytes for every number of workers, and no other files.
func TestOutputOfParts(t *testing.T) {
	for _, format := range []FileFormat{numberText, numberColumns} {
		for _, perShard := range []bool{false, true} {
			var want map[string]string
			for workers := 1; workers <= 5; workers++ {
				dir := t.TempDir()
				sink := func(replace bool) func(int) *fileOutput {
					return func(int) *fileOutput {
						return &fileOutput{path: filepath.Join(dir, "out"), perShard: perShard, format: format, replace: replace}
					}
				}
				require.NoError(t, writeParts(t, workers, sink(false)))
				got := tree(t, dir)
				if want == nil {
					want = got
				}
				require.Equal(t, want, got)
				require.ErrorContains(t, writeParts(t, workers, sink(false)), "exists")
				require.NoError(t, writeParts(t, workers, sink(true)))
				require.Equal(t, want, tree(t, dir))
			}
			require.Len(t, want, map[bool]int{false: 1, true: 1 + partShards}[perShard])
		}
	}
}

// TestOutputThatIsNotShared requires that, if a worker does not see the files of worker 0, one
// of the two workers fails and no output becomes visible.
func TestOutputThatIsNotShared(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	sink := func(elsewhere string) func(worker int) *fileOutput {
		return func(worker int) *fileOutput {
			if worker == 1 {
				return &fileOutput{path: filepath.Join(elsewhere, "out"), format: numberText}
			}
			return &fileOutput{path: filepath.Join(here, "out"), format: numberText}
		}
	}
	const advice = "must be one that all of them see at this path, on a file system that their machines share, such as NFS"

	missing := filepath.Join(there, "missing")
	err := writeParts(t, 2, sink(missing))
	require.ErrorContains(t, err, "the directory "+missing+" does not exist")
	require.ErrorContains(t, err, missing+" "+advice)
	require.Empty(t, tree(t, here))

	err = writeParts(t, 2, sink(there))
	require.ErrorContains(t, err, "cannot write output "+filepath.Join(there, "out"))
	require.ErrorContains(t, err, filepath.Join(there, ".superstep-out"))
	require.ErrorContains(t, err, advice)
	require.Empty(t, tree(t, here))

	// A killed run has left a directory that the worker takes for the directory of this run.
	left := filepath.Join(there, ".superstep-out", partsDir+"0123")
	require.NoError(t, os.MkdirAll(left, 0o700))
	err = writeParts(t, 2, sink(there))
	require.ErrorContains(t, err, "worker 1 wrote to "+left+", and worker 0 to "+filepath.Join(here, ".superstep-out", partsDir))
	require.ErrorContains(t, err, here+" "+advice)
	require.Empty(t, tree(t, here))

	require.NoError(t, os.Mkdir(filepath.Join(there, ".superstep-out", partsDir+"4567"), 0o700))
	require.ErrorContains(t, writeParts(t, 2, sink(there)), "holds the files of two runs, parts-0123 and parts-4567")
}

// five is the checksum of the bytes that the tests write to a part.
var five = checksum.CRC32C(0, []byte("five\n"))

// TestPartsAreVerified requires that parts are verified before any output becomes visible.
func TestPartsAreVerified(t *testing.T) {
	for _, perShard := range []bool{false, true} {
		dir := t.TempDir()
		out := &fileOutput{path: filepath.Join(dir, "out"), perShard: perShard, format: numberText, schema: numberSchema, shards: 2, disk: osDisk{}}
		say := func(dir string, parts ...partFile) []byte {
			data, err := writtenCodec.Append(nil, writtenParts{Dir: dir, Parts: parts})
			require.NoError(t, err)
			return data
		}
		require.NoError(t, out.Begin())
		require.NoError(t, os.WriteFile(out.shardPath(1), []byte("five\n"), 0o600))
		for want, written := range map[string][][]byte{
			"what worker 1 says it wrote: shared: decode":                                         {say(out.parts), nil},
			"worker 1 says that it wrote shard 2, of 2":                                           {say(out.parts), say(out.parts, partFile{Shard: 2, Size: 5, Sum: five})},
			"worker 0 says that it wrote shard -1, of 2":                                          {say(out.parts, partFile{Shard: -1, Size: 5, Sum: five})},
			"shard 1 was written by worker 0 and by worker 1":                                     {say(out.parts, partFile{Shard: 1, Size: 5, Sum: five}), say(out.parts, partFile{Shard: 1, Size: 5, Sum: five})},
			"shard 1, which worker 1 wrote to " + out.shardPath(1) + ", has 5 bytes instead of 6": {say(out.parts), say(out.parts, partFile{Shard: 1, Size: 6, Sum: five})},
			"shard 0, which worker 1 wrote to " + out.shardPath(0) + ", is not there":             {say(out.parts, partFile{Shard: 1, Size: 5, Sum: five}), say(out.parts, partFile{Shard: 0, Size: 5, Sum: five})},
			"worker 0 wrote to " + out.parts + "x, and worker 0 to":                               {say(out.parts + "x")},
		} {
			require.ErrorContains(t, commitParts(out, written), want)
		}
		one := [][]byte{say(out.parts), say("/mnt"+out.parts, partFile{Shard: 1, Size: 5, Sum: five})} // the same directory, mounted at another path
		if perShard {
			require.ErrorContains(t, commitParts(out, one), "none of 2 workers wrote shard 0")
			require.NoError(t, out.Abort())
			require.Empty(t, tree(t, dir))
			continue
		}
		require.NoError(t, commitParts(out, one))
		require.NoError(t, out.Settle())
		require.Equal(t, map[string]string{"out": "n\nfive\n"}, tree(t, dir))
	}
}

// TestLateWriters requires that a worker that still writes after its run has been aborted can
// neither add files to a directory that is being removed, nor change files of the next run.
func TestLateWriters(t *testing.T) {
	dir := t.TempDir()
	make := func() *fileOutput {
		return &fileOutput{path: filepath.Join(dir, "out"), format: numberText, schema: numberSchema, shards: 2, disk: osDisk{}}
	}
	first, late, next := make(), make(), make()
	require.NoError(t, first.Begin())
	require.NoError(t, late.Join())
	require.NoError(t, first.Abort())
	require.Empty(t, tree(t, dir))
	require.NoError(t, next.Begin())
	w := &fileWriter{out: late}
	require.NoError(t, w.Open(&task.Context{}))
	require.ErrorIs(t, w.begin(1), fs.ErrNotExist)
	require.NoError(t, w.Close())
	require.NoError(t, late.Leave())
	require.NoError(t, next.Abort())
	require.Empty(t, tree(t, dir))
}

// FuzzCommitParts decodes arbitrary bytes as the list of a worker's parts. The commit must
// never panic. Either it must fail and leave no files, or the output must have no rows, as no
// rows were written.
func FuzzCommitParts(f *testing.F) {
	for _, parts := range [][]partFile{nil, {{1, 5, 0, ""}}, {{0, 0, 0, ""}, {1, 5, 0, "part"}}, {{1, 1 << 40, 0, ""}}, {{-1, 0, 0, ""}}, {{1, -1, 0, ""}}} {
		data, err := writtenCodec.Append(nil, writtenParts{Dir: "here", Parts: parts})
		require.NoError(f, err)
		f.Add(data)
		f.Add(data[:len(data)-3])
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		out := &fileOutput{path: filepath.Join(dir, "out"), format: numberText, schema: numberSchema, shards: 2, disk: osDisk{}}
		require.NoError(t, out.Begin())
		if w, err := writtenCodec.Decode(data); err == nil { // with the right directory, the list passes the first check
			w.Dir = out.parts
			data, err = writtenCodec.Append(nil, w)
			require.NoError(t, err)
		}
		if err := commitParts(out, [][]byte{data}); err != nil {
			require.ErrorContains(t, err, "cannot write output")
			require.NoError(t, out.Abort())
			require.Empty(t, tree(t, dir))
			return
		}
		require.NoError(t, out.Settle())
		require.Equal(t, map[string]string{"out": "n\n"}, tree(t, dir))
	})
}
