package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// Settings of the second run of Check. The options can give a larger parallelism and another
// number of workers.
const (
	checkParallelism = 7
	checkWorkers     = 2
	checkBatchRows   = 7
)

// Check runs a job at two parallelisms and two batch sizes and compares the runs: what every
// operator emitted and accumulated, shard by shard; every queue's replicated objects after
// every superstep; and what every queue reported. It returns a *CheckError that names the first
// difference. The cause of a difference is user code whose result depends on more than its rows:
// on the order of a map, on a variable that it captures and changes, on math/rand or on the
// clock. Check is for tests of jobs. The flag --check does the same.
//
// To reveal captured variables whatever the timing, subtasks take turns: in ascending order in
// the first run, in descending order in the second. The second run uses two workers, or the
// number given with the option Workers. The workers do not share anything that the job's
// function makes. In the first run an operator fails if its function changes the rows that it
// is given, including those of side inputs.
//
// Nothing is written or collected: the rows of sinks are dropped, and existing outputs are
// ignored. The runs are made in this process, one after the other. If two runs differ, a third
// run with the settings of the first shows whether the difference depends on the settings. A job
// whose plan says that it depends on parallelism is run at one parallelism only.
func Check[A any](ctx context.Context, job *Job[A], args A, opts ...Option) error {
	_, err := check(ctx, job, args, opts)
	return err
}

// CheckError describes the first difference between two runs of a job.
type CheckError struct {
	Job string
	// Operator is the operator that emitted rows or accumulated a value that differs, or the
	// queue whose object or reported value differs. Site is the user's line that added it.
	Operator, Site string
	// Shard is the shard whose rows or accumulated value differ. It is -1 for an object or a
	// reported value of a queue.
	Shard int
	// Superstep is the queue's superstep after which a replicated object or a reported value
	// differs. It is 0 for rows and accumulated values. Key is the name of the object or of the
	// value. It is "" for rows.
	Superstep int
	Key       string

	within string // the part given to Builder.Within, or ""
	what   string // says what differs, and how
	// Repeats says that two runs with the same settings agreed, so that the difference
	// depends on parallelism or on the size of batches.
	Repeats bool
}

// Error describes the difference, where it is, and the usual causes.
func (e *CheckError) Error() string {
	where := e.Operator
	if e.Site != "" {
		where += " (" + e.Site + ")"
	}
	if e.within != "" {
		where = e.within + ": " + where
	}
	why := "two runs by the same settings differ as well, so look for iteration over a map, math/rand (ComContext.Rand and the draws of Generate are the same in every run), the clock, goroutines of its own, and a variable of the package that the function changes, which one run in a process leaves to the next"
	if e.Repeats {
		why = "two runs by the same settings agree, so look for a variable that the function captures and changes, such as a counter or a cache, and for the use of TaskID, NumTask or the size of batches; iteration over a map, math/rand and the clock may do it too"
	}
	return fmt.Sprintf("%s is not deterministic: %s: %s; %s", jobTitle(e.Job), where, e.what, why)
}

// checkResult says what was compared in two runs that agree.
type checkResult struct {
	settings          [2]checkSetting
	operators, shards int
	supersteps        int
	oneParallelism    string // the operator that allows only one parallelism, or ""
}

// String describes what was compared.
func (c *checkResult) String() string {
	text := fmt.Sprintf("checked: %d operators in %d shards and %d supersteps gave the same with %v and with %v",
		c.operators, c.shards, c.supersteps, c.settings[0], c.settings[1])
	if c.oneParallelism != "" {
		text += "; other parallelisms were left out, as " + c.oneParallelism + " depends on parallelism by its nature"
	}
	return text
}

// checkSetting holds the settings of one run.
type checkSetting struct {
	parallelism, batchRows int
	workers                int // number of workers; 0 runs the job as a whole
	// first marks the first run: subtasks take turns in ascending order, and operators must not
	// change the rows that they are given. In the second run subtasks take turns in descending
	// order.
	first bool
}

func (s checkSetting) String() string {
	if s.workers == 0 {
		return fmt.Sprintf("parallelism %d and batches of %d rows", s.parallelism, s.batchRows)
	}
	return fmt.Sprintf("parallelism %d, %d workers and batches of %d rows", s.parallelism, s.workers, s.batchRows)
}

