package engine

import (
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"runtime"
	"slices"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/hugepage"
	"github.com/superstep-ml/superstep/internal/offheap"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Defaults of the options.
const (
	// DefaultShards is the default number of shards of a job.
	DefaultShards = 128
	// DefaultBatchRows is the default number of rows that batches of sources should have.
	DefaultBatchRows = task.DefaultBatchRows
)

// Option changes how a job is built or run. A later option overrides an earlier one.
type Option func(*config)

// Existing says what a sink does if its output exists already.
type Existing int

const (
	// Fail makes the run fail before it starts, and does not change the output. It is the default.
	Fail Existing = iota
	// Replace replaces the old output by the new one when the job succeeds.
	Replace
)

// String returns "fail" or "replace".
func (e Existing) String() string {
	switch e {
	case Fail:
		return "fail"
	case Replace:
		return "replace"
	}
	return fmt.Sprintf("Existing(%d)", int(e))
}

// config holds the settings that the options give, with defaults for the others.
type config struct {
	parallelism     int // 0 means one subtask per processor or, on a cluster, per slot, but at most one per shard
	minParallelism  int // smallest parallelism on a cluster; 0 means parallelism
	shards          int
	seed            uint64
	batchRows       int
	memory          int64
	spillDir        string
	disk            disk.FS
	logger          hclog.Logger
	onProgress      func(Progress)
	ifExists        Existing
	allocator       memory.Allocator
	rowAllocator    memory.Allocator // nil means allocator
	checkBroadcasts bool
	checkState      bool
	resumes         map[int]int   // set by CheckResume: parallelism by superstep
	observer        *observations // set by Check, as are the next three
	checkRows       bool
	traceReplicas   bool
	turns           *task.Turns
	stdout          io.Writer
	workers         int              // number of workers in this process; 0 runs the job as a whole
	retained        []*task.Retained // what each of these workers keeps of a run that fails; nil if nothing is kept
	cluster         clusterConfig
	attempt         Attempt // set in workers
	checkpoints     checkpointConfig
}

// newConfig applies the options to the defaults and checks the settings.
func newConfig(opts []Option) (*config, error) {
	c := &config{
		shards:    DefaultShards,
		batchRows: DefaultBatchRows,
	}
	for _, opt := range opts {
		if opt != nil {
			opt(c)
		}
	}
	if c.logger == nil {
		c.logger = hclog.NewNullLogger()
	}
	if c.allocator == nil {
		c.allocator = memory.DefaultAllocator
	}
	if c.stdout == nil {
		c.stdout = os.Stdout
	}
	if c.disk == nil {
		c.disk = disk.OS()
	}
	if c.spillDir == "" {
		c.spillDir = os.TempDir()
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	switch {
	case c.cluster.address != "":
	case c.parallelism == 0:
		c.parallelism = c.localParallelism()
	case c.minParallelism > 0:
		c.parallelism = min(max(c.localParallelism(), c.minParallelism), c.parallelism)
	}
	return c, nil
}

// hugePages makes the run allocate large batches on huge pages until smallPages is called, and
// the rows of its queues outside the Go heap. It does nothing if the user has set an allocator.
func (c *config) hugePages() (smallPages func()) {
	if c.allocator != memory.DefaultAllocator {
		return func() {}
	}
	huge := hugepage.NewAllocator()
	c.allocator, c.rowAllocator = huge, offheap.NewAllocator(huge)
	return huge.Close
}

// localParallelism returns the parallelism in this process if the options do not set it.
func (c *config) localParallelism() int { return min(runtime.GOMAXPROCS(0), c.shards) }

// optionError is the error of an option whose value cannot be used. The command line reports it
// as wrong usage.
type optionError struct{ text string }

func (e *optionError) Error() string { return e.text }

// check returns an error for the first option whose value cannot be used. It names the
// option as on the command line.
func (c *config) check() error {
	bad := func(format string, a ...any) error { return &optionError{fmt.Sprintf(format, a...)} }
	if sharding.ValidShards(c.shards) != nil {
		return bad("--shards is %d: want a power of two between 1 and %d", c.shards, sharding.MaxShards)
	}
	switch {
	case c.parallelism < 0:
		return bad("--parallelism is %d: want at least 1, or 0 for one per processor", c.parallelism)
	case c.minParallelism < 0 || c.minParallelism > c.parallelism:
		return bad("--parallelism is %d:%d: want a range such as 2:8, which begins with 1 or more", c.minParallelism, c.parallelism)
	case c.parallelism > sharding.MaxShards:
		return bad("--parallelism is %d: want at most %d", c.parallelism, sharding.MaxShards)
	case c.parallelism > c.shards:
		there := fmt.Sprintf("are only %d shards", c.shards)
		if c.shards == 1 {
			there = "is only 1 shard"
		}
		return bad("--parallelism is %d, but there %s and a subtask needs one of its own: lower it to %d, or raise --shards to %d",
			c.parallelism, there, c.shards, 1<<bits.Len(uint(c.parallelism-1)))
	case c.batchRows < 1:
		return bad("--batch-rows is %d: want at least 1", c.batchRows)
	case c.memory < 0:
		return bad("--memory is %d bytes: want at least 1, or 0 for a share of what there is", c.memory)
	case c.workers < 0:
		return bad("the option Workers is %d: want at least 1, or 0 to run the job as a whole", c.workers)
	case c.ifExists != Fail && c.ifExists != Replace:
		return bad("--if-exists is %v: want fail or replace", c.ifExists)
	}
	if err := c.checkResumes(); err != nil {
		return err
	}
	if err := c.checkpoints.check(); err != nil {
		return err
	}
	if c.checkpoints.require && c.checkpoints.dir == "" && (c.cluster.address == "" || c.cluster.wireCopies() == wire.NoCopies) {
		return bad("--checkpoint require: no state is saved that a queue could continue from: give --checkpoint-dir, or run on a cluster with --copies of at least 1")
	}
	return c.cluster.check()
}

// Local runs the job in this process, as a whole. It is the default.
func Local() Option { return func(c *config) { c.cluster.address, c.workers = "", 0 } }

// Parallelism sets the number of subtasks of each vertex. It decides which subtask works on
// which shards, never what is computed. 0, the default, means one per processor that the Go
// runtime uses, or one per slot of a cluster, but at most one per shard. More than one per shard
// is an error.
func Parallelism(n int) Option { return func(c *config) { c.parallelism, c.minParallelism = n, 0 } }

// ParallelismRange sets the smallest and the largest number of subtasks of each vertex. On a cluster
// the job starts as soon as there are slots for the smallest, and gets as many as are free up to the
// largest. It goes on with fewer if a task manager is lost. With checkpoints, the cluster also changes
// the number while the job runs: it gives the job slots that become free, and gives some of them to
// jobs that wait. In one process the job has one subtask per processor, within the range. A job whose
// plan binds it to one parallelism is refused on a cluster.
func ParallelismRange(least, most int) Option {
	return func(c *config) {
		if c.parallelism, c.minParallelism = most, least; least == 0 {
			c.minParallelism = -1 // an error
		}
	}
}

// Shards sets the number of shards into which data are divided, a power of two; the
// default is DefaultShards. Results may depend on it.
func Shards(s int) Option { return func(c *config) { c.shards = s } }

// Seed sets the seed of the job's random draws; the default is 0.
func Seed(s uint64) Option { return func(c *config) { c.seed = s } }

// BatchRows sets the number of rows that the batches of sources should have; the
// default is DefaultBatchRows. No result depends on it.
func BatchRows(n int) Option { return func(c *config) { c.batchRows = n } }

// MemoryBudget sets the number of bytes that exchanges and operators of the run may hold. The
// collected results, which are needed after the run, may take the same number of bytes in
// addition. The rows in transit between subtasks may take that number of bytes too. The rows
// that operators are working on are not counted; a budget should be at least some tens of
// batches for each slot. 0, the default, means half of GOMEMLIMIT if that is set, otherwise a
// quarter of the machine's memory. Rows beyond the budget are spilled to disk if that is
// possible, as for the rows of queues; otherwise the run fails.
func MemoryBudget(bytes int64) Option { return func(c *config) { c.memory = bytes } }

// SpillDir sets the directory in which the run makes a directory of its own for
// temporary files; the default is the system's directory for temporary files.
func SpillDir(dir string) Option { return func(c *config) { c.spillDir = dir } }

// Disk sets the file system for the run's temporary files; the default is the file system of the
// machine. It is for tests with failing disks.
func Disk(d disk.FS) Option { return func(c *config) { c.disk = d } }

// Logger sets the logger of the run; by default nothing is logged.
func Logger(l hclog.Logger) Option { return func(c *config) { c.logger = l } }

// OnProgress sets a function that gets the progress of the run: every ProgressInterval, at the
// end of every queue, and once at the end. Calls are not concurrent, and the run waits only for
// the last call. A panic of f ends the run and becomes its error.
func OnProgress(f func(Progress)) Option { return func(c *config) { c.onProgress = f } }

// IfExists sets what sinks do if their output exists; the default is Fail.
func IfExists(e Existing) Option { return func(c *config) { c.ifExists = e } }

// Allocator sets the allocator of all record batches of the run, such as a
// checked allocator in a test.
func Allocator(mem columnar.Allocator) Option { return func(c *config) { c.allocator = mem } }

// Stdout sets the writer to which operators such as Print write; the default is
// standard output.
func Stdout(w io.Writer) Option { return func(c *config) { c.stdout = w } }

// CheckBroadcasts makes every queue hash its broadcast and partitioned rows and its replicated
// objects in each superstep. If a user function has modified one of these, or if a replicated
// object differs among subtasks, the queue fails and names the object. It is for tests: in each
// superstep, hashing costs a pass over all these rows and objects.
func CheckBroadcasts(on bool) Option { return func(c *config) { c.checkBroadcasts = on } }

// CheckState makes every queue drop, between any two supersteps, everything that its keys do
// not keep, as if new subtasks took over the queue. Replicated and per-shard objects are encoded
// and decoded by their codecs. Stages that are made for each subtask are restored from their
// snapshots. Everything else is dropped. A queue whose result depends on scratch objects then
// fails, or has another result. It is for tests, as scratch objects must be made anew in every
// superstep.
func CheckState(on bool) Option { return func(c *config) { c.checkState = on } }

// CheckResume stops every queue after a superstep, if the queue gets that far, and resumes it
// in the same run at another parallelism, from 1 to the number of shards. Objects that the
// queue's keys keep are passed to the new subtasks, encoded by their codecs. Shards go to their
// new owners with their rows. Everything else is made anew, as with CheckState. The result must
// have the same bits as without CheckResume. If the bits differ, the queue does not keep
// everything on which its result depends. If a queue is stopped after its last superstep, the
// new subtasks only close it. The option may be given several times, for several supersteps.
//
// Some queues can be resumed only at their own parallelism: queues whose plan says that they
// depend on parallelism, and queues with snapshots of stages that are made for each subtask.
// CheckResume is for tests of jobs that run in this process as a whole.
func CheckResume(superstep, parallelism int) Option {
	return func(c *config) {
		if c.resumes == nil {
			c.resumes = make(map[int]int)
		}
		c.resumes[superstep] = parallelism
	}
}

// checkResumes returns an error if the settings of CheckResume are wrong.
func (c *config) checkResumes() error {
	for _, superstep := range slices.Sorted(maps.Keys(c.resumes)) {
		switch p := c.resumes[superstep]; {
		case superstep < 1:
			return &optionError{fmt.Sprintf("CheckResume after superstep %d: they count from 1", superstep)}
		case p < 1 || p > c.shards:
			return &optionError{fmt.Sprintf("CheckResume at parallelism %d: want 1 to %d, the number of shards", p, c.shards)}
		case c.workers > 0 || c.cluster.address != "":
			return &optionError{"CheckResume is for jobs that run in this process as a whole: leave out Workers and Cluster"}
		}
	}
	return nil
}

// regroup returns a function for task.Env.Regroup that gives the settings of CheckResume, or nil
// if there are none.
func (c *config) regroup() func(queue string, step int) int {
	if len(c.resumes) == 0 {
		return nil
	}
	return func(_ string, step int) int { return c.resumes[step] }
}
