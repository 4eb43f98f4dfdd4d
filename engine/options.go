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
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Defaults of the options.
const (
	// DefaultShards is the number of shards of a job unless told otherwise.
	DefaultShards = 128
	// DefaultBatchRows is the number of rows that sources aim at per batch.
	DefaultBatchRows = task.DefaultBatchRows
)

// Option changes how a job is built or run. Later options win.
type Option func(*config)

// Existing says what a sink does where its output exists already.
type Existing int

const (
	// Fail refuses to run, and leaves the output as it is. It is the default.
	Fail Existing = iota
	// Replace puts the new output in the old one's place when the job succeeds.
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

// config is what the options say, with the defaults filled in.
type config struct {
	parallelism     int // 0: as many as processors, or on a cluster slots, at most one per shard
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
	rowAllocator    memory.Allocator // nil: allocator
	checkBroadcasts bool
	checkState      bool
	resumes         map[int]int   // of CheckResume: parallelism by superstep
	observer        *observations // of Check, as are the next two
	checkRows       bool
	traceReplicas   bool
	turns           *task.Turns
	stdout          io.Writer
	workers         int // in this process; 0 runs the job as a whole
	cluster         clusterConfig
}

// newConfig applies the options to the defaults and checks the outcome.
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
	if c.parallelism == 0 && c.cluster.address == "" {
		c.parallelism = c.localParallelism()
	}
	return c, nil
}

// hugePages puts the large batches of a run in this process on huge pages until smallPages is
// called. It puts the rows of its queues outside the heap, unless the user has chosen an
// allocator.
func (c *config) hugePages() (smallPages func()) {
	if c.allocator != memory.DefaultAllocator {
		return func() {}
	}
	huge := hugepage.NewAllocator()
	c.allocator, c.rowAllocator = huge, offheap.NewAllocator(huge)
	return huge.Close
}

// localParallelism returns the number of subtasks if the options leave it to the engine.
func (c *config) localParallelism() int { return min(runtime.GOMAXPROCS(0), c.shards) }

// optionError is a value of an option that cannot be used. The command line reports it as wrong
// usage.
type optionError struct{ text string }

func (e *optionError) Error() string { return e.text }

// check names the first option whose value cannot be used, by its name on the
// command line.
func (c *config) check() error {
	bad := func(format string, a ...any) error { return &optionError{fmt.Sprintf(format, a...)} }
	if sharding.ValidShards(c.shards) != nil {
		return bad("--shards is %d: want a power of two between 1 and %d", c.shards, sharding.MaxShards)
	}
	switch {
	case c.parallelism < 0:
		return bad("--parallelism is %d: want at least 1, or 0 for one per processor", c.parallelism)
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
	return c.cluster.check()
}

// Local runs the job in this process, as a whole. It is the default.
func Local() Option { return func(c *config) { c.cluster.address, c.workers = "", 0 } }

// Parallelism sets the number of subtasks of each vertex. It decides which subtask works on
// which shards, never what is computed. 0, the default, means one per processor that the Go
// runtime uses, or one per slot of a cluster, but at most one per shard. More than one per shard
// is an error.
func Parallelism(n int) Option { return func(c *config) { c.parallelism = n } }

// Shards sets the number of shards that data are cut into, a power of two; the
// default is DefaultShards. Results may depend on it.
func Shards(s int) Option { return func(c *config) { c.shards = s } }

// Seed sets the seed that random draws of the job start from; the default is 0.
func Seed(s uint64) Option { return func(c *config) { c.seed = s } }

// BatchRows sets the number of rows that sources aim at per batch; the default
// is DefaultBatchRows. No result depends on it.
func BatchRows(n int) Option { return func(c *config) { c.batchRows = n } }

// MemoryBudget sets how many bytes the run's exchanges and sorts may hold. The collected
// results, which outlive the run, may hold as many again: the two together may reach twice the
// budget. Rows on their way from one subtask to another come on top, up to the budget again,
// and so do the rows that operators are working on. A budget should be some tens of batches for
// each slot. 0, the default, is half of GOMEMLIMIT if that is set, otherwise a quarter of the
// machine's memory. Rows beyond the budget spill to disk if they can, as those of queues do;
// otherwise the run fails.
func MemoryBudget(bytes int64) Option { return func(c *config) { c.memory = bytes } }

// SpillDir sets the directory under which the run makes its own for temporary
// files; the default is the system's.
func SpillDir(dir string) Option { return func(c *config) { c.spillDir = dir } }

// Disk sets the file system for the run's temporary files, in place of the machine's. It is for
// tests of failing disks.
func Disk(d disk.FS) Option { return func(c *config) { c.disk = d } }

// Logger sets the logger of the run; by default nothing is logged.
func Logger(l hclog.Logger) Option { return func(c *config) { c.logger = l } }

// OnProgress sets a function that is told how the run stands: every ProgressInterval, at the
// end of every superstep loop, and once at the end. The calls come one at a time, and the run
// waits for the last one only. A panic of f ends the run and becomes its error.
func OnProgress(f func(Progress)) Option { return func(c *config) { c.onProgress = f } }

// IfExists sets what sinks do if their output exists; the default is Fail.
func IfExists(e Existing) Option { return func(c *config) { c.ifExists = e } }

// Allocator sets the allocator of all record batches of the run, such as a
// checked one in a test.
func Allocator(mem columnar.Allocator) Option { return func(c *config) { c.allocator = mem } }

// Stdout sets where operators such as Print write for people to read; standard
// output by default.
func Stdout(w io.Writer) Option { return func(c *config) { c.stdout = w } }

// CheckBroadcasts makes every queue hash its broadcast and partitioned rows and its replicated
// objects at each superstep. If a user function modified one of them, or if one differs among
// subtasks, the queue fails and names it. It is for tests: hashing costs a pass over all of them
// per superstep.
func CheckBroadcasts(on bool) Option { return func(c *config) { c.checkBroadcasts = on } }

// CheckState makes every queue drop, between any two supersteps, everything that its keys do
// not keep, as for a subtask that joins in the middle. Replicated and per-shard objects are
// encoded and decoded by their codecs. Stages that are made for each subtask are restored from
// their snapshots. Everything else is dropped. A queue whose result depends on scratch then
// fails, or has another result. It is for tests: scratch is made anew in every superstep.
func CheckState(on bool) Option { return func(c *config) { c.checkState = on } }

// CheckResume stops every queue after a superstep, if it gets that far, and resumes it in the
// same run at another parallelism, from 1 to the number of shards. What its keys keep goes to
// the new subtasks as bytes of its codecs. Shards go to their new owners with their rows.
// Everything else is made anew, as with CheckState. The result has the same bits as that of the
// run without CheckResume; otherwise the queue does not keep everything that its result depends
// on. A queue that is stopped after its last superstep is closed by the new subtasks. The
// option may be given several times, with several supersteps.
//
// Some queues refuse another parallelism than theirs: those whose plan says that they depend on
// parallelism, and those with snapshots of stages that are made for each subtask. It is for
// tests of jobs that run in this process as a whole.
func CheckResume(superstep, parallelism int) Option {
	return func(c *config) {
		if c.resumes == nil {
			c.resumes = make(map[int]int)
		}
		c.resumes[superstep] = parallelism
	}
}

// checkResumes returns what is wrong with the settings of CheckResume.
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

// regroup returns the function that tells at which parallelism a queue resumes after a
// superstep; nil if none does.
func (c *config) regroup() func(queue string, step int) int {
	if len(c.resumes) == 0 {
		return nil
	}
	return func(_ string, step int) int { return c.resumes[step] }
}
