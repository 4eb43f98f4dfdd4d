package membership

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// ErrLeft is wrapped by the error that ranks get when they wait for a rank that has left
// without an error.
var ErrLeft = errors.New("left the group")

// ErrTimeout is wrapped by errors of waits that took longer than they may.
var ErrTimeout = errors.New("timed out")

// ErrDamaged is wrapped by errors about bytes that were changed in transit, here or in another
// network.
var ErrDamaged = peerlink.ErrDamaged

// ErrReplaced is wrapped by the cause of a group if a later attempt of it has begun.
var ErrReplaced = errors.New("a later attempt has begun")

// MismatchError says that two ranks are not in the same operation, or disagree about its
// arguments. All ranks get the same error.
type MismatchError struct {
	Rank, Other       int
	Doing, OtherDoing string // what each is in, in words

	seq uint64 // number of the other's operation while its text is not known; 0 if unknown
}

// Disagreement returns the error of a rank that got a message of another operation. doing is
// the rank's own operation in words, seq the number in the message's header. The receiver of
// the error, such as [Membership.Fail], adds the other's operation.
func Disagreement(rank int, doing string, other int, seq uint64) *MismatchError {
	return &MismatchError{Rank: rank, Doing: doing, Other: other, seq: seq}
}

// OtherSeq returns the number of the other's operation, 0 if it is not known.
func (e *MismatchError) OtherSeq() uint64 { return e.seq }

// Error names both ranks and both sides.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks disagree: rank %d is in %s, rank %d is in %s",
		e.Rank, e.Doing, e.Other, e.OtherDoing)
}

// PeerError says that a rank failed, or cannot be reached. All ranks get the same error, that
// of the rank that noticed first. Its Kind is ErrLeft, ErrTimeout, ErrDamaged, or nil.
type PeerError = peerlink.PeerError
