package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// DefaultCheckpointEvery is the default time between two checkpoints.
const DefaultCheckpointEvery = 30 * time.Second

// checkpointConfig holds the settings of a run's checkpoints.
type checkpointConfig struct {
	dir       string
	every     time.Duration
	steps     int
	failAfter time.Duration
	auto      bool          // the cost of checkpoints decides in place of every and steps
	mtbf      time.Duration // mean time between failures, for auto
	resume    bool
	require   bool                     // a queue that cannot continue from a saved state is an error
	savepoint string                   // place of the savepoint from which the run continues; "" if there is none
	say       func(line string)        // tells the user where the run begins; nil means that nobody is told
	getenv    func(name string) string // for stores; nil means os.Getenv
}

// CheckpointDir makes the run save the states of its queues in a directory, or in an
// S3-compatible store at a place such as s3://bucket/prefix. It saves them again and again while
// the supersteps go on. If the process ends early, another process with the option Resume
// continues the run: it reads the inputs again, but does not repeat the supersteps that were
// saved. The results are the same, bit for bit. The program, its arguments, its inputs, the seed
// and the number of shards must be the same, which is checked. What a closure captures is not
// checked, so the function of the job must depend on its arguments alone. Parallelism may differ,
// unless the plan says that a queue depends on it.
//
// The environment describes the store: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, and, for other stores than Amazon's,
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.
//
// Each run needs a directory or prefix of its own. A directory is made if it does not exist. A
// run that succeeds removes its checkpoints. A run that fails or is cancelled keeps them. A run
// without Resume refuses a directory that has checkpoints.
//
// A checkpoint has everything under replicated and per-shard keys, and the snapshots of
// instances added by AddNew.
//
// On a cluster, the workers write to the directory, so their machines must share it, and the
// environment of the workers describes the store. If the job is restarted, it continues from its
// newest checkpoint, with or without the option Resume.
func CheckpointDir(dir string) Option { return func(c *config) { c.checkpoints.dir = dir } }

// CheckpointEvery sets the time between two checkpoints; the default is DefaultCheckpointEvery.
// It excludes CheckpointSupersteps and CheckpointAuto.
func CheckpointEvery(d time.Duration) Option {
	return func(c *config) { c.checkpoints.every = d }
}

// CheckpointSupersteps saves the state of every queue after every n supersteps, instead of by
// time. If supersteps take less time than writing, some of the states are not written. If the run has
// several processes, the next state is then saved as soon as all have written the one before.
func CheckpointSupersteps(n int) Option { return func(c *config) { c.checkpoints.steps = n } }

// CheckpointAuto chooses the time between two checkpoints from what they cost: sqrt(2·cost·mtbf),
// Young's rule, from 1 s to 10 min. The cost is the time for which the subtasks of a queue stand
// still while their states are encoded, which is measured. Until the first checkpoint of a queue,
// the time is DefaultCheckpointEvery. mtbf is the mean time between failures that end the run, of
// all machines together; DefaultMTBF is a guess for those who do not know it.
func CheckpointAuto(mtbf time.Duration) Option {
	return func(c *config) { c.checkpoints.auto, c.checkpoints.mtbf = true, mtbf }
}

// CheckpointFailAfter makes the run fail if no checkpoint could be written for this long, for
// example because the disk is full. By default, and for 0, failures are logged and the run goes
// on.
func CheckpointFailAfter(d time.Duration) Option {
	return func(c *config) { c.checkpoints.failAfter = d }
}

// Resume makes the run continue from the newest checkpoint in CheckpointDir. If there is none, as
// the earlier run ended before it wrote one, the run begins at superstep 1. A checkpoint that is
// damaged is logged, and the one before it is used.
func Resume(on bool) Option { return func(c *config) { c.checkpoints.resume = on } }

