package membership

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/internal/transport/checksum"
)

// ErrLeft is wrapped by the error that ranks get when they wait for one that closed
// its end without an error.
var ErrLeft = errors.New("left the group")

// ErrTimeout is wrapped by errors of waits that took longer than they may.
var ErrTimeout = errors.New("timed out")

// ErrDamaged is wrapped by errors about bytes that are not those that were sent, here or in
// a network beside this one.
var ErrDamaged = checksum.ErrDamaged

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

// PeerError says that a rank failed, or cannot be reached. All ranks get the same
// one, that of whoever noticed first.
type PeerError struct {
	Rank     int    // that failed
	Address  string // where it was, if known
	Reporter int    // that noticed
	During   string // what the reporter was in, in words, or ""
	Reason   string // "closed its connection", "was silent for 3s", its own error
	Kind     error  // ErrLeft, ErrTimeout, ErrDamaged, or nil
}

// Error names the rank, the reason, and the operation.
func (e *PeerError) Error() string {
	s := fmt.Sprintf("rank %d", e.Rank)
	if e.Address != "" {
		s += " (" + e.Address + ")"
	}
	s += " " + e.Reason
	if e.During != "" {
		s += fmt.Sprintf(", noticed by rank %d in %s", e.Reporter, e.During)
	}
	return s
}

// Unwrap is the kind of the failure.
func (e *PeerError) Unwrap() error { return e.Kind }
