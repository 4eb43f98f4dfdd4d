package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
)

// A savepoint is a copy of a checkpoint. A goroutine of the saver copies it while checkpoints go on, as the
// place may be slow or may not answer. Copies are made one after the other. The Journal keeps each
// checkpoint until it is copied.

const (
	longestCopy    = 30 * time.Minute // time for the copy of a checkpoint
	mostSavepoints = 8                // savepoints of a run that are asked for and not complete
)

var errNotCopied = errors.New("the run has ended before the savepoint was complete")

// countSavepoint returns done for a savepoint, so that it is counted until it is done. It returns an error if
// there are too many, as each keeps a checkpoint in the store. mu is held.
func (s *saver) countSavepoint(done func(*checkpoint.Manifest, error)) (func(*checkpoint.Manifest, error), error) {
	if s.savepoints == mostSavepoints {
		return nil, fmt.Errorf("%d savepoints of the run are not complete: ask again when one of them is", mostSavepoints)
	}
	s.savepoints++
	return func(m *checkpoint.Manifest, err error) {
		s.mu.Lock()
		s.savepoints--
		s.mu.Unlock()
		done(m, err)
	}, nil
}

// copyBehind copies a checkpoint to the place of a request, after the copies that were begun before. It is
// called in the saver's goroutine, and does not wait.
func (s *saver) copyBehind(m *checkpoint.Manifest, r *saveRequest) {
	release := s.journal.Hold(m)
	s.copies.Go(func() {
		err := s.copyInTurn(m, r.to)
		release()
		r.done(m, err)
	})
}

// copyInTurn copies a checkpoint to a place when no other copy is under way.
func (s *saver) copyInTurn(m *checkpoint.Manifest, place string) error {
	select {
	case s.copying <- struct{}{}:
	case <-s.context.Done():
		return errNotCopied
	}
	defer func() { <-s.copying }()
	err := s.copyTo(m, place)
	if err != nil && s.context.Err() != nil {
		err = fmt.Errorf("%w: %w", errNotCopied, err)
	}
	return err
}

// copyTo copies a checkpoint to a place of its own.
func (s *saver) copyTo(m *checkpoint.Manifest, place string) error {
	ctx, end := context.WithTimeoutCause(s.context, longestCopy, fmt.Errorf("it was not complete after %v", longestCopy))
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	to, err := s.openPlace(ctx, place, cancel)
	if err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	return errors.Join(checkpoint.Copy(ctx, m, s.store, to), to.Close())
}

// awaitCopies waits for the copies, whose context has ended or will end soon. It gives up a place that does
// not answer: the goroutine of that copy is left behind, and fails once the place answers.
func (s *saver) awaitCopies() {
	done := make(chan struct{})
	go func() {
		s.copies.Wait()
		close(done)
	}()
	if !within(lastWrite, done) {
		s.log.Warn("the place of a savepoint does not answer: what it holds is left as it is")
	}
}
