package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// A blob that is missing, or does not have the bytes that were written, is damaged for good: the checkpoint
// before is the best that is left. A blob that cannot be read may be read later, so it is not taken for
// damaged: later states would be lost.

// damagedError is the error of a blob that cannot be what was written; see Store.
type damagedError struct{ error }

func (e *damagedError) Unwrap() error { return e.error }
func (e *damagedError) Damaged() bool { return true }

// damaged reports whether an error of Store.Get says that a blob is damaged.
func damaged(err error) bool {
	var d interface{ Damaged() bool }
	return errors.As(err, &d) && d.Damaged()
}

// ReadError says that a blob could not be read. It may be that it can be read later.
type ReadError struct{ err error }

func (e *ReadError) Error() string { return "it cannot be read: " + e.err.Error() }
func (e *ReadError) Unwrap() error { return e.err }

// get returns a blob of a checkpoint. Its error is a *ReadError unless the blob is missing or damaged.
func get(ctx context.Context, store Store, name string, most int64) ([]byte, error) {
	data, err := store.Get(ctx, name, most)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !damaged(err) {
		err = &ReadError{err}
	}
	return data, err
}

// UnusableError says that all checkpoints of a run are damaged.
type UnusableError struct {
	store   string
	refused []error         // one for each checkpoint
	queues  map[string]bool // hashes of the queues of which there may be a state
}

func (e *UnusableError) Error() string {
	why := make([]string, len(e.refused))
	for i, err := range e.refused {
		why[i] = err.Error()
	}
	return fmt.Sprintf("no checkpoint in %s can be used (if they are removed, the run begins at superstep 1): %s", e.store, strings.Join(why, "\n"))
}

func (e *UnusableError) Unwrap() []error { return e.refused }

// MayHave reports whether one of the checkpoints may have a state of a queue.
func (e *UnusableError) MayHave(queue string) bool { return e.queues[queueHash(queue)] }
