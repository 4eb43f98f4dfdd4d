// Package storage tests how jobs behave when operations on files fail: on the temporary files
// of a run and on its inputs.
package storage

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/disk/faultydisk"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// diskRow is a row of the jobs in this file.
type diskRow struct {
	K int64   `column:"k"`
	X float64 `column:"x"`
	T string  `column:"t"`
}

// diskDigest is a digest of the rows of a shard that depends on their order.
type diskDigest struct {
	Rows int64
	Hash string
}

// digestOf returns a dataset with a diskDigest for every shard of d.
func digestOf(d *engine.Dataset) *engine.Dataset {
	codec, err := batch.NewCodec[diskDigest]()
	if err != nil {
		panic(err)
	}
	return d.Builder().Add(engine.Spec{
		Op: "Digest", Schema: arrowrows.Schema(codec.Schema()), Inputs: []engine.Port{{From: d}},
		Operator: func() engine.Operator { return &digester{codec: codec, hash: fnv.New64a()} },
	})
}

type digester struct {
	codec *batch.Codec[diskDigest]
	rows  int64
	hash  hash.Hash64
}

func (o *digester) Open(*engine.Context) error { return nil }

func (o *digester) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	o.rows += rows.NumRows()
	for _, line := range batchtest.Rows(rows) {
		fmt.Fprintln(o.hash, line)
	}
	return nil
}

func (o *digester) EndShard(c *engine.Context, shard int, out engine.Output) error {
	rec, err := o.codec.Record(c.Allocator, []diskDigest{{o.rows, fmt.Sprintf("%016x", o.hash.Sum64())}})
	if err != nil {
		return err
	}
	defer rec.Release()
	o.rows = 0
	o.hash.Reset()
	return out.Emit(shard, arrowrows.Batch(rec))
}

func (o *digester) Finish(*engine.Context, engine.Output) error { return nil }

func (o *digester) Close() error { return nil }

func diskRows(b *engine.Builder, n int64) *engine.Dataset {
	return operators.Generate(b, n, func(_ sharding.Random, i int64) diskRow {
		return diskRow{K: i * 7919 % n, X: float64(i) / 3, T: strings.Repeat(string(rune('a'+i%26)), int(i%9))}
	})
}

// diskJob is a job that writes rows to disk because they exceed its memory budget, and reads
// them back.
type diskJob struct {
	name   string
	budget int64
	files  string // text that the names of its temporary files contain
	build  func(b *engine.Builder, input string) *engine.Dataset
}

var diskJobs = []diskJob{
	{"exchanges", 256 << 10, ".arrow", func(b *engine.Builder, _ string) *engine.Dataset {
		return digestOf(operators.Rebalance(operators.PartitionByHash(diskRows(b, 16_000), "k")))
	}},
	{"sorts", 320 << 10, "sort-", func(b *engine.Builder, _ string) *engine.Dataset {
		return digestOf(operators.Sort(diskRows(b, 14_000), operators.Desc("t"), operators.Asc("k")))
	}},
	{"groups", 512 << 10, "sort-", func(b *engine.Builder, _ string) *engine.Dataset {
		d := operators.GroupBy(diskRows(b, 16_000), "k").Aggregate(operators.SumOf("x"), operators.MaxOf("t"), operators.CountRows())
		return digestOf(d)
	}},
	{"joins", 512 << 10, "sort-", func(b *engine.Builder, _ string) *engine.Dataset {
		type pair struct {
			K int64
			T string
		}
		return digestOf(operators.Join(diskRows(b, 3000), diskRows(b, 12_000), operators.On("k"), operators.Full, func(l, r *diskRow) pair {
			if l == nil {
				return pair{r.K, r.T}
			}
			return pair{l.K, l.T}
		}))
	}},
	{"joins of one key", 512 << 10, "sort-", func(b *engine.Builder, _ string) *engine.Dataset {
		one := func(n int64) *engine.Dataset {
			return operators.Map(diskRows(b, n), func(r diskRow) diskRow { return diskRow{1, r.X, r.T} })
		}
		return digestOf(operators.Join(one(6), one(12_000), operators.On("k"), operators.Inner, func(l, r *diskRow) diskRow {
			return diskRow{r.K, l.X - r.X, l.T}
		}))
	}},
	{"queues", 320 << 10, ".arrow", func(b *engine.Builder, _ string) *engine.Dataset {
		rows, sums := comqueue.PartitionedRows("rows"), shared.Scratch[[]float64]("sums")
		return comqueue.New(b, "sums").
			InitWithPartitionedData(rows, operators.PartitionByHash(diskRows(b, 11_000), "k")).
			Do(func(ctx *comqueue.ComContext) error {
				sums.Put(ctx, make([]float64, 2))
				return nil
			}).
			Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				for i, v := range rows.Get(ctx, shard).Floats("x") {
					out[0] += v * float64(i%7)
					out[1]++
				}
				return nil
			})).
			Add(comqueue.AllReduce(sums)).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]diskDigest, error) {
				return []diskDigest{{int64(sums.Get(ctx)[1]), fmt.Sprint(sums.Get(ctx)[0])}}, nil
			})).
			SetMaxIter(2).
			Exec()
	}},
	{"archives", 256 << 10, ".spool", func(b *engine.Builder, input string) *engine.Dataset {
		return digestOf(operators.ReadCSV(b, input, operators.CSVOptions{Header: true}))
	}},
}