// RequireCheckpoints makes it an error if a queue cannot continue from a saved state, so that it would
// begin at superstep 1 again. A queue of which the plan says so is refused before anything runs. A
// queue whose state turns out to be such that it cannot be saved fails the run after its first
// superstep: if a codec does not restore an object, or if replicated objects differ between subtasks.
// The states must be saved, so the option needs CheckpointDir or a cluster with Copies. Instead of copies
// in the memory of other workers, a job that has a single worker writes files to its task manager.
//
// Without the option, a warning tells of such queues, and the run goes on. With CheckpointDir, a queue
// whose state turns out to be such that it cannot be saved fails the run nevertheless, at its first
// checkpoint.
func RequireCheckpoints(on bool) Option { return func(c *config) { c.checkpoints.require = on } }

// FromSavepoint makes the run continue from a savepoint, in a directory or an S3-compatible store.
// The run may have another build of the program, other arguments, other parallelism, and may be on
// another cluster. What differs is said. The number of shards, the seed, the inputs, and the stages
// of the queues that have a state in the savepoint must be the same. Stages are compared by their places,
// kinds and keys, and by the names that comqueue.Named gave them. The names of functions are not compared.
// Values of a key whose type has changed are an error when the key is used. Nothing in the savepoint is
// changed. A run with CheckpointDir copies it there before its first superstep, and does not need it after
// that. With Resume, the run
// continues from CheckpointDir instead, if there is a checkpoint.
func FromSavepoint(place string) Option {
	return func(c *config) { c.checkpoints.savepoint = place }
}

// on reports whether the run has anything to do with checkpoints.
func (c *checkpointConfig) on() bool { return c.dir != "" || c.savepoint != "" }

// check returns an error for the first setting that cannot be used.
func (c *checkpointConfig) check() error {
	bad := func(format string, a ...any) error { return &optionError{fmt.Sprintf(format, a...)} }
	switch {
	case c.every < 0:
		return bad("--checkpoint-every is %v: want a positive time or number of supersteps", c.every)
	case c.steps < 0:
		return bad("--checkpoint-every is %d supersteps: want at least 1", c.steps)
	case c.every > 0 && c.steps > 0:
		return bad("--checkpoint-every is both %v and %d supersteps: want one of them", c.every, c.steps)
	case c.auto && (c.every > 0 || c.steps > 0):
		return bad("--checkpoint-every is auto, and also a time or a number of supersteps: want one of them")
	case !c.auto && c.mtbf != 0:
		return bad("--mtbf is for --checkpoint-every auto")
	case c.auto && c.mtbf <= 0:
		return bad("--mtbf is %v: want a positive time", c.mtbf)
	case c.failAfter < 0:
		return bad("--checkpoint-fail-after is %v: want a positive time", c.failAfter)
	case c.dir == "" && c.resume:
		return bad("--resume needs --checkpoint-dir, the directory with the checkpoints of the run to continue")
	case c.dir == "" && (c.every > 0 || c.steps > 0 || c.auto || c.failAfter > 0):
		return bad("--checkpoint-every and --checkpoint-fail-after need --checkpoint-dir")
	case strings.Contains(c.dir, "://") && !s3store.Is(c.dir):
		return bad("--checkpoint-dir is %s: want a directory or %sBUCKET/PREFIX", c.dir, s3store.Scheme)
	case strings.Contains(c.savepoint, "://") && !s3store.Is(c.savepoint):
		return bad("--from is %s: want a directory or %sBUCKET/PREFIX", c.savepoint, s3store.Scheme)
	}
	return nil
}

