package task

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/collective"
)

// FollowsPeer reports whether an error of a worker only says that another process of the run
// has failed or cannot be reached. The cause is then in that process. The error's type decides:
// a *collective.PeerError, or an error with a method PeerLost() bool that returns true, such as
// the errors of networks. For damage in transit FollowsPeer returns false, whichever process
// the error names, as damage does not follow from another failure.
func FollowsPeer(err error) bool {
	var rank *collective.PeerError
	var peer interface{ PeerLost() bool }
	if errors.Is(err, collective.ErrDamaged) {
		return false
	}
	return errors.As(err, &rank) || errors.As(err, &peer) && peer.PeerLost()
}

// networkError is a failure of the network, not of an operator. A run recognises its own
// networkError by comparing pointers with the cause of its context.
type networkError struct{ err error }

func (e *networkError) Error() string { return e.err.Error() }
func (e *networkError) Unwrap() error { return e.err }

// endedBy is the cause of a run's context after the failure of a subtask. An error that wraps
// this cause is a consequence of that failure. A rank of a queue may pass the cause to other
// workers before the run itself ends them. They must not report it as a failure of their own;
// the method PeerLost prevents that.
type endedBy struct{ failure *TaskError }

func (e *endedBy) Error() string { return e.failure.Error() }
func (e *endedBy) Unwrap() error { return e.failure }

// PeerLost marks the error for FollowsPeer.
func (*endedBy) PeerLost() bool { return true }

// groupError says that the workers of a queue could not form a group. The cause is in the
// worker that is missing, or in the network.
type groupError struct {
	queue   string
	workers int
	err     error
}

func (e *groupError) Error() string {
	return fmt.Sprintf("queue %q: its %d workers did not connect: %v", e.queue, e.workers, e.err)
}

func (e *groupError) Unwrap() error { return e.err }

// PeerLost marks the error for FollowsPeer.
func (*groupError) PeerLost() bool { return true }
