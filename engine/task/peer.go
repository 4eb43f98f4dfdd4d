package task

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/collective"
)

// FollowsPeer reports whether an error of a worker only says that another process of
// the run has failed or cannot be reached, so that the true cause is to be looked for
// there. It is told by the types of the errors: a *collective.PeerError, or one with
// a method PeerLost() bool that returns true, such as those of networks. What was damaged
// in transit is a cause of its own, whichever process the error names.
func FollowsPeer(err error) bool {
	var rank *collective.PeerError
	var peer interface{ PeerLost() bool }
	if errors.Is(err, collective.ErrDamaged) {
		return false
	}
	return errors.As(err, &rank) || errors.As(err, &peer) && peer.PeerLost()
}

// networkError is the failure of the network, of no operator. Its address tells it
// from what the context of a run may have ended with.
type networkError struct{ err error }

func (e *networkError) Error() string { return e.err.Error() }
func (e *networkError) Unwrap() error { return e.err }

// endedBy is what the context of a run ends with for the failure of a subtask. Whoever finds
// it there fails in consequence: where a rank of a queue does, and tells the others before the
// run can, it must not pass for their own failure.
type endedBy struct{ failure *TaskError }

func (e *endedBy) Error() string { return e.failure.Error() }
func (e *endedBy) Unwrap() error { return e.failure }

// PeerLost is for FollowsPeer.
func (*endedBy) PeerLost() bool { return true }

// apartError says that the workers of a queue could not make a group: whoever is
// missing, or what keeps it away, is the cause.
type apartError struct {
	queue   string
	workers int
	err     error
}

func (e *apartError) Error() string {
	return fmt.Sprintf("queue %q: its %d workers did not come together: %v", e.queue, e.workers, e.err)
}

func (e *apartError) Unwrap() error { return e.err }

// PeerLost is for FollowsPeer.
func (*apartError) PeerLost() bool { return true }
