package membership

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// ErrLeft is wrapped by the error that ranks get when they wait for one that closed
// its end without an error.
var ErrLeft = errors.New("left the group")

// ErrTimeout is wrapped by errors of waits that took longer than they may.
var ErrTimeout = errors.New("timed out")

// ErrDamaged is wrapped by errors about bytes that are not those that were sent, here or in
// a network beside this one.
var ErrDamaged = peerlink.ErrDamaged

// ErrReplaced is wrapped by the cause of a group of which a later attempt has begun.
var ErrReplaced = errors.New("a later attempt has begun")

// MismatchError says that two ranks are not in the same operation, or disagree
// about what it is applied to. All ranks get the same one.
type MismatchError struct {
	Rank, Other       int
	Doing, OtherDoing string // what each is in, in words

	seq uint64 // of the other's operation, where nobody has said yet what it is; 0 if unknown
}

// Disagreement is the error of a rank that is doing something, in words, and got a
// message of another operation, with the number in its header. What the other was doing
// is for those to add whom it is given to, as [Membership.Fail].
func Disagreement(rank int, doing string, other int, seq uint64) *MismatchError {
	return &MismatchError{Rank: rank, Doing: doing, Other: other, seq: seq}
}

// OtherSeq is the number of the other's operation, 0 if that is not known.
func (e *MismatchError) OtherSeq() uint64 { return e.seq }

// Error names both ranks and both sides.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks disagree: rank %d is in %s, rank %d is in %s",
		e.Rank, e.Doing, e.Other, e.OtherDoing)
}

// PeerError says that a rank failed, or cannot be reached. All ranks get the same one,
// that of whoever noticed first. Its Kind is ErrLeft, ErrTimeout, ErrDamaged, or nil.
type PeerError = peerlink.PeerError