// wire returns the settings for the workers of a cluster, or nil if the run has no checkpoints.
func (c *checkpointConfig) wire() (*wire.Checkpoints, error) {
	if !c.on() {
		return nil, nil
	}
	w := &wire.Checkpoints{Every: c.every, Supersteps: c.steps, MTBF: c.mtbf, FailAfter: c.failAfter, Resume: c.resume}
	for _, p := range []struct {
		place string
		into  *string
	}{{c.dir, &w.Dir}, {c.savepoint, &w.Savepoint}} {
		*p.into = p.place
		if p.place != "" && !s3store.Is(p.place) {
			var err error
			if *p.into, err = filepath.Abs(p.place); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// checkpointed describes a run whose queues are saved.
type checkpointed struct {
	graph *plan.Graph
	plan  *plan.Plan
	args  []byte    // encoded
	part  task.Part // the part of the plan that this process runs
	// job and attempt identify the run on its cluster. They are zero if it has no cluster.
	job     wire.JobID
	attempt int
	// inMemory reports whether the workers have a state of a queue in their memory, from which the queue can
	// continue. It is nil except in worker 0 of a later attempt.
	inMemory func(queue string) bool
	report   func(checkpointWrite) // called after each write of this process; nil if nobody is told
}

// key identifies a run of several processes; see checkpoint.Journal.Announce.
func (r *checkpointed) key() string { return fmt.Sprintf("job %s, attempt %d", r.job, r.attempt) }

// openCheckpoints opens the checkpoints of a run, in the process with subtask 0, and begins to write
// them. It returns nil if the run has no checkpoints. fail ends the run.
func (c *config) openCheckpoints(ctx context.Context, r *checkpointed, fail context.CancelCauseFunc) (*saver, error) {
	settings := &c.checkpoints
	if !settings.on() {
		return nil, nil
	}
	if settings.dir != "" && !s3store.Is(settings.dir) {
		if err := checkPaths("--checkpoint-dir", settings.dir, r.graph); err != nil {
			return nil, err
		}
	}
	run, err := c.runOf(r)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-dir: %w", err)
	}
	s := newSaver(settings, c.logger, fail)
	s.several, s.report = len(r.part.Slots) > 1, r.report
	s.checkPlace = func(place string) error { return checkSavepoint(place, r.graph) }
	s.openPlace = func(ctx context.Context, place string, fail context.CancelCauseFunc) (checkpoint.Store, error) {
		return c.openStore(ctx, place, r, fail)
	}
	if settings.dir != "" {
		if s.store, err = c.openStore(ctx, settings.dir, r, fail); err != nil {
			return nil, &storeError{fmt.Errorf("--checkpoint-dir: %w", err)}
		}
	}
	if err := c.lead(ctx, s, run, r); err != nil {
		return nil, errors.Join(err, s.closeStore())
	}
	s.start()
	return s, nil
}

// joinCheckpoints opens the checkpoints of a run in a process without subtask 0, and begins to write
// its part of them.
func (c *config) joinCheckpoints(ctx context.Context, r *checkpointed, from *wire.Origin, fail context.CancelCauseFunc) (*saver, error) {
	s := newSaver(&c.checkpoints, c.logger, fail)
	s.several, s.report = true, r.report
	var err error
	if c.checkpoints.dir != "" {
		s.store, err = c.joinStore(c.checkpoints.dir)
	}
	if err == nil {
		err = c.join(ctx, s, from, r)
	}
	if err != nil {
		flag := "--checkpoint-dir"
		var from *savepointError
		if errors.As(err, &from) {
			flag = "--from"
		}
		return nil, errors.Join(&storeError{fmt.Errorf("%s: %w", flag, err)}, s.closeStore())
	}
	s.start()
	return s, nil
}

// storeError is the error of a store that cannot be used, which may be so for a while only.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// storeGone reports whether an attempt has failed because what it had in the store of its checkpoints was
// removed. The next attempt makes it anew.
func storeGone(err error) bool {
	return errors.Is(err, checkpoint.ErrGone) || errors.Is(err, s3store.ErrGone)
}

// removeCheckpoints removes the checkpoints of a run that has succeeded, and whose processes have
// ended.
func (c *config) removeCheckpoints(ctx context.Context, r *checkpointed) error {
	store, err := c.openStore(ctx, c.checkpoints.dir, r, func(error) {})
	if err != nil { // the process that has it may be frozen
		store, err = c.joinStore(c.checkpoints.dir)
	}
	if err != nil {
		return err
	}
	journal, err := checkpoint.Open(ctx, store, checkpoint.Run{})
	if err == nil {
		err = journal.Remove(ctx)
	}
	return errors.Join(err, store.Close())
}

// runOf returns what identifies a run in its checkpoints.
func (c *config) runOf(r *checkpointed) (checkpoint.Run, error) {
	run := checkpoint.Run{Job: r.graph.Job, Graph: r.graph.Fingerprint(), Shards: c.shards, Seed: c.seed, Arguments: r.args}
	program, err := programs.Self()
	if err == nil {
		run.Program = program.Hash
	}
	for _, q := range r.plan.Queues {
		stages, named := r.plan.StagesOf(q.Name)
		run.Queues = append(run.Queues, checkpoint.Stages{Queue: q.Name, Stages: stages, Named: named})
	}
	for _, f := range r.graph.Facts {
		run.Facts = append(run.Facts, checkpoint.Fact{Name: f.Name, Hash: xxh3.HashString(f.Value)})
	}
	return run, err
}

// openStore opens a store for this run alone: that of its checkpoints, or one for a savepoint. fail is
// called if another run takes over the store.
func (c *config) openStore(ctx context.Context, place string, r *checkpointed, fail context.CancelCauseFunc) (checkpoint.Store, error) {
	settings := &c.checkpoints
	if !s3store.Is(place) {
		return checkpoint.OpenDirOf(c.disk, place, string(r.job), r.attempt)
	}
	store, err := s3store.Open(ctx, place, s3store.Config{Getenv: settings.environment(), Fail: fail, Say: settings.say, Job: string(r.job), Attempt: r.attempt})
	if err != nil {
		return nil, err // without the conversion of a nil pointer
	}
	return store, nil
}

// readStore opens the store of a savepoint in the process with subtask 0.
func (c *config) readStore(place string) (checkpoint.Store, error) {
	if !s3store.Is(place) {
		return checkpoint.ReadDir(c.disk, place)
	}
	return c.joinStore(place)
}

// joinStore opens a store without the right to it alone, which is open in the process with subtask 0:
// that of the run's checkpoints, or that of a savepoint.
func (c *config) joinStore(place string) (checkpoint.Store, error) {
	if !s3store.Is(place) {
		return checkpoint.JoinDir(c.disk, place)
	}
	store, err := s3store.Join(place, s3store.Config{Getenv: c.checkpoints.environment()})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// environment returns the environment of stores.
func (c *checkpointConfig) environment() func(name string) string {
	if c.getenv == nil {
		return os.Getenv
	}
	return c.getenv
}

// newSaver returns a saver that has neither opened a checkpoint nor started.
func newSaver(settings *checkpointConfig, log hclog.Logger, fail context.CancelCauseFunc) *saver {
	s := &saver{
		log: log, fail: fail, every: settings.every, steps: settings.steps, failAfter: settings.failAfter, mtbf: settings.mtbf,
		waiting: make(map[stateKey]*task.Saved), saved: make(map[string]time.Time), dueStep: make(map[string]int), from: make(map[string]*task.Cut),
		prove: settings.require, proved: make(map[string]bool), running: make(map[string]bool), chosen: make(map[string]intervalFromCost), forced: make(map[string]bool),
	}
	if s.every == 0 {
		s.every = DefaultCheckpointEvery
	}
	return s
}

// checkPaths returns an error if a directory of checkpoints, named in the error, lies where it disturbs the
// job: in an output, which is replaced as a whole, or among the files of an input.
func checkPaths(name, dir string, g *plan.Graph) error {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, a := range n.Attrs {
			if a.Key != "path" {
				continue
			}
			what := "input"
			if n.Sink {
				what = "output"
			}
			within, err := isWithin(dir, a.Value)
			if err != nil {
				return err
			}
			if within {
				return &optionError{fmt.Sprintf("%s %s is inside the %s %s: take a directory outside of it", name, dir, what, a.Value)}
			}
		}
	}
	return nil
}

// checkSavepoint returns an error if a savepoint of a run cannot be at a place.
func checkSavepoint(place string, g *plan.Graph) error {
	if err := wire.CheckPlace(place); err != nil || s3store.Is(place) {
		return err
	}
	return checkPaths("the savepoint", place, g)
}

// isWithin reports whether path is the file or directory parent, or inside it.
func isWithin(path, parent string) (bool, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return false, err
	}
	rest, err := filepath.Rel(parent, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator)), nil
}
