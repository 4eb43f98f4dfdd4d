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
)

// DefaultCheckpointEvery is the default time between two checkpoints.
const DefaultCheckpointEvery = 30 * time.Second

// checkpointConfig holds the settings of a run's checkpoints.
type checkpointConfig struct {
	dir       string
	every     time.Duration
	steps     int
	failAfter time.Duration
	resume    bool
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
// instances added by AddNew. It is for jobs that run in this process as a whole.
func CheckpointDir(dir string) Option { return func(c *config) { c.checkpoints.dir = dir } }

// CheckpointEvery sets the time between two checkpoints; the default is DefaultCheckpointEvery.
// It excludes CheckpointSupersteps.
func CheckpointEvery(d time.Duration) Option {
	return func(c *config) { c.checkpoints.every = d }
}

// CheckpointSupersteps saves the state of every queue after every n supersteps, instead of by
// time. If supersteps take less time than writing, some of the states are not written.
func CheckpointSupersteps(n int) Option { return func(c *config) { c.checkpoints.steps = n } }

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

// check returns an error for the first setting that cannot be used.
func (c *checkpointConfig) check(together bool) error {
	bad := func(format string, a ...any) error { return &optionError{fmt.Sprintf(format, a...)} }
	switch {
	case c.every < 0:
		return bad("--checkpoint-every is %v: want a positive time or number of supersteps", c.every)
	case c.steps < 0:
		return bad("--checkpoint-every is %d supersteps: want at least 1", c.steps)
	case c.every > 0 && c.steps > 0:
		return bad("--checkpoint-every is both %v and %d supersteps: want one of them", c.every, c.steps)
	case c.failAfter < 0:
		return bad("--checkpoint-fail-after is %v: want a positive time", c.failAfter)
	case c.dir == "" && c.resume:
		return bad("--resume needs --checkpoint-dir, the directory with the checkpoints of the run to continue")
	case c.dir == "" && (c.every > 0 || c.steps > 0 || c.failAfter > 0):
		return bad("--checkpoint-every and --checkpoint-fail-after need --checkpoint-dir")
	case strings.Contains(c.dir, "://") && !s3store.Is(c.dir):
		return bad("--checkpoint-dir is %s: want a directory or %sBUCKET/PREFIX", c.dir, s3store.Scheme)
	case c.dir != "" && !together:
		return bad("--checkpoint-dir is for jobs that run in this process as a whole: leave out --cluster and the option Workers")
	}
	return nil
}

// openCheckpoints opens the checkpoints of a run and begins to write them. It returns nil if the
// run has no checkpoints. fail ends the run.
func (c *config) openCheckpoints(ctx context.Context, r *prepared, fail context.CancelCauseFunc) (*saver, error) {
	settings := &c.checkpoints
	if settings.dir == "" {
		return nil, nil
	}
	if !s3store.Is(settings.dir) {
		if err := checkPaths(settings.dir, r.graph); err != nil {
			return nil, err
		}
	}
	run, err := c.runOf(r)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-dir: %w", err)
	}
	store, err := c.openStore(ctx, fail)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-dir: %w", err)
	}
	s, err := newSaver(ctx, store, run, settings, c.logger, fail)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return s, nil
}

// runOf returns what identifies a run in its checkpoints.
func (c *config) runOf(r *prepared) (checkpoint.Run, error) {
	run := checkpoint.Run{Job: r.graph.Job, Graph: r.graph.Fingerprint(), Shards: c.shards, Seed: c.seed}
	program, err := programs.Self()
	if err == nil {
		run.Program = program.Hash
		run.Arguments, err = encodeArgs(r.args)
	}
	for _, f := range r.graph.Facts {
		run.Facts = append(run.Facts, checkpoint.Fact{Name: f.Name, Hash: xxh3.HashString(f.Value)})
	}
	return run, err
}

// openStore opens the store of the run's checkpoints. fail ends the run if another run takes over
// the store.
func (c *config) openStore(ctx context.Context, fail context.CancelCauseFunc) (checkpoint.Store, error) {
	settings := &c.checkpoints
	if !s3store.Is(settings.dir) {
		return checkpoint.OpenDir(c.disk, settings.dir)
	}
	getenv := settings.getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	store, err := s3store.Open(ctx, settings.dir, s3store.Config{Getenv: getenv, Fail: fail, Say: settings.say})
	if err != nil {
		return nil, err // without the conversion of a nil pointer
	}
	return store, nil
}

// newSaver returns a saver of a run, which has begun to write.
func newSaver(ctx context.Context, store checkpoint.Store, run checkpoint.Run, settings *checkpointConfig, log hclog.Logger, fail context.CancelCauseFunc) (*saver, error) {
	s := &saver{
		store: store, log: log, fail: fail, every: settings.every, steps: settings.steps, failAfter: settings.failAfter,
		waiting: make(map[string]*task.Cut), saved: make(map[string]time.Time),
	}
	if s.every == 0 {
		s.every = DefaultCheckpointEvery
	}
	var err error
	if s.journal, err = checkpoint.Open(ctx, store, run); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, settings); err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// begin finds the states from which the queues continue.
func (s *saver) begin(ctx context.Context, settings *checkpointConfig) error {
	say := settings.say
	if say == nil {
		say = func(string) {}
	}
	if !settings.resume {
		if !s.journal.Empty() {
			return fmt.Errorf("--checkpoint-dir: %s has checkpoints of an earlier run: continue that run with --resume, or remove its files", s.store)
		}
		return nil
	}
	found, refused, err := s.journal.Load(ctx)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	for _, r := range refused {
		s.log.Warn("a checkpoint cannot be used; the one before it is", "error", r)
	}
	if found == nil {
		say(fmt.Sprintf("there is no checkpoint in %s yet: the run begins at superstep 1", s.store))
		return nil
	}
	s.from = make(map[string]*task.Cut, len(found.Queues))
	var where []string
	for i, q := range found.Queues {
		cut, err := task.CutOfPieces(found.Pieces[i])
		if err == nil && cut.Step != q.Superstep {
			err = fmt.Errorf("its superstep is %d", cut.Step)
		}
		if err != nil {
			return fmt.Errorf("--resume: checkpoint %d in %s: queue %q, superstep %d: %w", found.Number, s.store, q.Name, q.Superstep, err)
		}
		s.from[q.Name] = cut
		at := fmt.Sprintf("queue %q continues after superstep %d", q.Name, q.Superstep)
		if q.Ended {
			at = fmt.Sprintf("queue %q has done all of its %d supersteps", q.Name, q.Superstep)
		}
		where = append(where, at)
	}
	say(fmt.Sprintf("checkpoint %d of %s: %s", found.Number, found.Written.Local().Format("2006-01-02 15:04:05"), strings.Join(where, ", ")))
	return nil
}

// checkPaths returns an error if the directory of the checkpoints lies where it disturbs the job:
// in an output, which is replaced as a whole, or among the files of an input.
func checkPaths(dir string, g *plan.Graph) error {
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
				return &optionError{fmt.Sprintf("--checkpoint-dir %s is inside the %s %s: take a directory outside of it", dir, what, a.Value)}
			}
		}
	}
	return nil
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