// diskInput writes the input file of the jobs and returns its path.
func diskInput(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "rows.csv.gz")
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	fmt.Fprintln(z, "k,x,t")
	for i := range 6000 {
		fmt.Fprintf(z, "%d,%g,\"%s\"\n", i, float64(i)/3, strings.Repeat("b", i%20))
	}
	require.NoError(t, errors.Join(z.Close(), f.Close()))
	return path
}

// peakAllocator records the largest number of bytes that were allocated at one time.
type peakAllocator struct {
	memory.Allocator
	mu         sync.Mutex
	live, peak int64
}

func (a *peakAllocator) note(delta int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live += int64(delta)
	a.peak = max(a.peak, a.live)
}

func (a *peakAllocator) Allocate(size int) []byte {
	a.note(size)
	return a.Allocator.Allocate(size)
}

func (a *peakAllocator) Reallocate(size int, b []byte) []byte {
	a.note(size - len(b))
	return a.Allocator.Reallocate(size, b)
}

func (a *peakAllocator) Free(b []byte) {
	a.note(-len(b))
	a.Allocator.Free(b)
}

// diskRun is a run of a job at given settings.
type diskRun struct {
	job        *diskJob
	p, batches int
	on         disk.FS
	budget     int64
	input, dir string
	workers    int // number of workers; with 0 the job runs in this process
}

// rows executes the run. It returns the rows of the job, the number of bytes spilled, and the
// largest number of bytes of memory allocated at one time.
func (r diskRun) rows(t *testing.T) (rows []string, spilled, peak int64, err error) {
	mem := &peakAllocator{Allocator: memory.NewGoAllocator()}
	options := []engine.Option{
		engine.Shards(2 * max(r.workers, 1)), engine.Parallelism(r.p), engine.BatchRows(r.batches), engine.MemoryBudget(r.budget),
		engine.Allocator(mem), engine.SpillDir(r.dir), engine.Disk(r.on),
	}
	if r.workers > 0 {
		options = append(options, engine.Workers(r.workers))
	}
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(r.job.build(b, r.input), "out")
		return nil
	}), struct{}{}, options...)
	if err == nil {
		recs, err := arrowbridge.Records(result, "out")
		require.NoError(t, err)
		for _, rec := range recs {
			rows = append(rows, batchtest.Rows(rec)...)
		}
		spilled = result.Report.Spilled
		// While a queue reads a shard, it uses additional memory in each slot: an eighth of the
		// slot's memory, but at least 64 KiB, and the same amount again for copied rows with
		// their offsets.
		const staged = 64 << 10
		require.LessOrEqual(t, result.Report.PeakMemory, r.budget+2*int64(r.p)*max(staged, r.budget/int64(r.p)/8))
		result.Release()
	}
	require.Zero(t, mem.live, "all memory must be released after the run")
	return rows, spilled, mem.peak, err
}

