package peerlink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/superstep-ml/superstep/internal/transport/checksum"
)

// PeerError says that another process, or a rank in it, was lost, cannot be reached, or
// does not behave. All ranks of a group get the same one, that of whoever noticed first.
type PeerError struct {
	Worker   bool   // Rank is the number of a worker, and not of a rank of a group
	Rank     int    // that failed
	Address  string // where it was reached, or from where it came, if known
	Reporter int    // that noticed
	During   string // what the reporter was in, in words, or ""
	Reason   string // "closed its connection", "was silent for 3s", its own error
	Kind     error  // what was found, or nil
}

// Error writes "rank 3 (10.0.0.2:4711) was silent for 4s, noticed by rank 1 in Barrier #4".
func (e *PeerError) Error() string {
	who := "rank"
	if e.Worker {
		who = "worker"
	}
	s := fmt.Sprintf("%s %d", who, e.Rank)
	if e.Address != "" {
		s += " (" + e.Address + ")"
	}
	s += " " + e.Reason
	if e.During != "" {
		s += fmt.Sprintf(", noticed by rank %d in %s", e.Reporter, e.During)
	}
	return s
}

// Unwrap returns what was found.
func (e *PeerError) Unwrap() error { return e.Kind }

// PeerLost says that what failed follows from the loss of another process. What was
// damaged in transit is nobody's loss, but a cause.
func (e *PeerError) PeerLost() bool { return !errors.Is(e.Kind, ErrDamaged) }

var (
	// ErrDamaged is wrapped by errors about bytes that are not those that were sent.
	ErrDamaged = checksum.ErrDamaged

	// ErrProtocol is wrapped by the error about who sends what is no message.
	ErrProtocol = errors.New("no message of this protocol")

	// ErrRefused is wrapped by the error of who was refused, or had to refuse: every
	// Refusal.
	ErrRefused = errors.New("refused")

	// ErrSecret is wrapped by the refusal of one side of a connection whose two do not
	// know the same secret.
	ErrSecret = errors.New("the other side does not know the secret")

	// ErrNoSecret is wrapped by the refusal where one side has a secret and the other
	// has none.
	ErrNoSecret = errors.New("one side has a secret and the other has none")

	// ErrClosed is returned by the calls on a port that was closed.
	ErrClosed = errors.New("the port is closed")
)

// damage is an ErrDamaged with details.
func damage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// violation is an ErrProtocol with details.
func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// Refusal is that a connection was not let in.
type Refusal struct {
	Reason string
	Theirs bool // the other side refused
	Later  bool // another try may be let in
	kind   error
}

// Refuse is a refusal for good.
func Refuse(format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// RefuseLater is a refusal of one who may try again.
func RefuseLater(format string, args ...any) *Refusal {
	r := Refuse(format, args...)
	r.Later = true
	return r
}

// refuseFor is a refusal for a reason that programs can tell.
func refuseFor(kind error, detail string) *Refusal {
	r := &Refusal{Reason: kind.Error(), kind: kind}
	if detail != "" {
		r.Reason += ": " + detail
	}
	return r
}

// Error is the reason.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap tells ErrRefused, and ErrSecret or ErrNoSecret.
func (r *Refusal) Unwrap() []error {
	if r.kind == nil {
		return []error{ErrRefused}
	}
	return []error{ErrRefused, r.kind}
}

// finalError says that another try cannot help.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// Final marks the error of a dial: another try would end the same.
func Final(err error) error { return &finalError{err} }

// IsFinal reports whether an error of a dial would come of another try too.
func IsFinal(err error) bool {
	var final *finalError
	var refused *Refusal
	return errors.As(err, &final) || errors.As(err, &refused) && !refused.Later
}

// IsClosed reports whether an error says that the other side has closed a connection. A
// process that dies and one that closes look alike, and differently from one system to
// another.
func IsClosed(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