// check runs the job two or more times, and returns what was compared.
func check[A any](ctx context.Context, job *Job[A], args A, opts []Option) (*checkResult, error) {
	here := func(c *config) { c.cluster.address = "" }
	c, err := newConfig(append(append([]Option(nil), opts...), here))
	if err != nil {
		return nil, err
	}
	c.checkpoints = checkpointConfig{}
	graph, err := buildTwice(job, args, c)
	if err != nil {
		return nil, err
	}
	done := &checkResult{settings: checkSettings(c)}
	if c.workers == 0 && !survivesEncoding(job, args) {
		done.settings[1].workers = 0
	}
	for i := range graph.graph.Nodes {
		if n := &graph.graph.Nodes[i]; n.Order == plan.RankTree {
			done.oneParallelism = nodeTitle(n)
			done.settings[0].parallelism = done.settings[1].parallelism
			break
		}
	}
	run := func(s checkSetting, trace bool) (*observations, error) {
		own := *c
		own.traceReplicas = trace
		own.parallelism, own.batchRows, own.checkBroadcasts = s.parallelism, s.batchRows, true
		own.workers, own.checkRows, own.turns = s.workers, s.first, task.NewTurns(!s.first)
		seen := newObservations(graph.graph)
		own.observer = seen
		result, err := runObserved(ctx, job, args, &own)
		if err != nil {
			return nil, fmt.Errorf("with %v: %w", s, err)
		}
		seen.ended(result.Report)
		result.Release()
		return seen, nil
	}
	// A run fails if replicated objects differ among its subtasks. It is then repeated to find
	// the stage that made them differ.
	observe := func(s checkSetting) (*observations, error) {
		seen, err := run(s, false)
		if differ := new(ReplicaError); errors.As(err, &differ) {
			if _, again := run(s, true); errors.As(again, &differ) {
				err = again
			}
		}
		return seen, err
	}
	var runs [2]*observations
	for i, s := range done.settings {
		if runs[i], err = observe(s); err != nil {
			return nil, err
		}
	}
	found := runs[0].difference(runs[1])
	if found == nil {
		done.operators, done.shards, done.supersteps = runs[0].count()
		return done, nil
	}
	again, err := observe(done.settings[0])
	if err != nil {
		return nil, err
	}
	found.Job, found.Repeats = job.name, runs[0].difference(again) == nil
	found.what = strings.NewReplacer("{0}", done.settings[0].String(), "{1}", done.settings[1].String()).Replace(found.what)
	return nil, found
}

// survivesEncoding reports whether args are the same after they were encoded and decoded. If they are
// not, the job can only run as a whole.
func survivesEncoding[A any](job *Job[A], args A) bool {
	data, err := encodeArgs(args)
	if err != nil {
		return false
	}
	arrived := job.Arguments()
	return decodeArgs(data, &arrived) == nil && reflect.DeepEqual(args, arrived)
}

// runObserved runs the job without its outputs.
func runObserved[A any](ctx context.Context, job *Job[A], args A, c *config) (*Result, error) {
	if c.workers > 0 {
		return runAsWorkers(ctx, job, args, c)
	}
	made, err := prepare(job, args, c)
	if err != nil {
		return nil, err
	}
	dropOutputs(made.graph, &made.bind)
	return made.run(ctx, c)
}

// checkSettings returns two settings that differ in everything on which results must not depend:
// the subtask of each shard, its process, the order of subtasks, and the size of batches.
func checkSettings(c *config) [2]checkSetting {
	p := max(c.parallelism, checkParallelism)
	workers := c.workers
	if workers == 0 {
		workers = checkWorkers
	}
	rows := checkBatchRows
	if c.batchRows == rows {
		rows++
	}
	return [2]checkSetting{
		{parallelism: 1, batchRows: c.batchRows, first: true},
		{parallelism: min(p, c.shards), batchRows: rows, workers: workers},
	}
}

// dropOutputs removes the sinks of a job. Their rows are dropped, and no sink begins or
// commits.
func dropOutputs(g *plan.Graph, bind *task.Bindings) {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Sink {
			bind.Operators[n.ID] = func() task.Operator { return discardingSink{} }
			delete(bind.Sinks, n.ID)
		}
	}
}

// discardingSink is the operator of a removed sink. It drops its rows.
type discardingSink struct{ BaseOperator }

func (discardingSink) Process(*Context, int, int, Batch, Output) error { return nil }

// nodeTitle returns the name of a node in messages.
func nodeTitle(n *plan.Node) string {
	title := n.Op
	if n.Queue != "" {
		title = fmt.Sprintf("queue %q, %s", n.Queue, n.Op)
	}
	if n.Name != "" {
		title += fmt.Sprintf(" %q", n.Name)
	}
	return title
}