// TestDamagedDisk runs jobs whose temporary files are on a simulated disk. Depending on its
// seed, the disk damages data and refuses operations. Every run must end with the rows of a run
// without faults, or with an error that says which file is damaged and where, or which
// operation the disk refused. It must fail if and only if it read damaged data or an operation
// was refused. No run may use more than twice its memory budget.
func TestDamagedDisk(t *testing.T) {
	seeds := testsize.Raced[uint64](120, 60)
	if testsize.Soak {
		seeds = 10_000
	}
	input, dir := diskInput(t), t.TempDir()
	want := map[string][]string{}
	for i := range diskJobs {
		job := &diskJobs[i]
		rows, _, _, err := diskRun{job: job, p: 2, batches: 1024, on: disk.OS(), budget: 1 << 30, input: input, dir: dir}.rows(t)
		require.NoError(t, err, job.name)
		want[job.name] = rows
	}
	damaged, refused, kinds := map[string]int{}, map[string]int{}, map[faultydisk.Kind]int{}
	for seed := range seeds {
		job := &diskJobs[seed%uint64(len(diskJobs))]
		plan := faultydisk.Plan{Every: 12, Most: 4}
		if seed%3 > 0 { // without refusals, because a refusal would end most runs before damaged data are read
			plan.Kinds = slices.DeleteFunc(faultydisk.All(), faultydisk.Kind.Refuses)
		}
		on := faultydisk.New(disk.OS(), seed, plan)
		run := diskRun{job: job, p: 1 + int(seed/5)%2, batches: []int{16, 64, 256, 1024, 4096}[seed/10%5], on: on, budget: job.budget, input: input, dir: dir}
		name := fmt.Sprintf("%s, seed %d, parallelism %d, batches of %d rows", job.name, seed, run.p, run.batches)
		rows, _, peak, err := run.rows(t)
		read := on.Read()
		if err == nil {
			require.Empty(t, read, name)
			require.Equal(t, want[job.name], rows, name)
		} else {
			require.NotEmpty(t, read, "%s: a run may fail only if a fault was met: %v", name, err)
			require.NotContains(t, err.Error(), "panic", name)
			if requireBlame(t, err, read, name).Refuses() {
				refused[job.name]++
			} else {
				damaged[job.name]++
			}
		}
		for _, f := range on.Faults() {
			if f.Read || !f.Kind.Damages() {
				kinds[f.Kind]++
			}
		}
		require.LessOrEqual(t, peak, 2*job.budget, name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	t.Logf("runs that ended by damage: %v; by a refusal: %v; faults read: %v", damaged, refused, kinds)
	anyRefused := 0
	for _, job := range diskJobs {
		require.Positive(t, damaged[job.name], "%s: damaged data must have been read, or the test proves nothing", job.name)
		anyRefused += refused[job.name]
	}
	require.Positive(t, anyRefused, "an operation must have been refused, or the test proves nothing")
	if testsize.Soak { // with few runs, it depends on chance which faults occur
		for _, job := range diskJobs {
			require.Positive(t, refused[job.name], "%s: an operation must have been refused, or the test proves nothing", job.name)
		}
		for _, kind := range faultydisk.All() {
			require.Positive(t, kinds[kind], "a fault of kind %s must have been met, or the test proves nothing", kind)
		}
	}
}

// requireBlame requires that an error names one of the faults in read, and returns the kind of
// that fault.
func requireBlame(t *testing.T, err error, read []faultydisk.Fault, name string) faultydisk.Kind {
	t.Helper()
	var damage *disk.DamagedError
	isDamage := errors.As(err, &damage)
	refusal := errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC)
	for _, f := range read {
		switch {
		case isDamage && f.Kind.Damages() && f.File == damage.File && f.Offset < damage.Offset+damage.Length &&
			(f.Kind == faultydisk.Truncate || damage.Offset < f.Offset+f.Length):
			return f.Kind
		case refusal && f.Kind.Refuses() && strings.Contains(err.Error(), f.File):
			return f.Kind
		}
	}
	require.Fail(t, "the error must name one of the faults", "%s: %v\nfaults were: %v", name, err, read)
	return 0
}

// TestDiskJobsSpill requires that the jobs of TestDamagedDisk write temporary files and read
// them back, have the same rows as without a memory budget, and use at most twice the budget,
// even with large batches. A batch of 4,096 rows takes a third of the budget.
func TestDiskJobsSpill(t *testing.T) {
	input, dir := diskInput(t), t.TempDir()
	for i := range diskJobs {
		job := &diskJobs[i]
		want := map[int][]string{}
		for _, run := range testsize.Raced(
			[]diskRun{
				{p: 1, batches: 64}, {p: 1, batches: 1024}, {p: 1, batches: 4096},
				{p: 2, batches: 64}, {p: 2, batches: 512}, {p: 2, batches: 1024},
				{p: 4, batches: 64, workers: 2}, {p: 4, batches: 256, workers: 4},
			},
			[]diskRun{{p: 2, batches: 512}, {p: 4, batches: 64, workers: 2}},
		) {
			log := &diskLog{FS: disk.OS()}
			run.job, run.on, run.budget, run.input, run.dir = job, disk.OS(), 1<<30, input, dir
			if want[run.workers] == nil { // the number of shards depends on the number of workers, so the rows differ
				rows, _, _, err := run.rows(t)
				require.NoError(t, err, job.name)
				want[run.workers] = rows
			}
			run.on, run.budget = log, job.budget
			if run.workers > 0 {
				run.budget *= 2 // so that each of the four slots has half of job.budget
			}
			name := fmt.Sprintf("%s, parallelism %d, batches of %d rows, %d workers", job.name, run.p, run.batches, run.workers)
			rows, _, peak, err := run.rows(t)
			require.NoError(t, err, name)
			require.Equal(t, want[run.workers], rows, name)
			t.Logf("%s: peak memory %d bytes, %.2f of the budget %d, files %v", name, peak, float64(peak)/float64(run.budget), run.budget, log.names)
			require.LessOrEqual(t, peak, 2*run.budget, name)
			require.True(t, run.p > 1 || slices.ContainsFunc(log.names, func(n string) bool { return strings.Contains(n, job.files) }), "%s: the job must create files of its own kind, and created %v", name, log.names)
		}
	}
}

// diskLog is a file system that records which files are created.
type diskLog struct {
	disk.FS
	mu    sync.Mutex
	names []string
}

func (l *diskLog) note(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, filepath.Base(name))
}

func (l *diskLog) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	l.note(path)
	return l.FS.OpenFile(path, flag, perm)
}

func (l *diskLog) CreateTemp(dir, pattern string) (disk.File, error) {
	l.note(pattern)
	return l.FS.CreateTemp(dir, pattern)
}
