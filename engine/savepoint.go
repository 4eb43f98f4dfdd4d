package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/engine/plan"
)

// A run needs the savepoint from which it continues until it has states of its own. A run with durable
// checkpoints copies the savepoint to them before its first superstep, so that later attempts need nothing
// else, whichever queues have ended or have not begun. Other jobs need it until the workers hold a state of each
// queue in their memory.

// savepointError is the error of a savepoint that another process has read.
type savepointError struct{ error }

func (e *savepointError) Unwrap() error { return e.error }

// continueFromSavepoint finds the states of the savepoint from which queues continue. own is the checkpoint of
// the run from which other queues continue, or nil. It returns nil if the savepoint is not needed any more.
// In a later attempt an error is one of a store that may be back for the next attempt.
func (c *config) continueFromSavepoint(ctx context.Context, s *saver, run checkpoint.Run, r *checkpointed, own *checkpoint.Checkpoint) (*checkpoint.Manifest, error) {
	lacks, needed := c.needsSavepoint(r, own)
	if !needed {
		return nil, nil
	}
	found, err := c.findSavepoint(ctx, run, r)
	if err == nil {
		s.origin.Savepoint = found.Number
		if s.origin.Number == 0 {
			s.origin.Written = found.Written
		}
		err = s.continueFrom(found, r)
	}
	switch {
	case err == nil:
		manifest := found.Manifest // without the pieces, which may be large
		return &manifest, nil
	case r.inMemory == nil:
		return nil, fmt.Errorf("--from: %w", err)
	}
	return nil, &storeError{fmt.Errorf("--from: the savepoint %s is needed, as there is no newer state of queue %q, and it cannot be used (put it back, and leave it there): %w", c.checkpoints.savepoint, lacks, err)}
}

// needsSavepoint reports whether the run has to read its savepoint: in the first attempt in any case, and in a
// later one if a queue may have its newest state there, which it returns.
func (c *config) needsSavepoint(r *checkpointed, own *checkpoint.Checkpoint) (queue string, needed bool) {
	if own != nil && own.Savepoint == absolute(c.checkpoints.savepoint) {
		return "", false
	}
	if r.inMemory == nil {
		return "", true
	}
	lacks := func(q plan.Queue) bool {
		saved := own != nil && slices.ContainsFunc(own.Queues, func(o checkpoint.Queue) bool { return o.Name == q.Name })
		return !saved && !r.inMemory(q.Name)
	}
	if i := slices.IndexFunc(r.plan.Queues, lacks); i >= 0 {
		return r.plan.Queues[i].Name, true
	}
	return "", false
}

// findSavepoint returns the savepoint from which the run continues. It says what differs from the
// run that wrote it.
func (c *config) findSavepoint(ctx context.Context, run checkpoint.Run, r *checkpointed) (*checkpoint.Checkpoint, error) {
	store, err := c.readStore(c.checkpoints.savepoint)
	if err != nil {
		return nil, err
	}
	found, differs, refused, err := checkpoint.LoadSavepoint(ctx, store, run, r.needed)
	err = errors.Join(err, store.Close())
	if err != nil {
		return nil, err
	}
	for _, e := range refused {
		c.logger.Warn("a checkpoint cannot be used; the one before it is", "error", e)
	}
	for _, d := range differs {
		if c.checkpoints.say == nil {
			c.logger.Warn("this run differs from the one that wrote the savepoint", "savepoint", c.checkpoints.savepoint, "difference", d)
		}
		c.checkpoints.tell(fmt.Sprintf("unlike the run that wrote the savepoint: %s", d))
	}
	return found, nil
}

// adopt copies a savepoint to the checkpoints of the run. If that fails, as the disk may be full, the run goes on
// and needs the savepoint for longer.
func (c *config) adopt(ctx context.Context, s *saver, m *checkpoint.Manifest) error {
	store, err := c.readStore(c.checkpoints.savepoint)
	if err == nil {
		err = errors.Join(s.journal.Adopt(ctx, store, m, absolute(c.checkpoints.savepoint)), store.Close())
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, checkpoint.ErrTaken):
		return &storeError{err}
	case err != nil:
		s.log.Warn("the savepoint could not be copied to the checkpoints, so leave it where it is", "savepoint", c.checkpoints.savepoint, "error", err)
	}
	return nil
}

// joinSavepoint loads what this process needs of the savepoint that the process with subtask 0 has read.
func (c *config) joinSavepoint(ctx context.Context, s *saver, number int, r *checkpointed) error {
	store, err := c.joinStore(c.checkpoints.savepoint)
	if err != nil {
		return err
	}
	found, err := checkpoint.LoadNumber(ctx, store, number, r.needed)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return s.continueFrom(found, r)
}

// absolute returns a place as it is named from any working directory.
func absolute(place string) string {
	if s3store.Is(place) {
		return place
	}
	if path, err := filepath.Abs(place); err == nil {
		return path
	}
	return place
}
