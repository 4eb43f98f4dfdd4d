package membership

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// ErrLeft is wrapped by the error that ranks get if they wait for a rank that has left without
// a failure.
var ErrLeft = errors.New("left the group")

// ErrTimeout is wrapped by errors about waits that exceeded their limit.
var ErrTimeout = errors.New("timed out")

// ErrDamaged is wrapped by errors about bytes that were changed in transit, in this or another
// network of the project.
var ErrDamaged = peerlink.ErrDamaged

// ErrReplaced is wrapped by the cause of a group that ended because a later attempt of the
// group has begun.
var ErrReplaced = errors.New("a later attempt has begun")

// MismatchError says that two ranks are not in the same operation, or disagree about its
// arguments. All ranks get the same error.
type MismatchError struct {
	Rank, Other       int
	Doing, OtherDoing string // descriptions of the operations of Rank and of Other

	seq uint64 // number of the other rank's operation, which the coordinator uses; 0 if it is not known
}

// Disagreement returns the error of a rank that got a message of another operation. doing
// describes the rank's own operation. other is the sender of the message, and seq is the
// operation number in its header. [Membership.Fail] adds the other rank's operation to the
// error.
func Disagreement(rank int, doing string, other int, seq uint64) *MismatchError {
	return &MismatchError{Rank: rank, Doing: doing, Other: other, seq: seq}
}

// OtherSeq returns the number of the other rank's operation, or 0 if it is not known.
func (e *MismatchError) OtherSeq() uint64 { return e.seq }

// Error returns a text that names both ranks and the operations of both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks disagree: rank %d is in %s, rank %d is in %s",
		e.Rank, e.Doing, e.Other, e.OtherDoing)
}

// PeerError says that a rank failed, or cannot be reached. All ranks get the same error: the
// error of the rank that noticed the failure first. Its Kind is ErrLeft, ErrTimeout,
// ErrDamaged, or nil.
type PeerError = peerlink.PeerError
