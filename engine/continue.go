package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// A run continues from the newest of its own checkpoints, if there is one and it was asked to, and
// from a savepoint, if it was given one. Queues that have a state in both continue from the
// checkpoint. The process with subtask 0 chooses the checkpoint, and the other processes load what
// they need of it.

// lead opens the journal of a run, and finds the states from which its queues continue.
func (c *config) lead(ctx context.Context, s *saver, run checkpoint.Run, r *checkpointed) (err error) {
	settings := &c.checkpoints
	s.origin = &wire.Origin{}
	if s.store != nil {
		if s.journal, err = checkpoint.Open(ctx, s.store, run); err != nil {
			return &storeError{err}
		}
		found, err := s.find(ctx, settings, r)
		if err != nil {
			return err
		}
		if found != nil {
			s.origin.Number, s.origin.Written = found.Number, found.Written
			err = s.continueFrom(found, r)
		}
		if err != nil {
			return fmt.Errorf("continue from %s: %w", s.store, err)
		}
	}
	if settings.savepoint != "" {
		found, err := c.findSavepoint(ctx, run, r)
		if err == nil {
			s.origin.Savepoint = found.Number
			if s.origin.Number == 0 {
				s.origin.Written = found.Written
			}
			err = s.continueFrom(found, r)
		}
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	switch {
	case s.origin.Begins() && settings.resume:
		settings.tell(fmt.Sprintf("there is no checkpoint in %s yet: the run begins at superstep 1", s.store))
	case !s.origin.Begins():
		settings.tell(s.origin.String())
	}
	if s.journal == nil {
		return nil
	}
	if s.several || r.job != "" {
		if err := s.journal.Announce(ctx, r.key()); err != nil {
			return &storeError{err}
		}
	}
	s.origin.Generation = s.journal.Generation()
	return nil
}

// tell tells the user something, if there is one.
func (c *checkpointConfig) tell(line string) {
	if c.say != nil {
		c.say(line)
	}
}

// find returns the newest complete checkpoint, or nil if there is none.
func (s *saver) find(ctx context.Context, settings *checkpointConfig, r *checkpointed) (*checkpoint.Checkpoint, error) {
	if !settings.resume {
		if !s.journal.Empty() {
			return nil, fmt.Errorf("--checkpoint-dir: %s has checkpoints of an earlier run: continue that run with --resume, or remove its files", s.store)
		}
		return nil, nil
	}
	found, refused, err := s.journal.Load(ctx, r.needed)
	if err != nil {
		return nil, fmt.Errorf("continue from the checkpoints of the run: %w", err)
	}
	for _, e := range refused {
		s.log.Warn("a checkpoint cannot be used; the one before it is", "error", e)
	}
	return found, nil
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
		c.logger.Warn("this run differs from the one that wrote the savepoint", "savepoint", c.checkpoints.savepoint, "difference", d)
		c.checkpoints.tell(fmt.Sprintf("unlike the run that wrote the savepoint: %s", d))
	}
	return found, nil
}

// join opens the part of the checkpoints that this process writes, and loads what it needs of the
// checkpoint that the process with subtask 0 has chosen.
func (c *config) join(ctx context.Context, s *saver, from *wire.Origin, r *checkpointed) (err error) {
	if s.store != nil {
		if s.parts, err = checkpoint.Join(ctx, s.store, from.Generation, r.part.Worker, r.key()); err != nil {
			return err
		}
	}
	if from.Number > 0 {
		found, err := checkpoint.LoadNumber(ctx, s.store, from.Number, r.needed)
		if err == nil {
			err = s.continueFrom(found, r)
		}
		if err != nil {
			return err
		}
	}
	if from.Savepoint == 0 {
		return nil
	}
	store, err := c.joinStore(c.checkpoints.savepoint)
	if err != nil {
		return err
	}
	found, err := checkpoint.LoadNumber(ctx, store, from.Savepoint, r.needed)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return s.continueFrom(found, r)
}

// continueFrom decodes the states from which those queues continue for which there is no state yet.
func (s *saver) continueFrom(found *checkpoint.Checkpoint, r *checkpointed) error {
	for i, q := range found.Queues {
		if s.from[q.Name] != nil {
			continue
		}
		at := func(err error) error {
			return fmt.Errorf("checkpoint %d: queue %q, superstep %d: %w", found.Number, q.Name, q.Superstep, err)
		}
		if !slices.ContainsFunc(r.plan.Queues, func(o plan.Queue) bool { return o.Name == q.Name }) {
			return at(errors.New("the job has no such queue"))
		}
		if !r.needed(q.Name, 0, len(q.Blobs)) {
			continue // no subtask of the queue is in this process
		}
		cut, err := task.CutOfPieces(found.Pieces[i])
		if err == nil && cut.Step != q.Superstep {
			err = fmt.Errorf("its superstep is %d", cut.Step)
		}
		if err != nil {
			return at(err)
		}
		s.from[q.Name], s.dueStep[q.Name] = cut, q.Superstep
		if s.origin != nil {
			s.origin.Queues = append(s.origin.Queues, queuesOf(&found.Manifest)[i])
		}
	}
	return nil
}

// queuesOf returns the queues of a checkpoint.
func queuesOf(m *checkpoint.Manifest) []wire.OriginQueue {
	queues := make([]wire.OriginQueue, len(m.Queues))
	for i, q := range m.Queues {
		queues[i] = wire.OriginQueue{Name: q.Name, Superstep: q.Superstep, Ended: q.Ended}
	}
	return queues
}

// needed implements checkpoint.Needed. The first piece has what belongs to no subtask, and each of
// the others belongs to one.
func (r *checkpointed) needed(queue string, piece, pieces int) bool {
	parts := r.part.NeededParts(r.plan, queue, pieces-1)
	if piece == 0 {
		return slices.Contains(parts, true)
	}
	return parts[piece-1]
}
