package peerlink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/superstep-ml/superstep/internal/transport/checksum"
)

// PeerError says that another process, or a rank in it, was lost, cannot be reached, or breaks
// the protocol. All ranks of a group get the same error, that of the rank that noticed first.
type PeerError struct {
	Worker   bool   // Rank is the number of a worker, and not of a rank of a group
	Rank     int    // that failed
	Address  string // address at which it was reached, or from which it came, if known
	Reporter int    // rank or worker that noticed
	During   string // operation in which the reporter was, in words, or ""
	Reason   string // "closed its connection", "was silent for 3s", its own error
	Kind     error  // sentinel error for the cause, or nil
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

// Unwrap returns Kind.
func (e *PeerError) Unwrap() error { return e.Kind }

// PeerLost says that the failure follows from the loss of another process. Damage in transit is
// not such a loss, but a cause itself.
func (e *PeerError) PeerLost() bool { return !errors.Is(e.Kind, ErrDamaged) }

var (
	// ErrDamaged is wrapped by errors about bytes that were changed in transit.
	ErrDamaged = checksum.ErrDamaged

	// ErrProtocol is wrapped by the error about a peer that sends something else than messages
	// of the protocol.
	ErrProtocol = errors.New("no message of this protocol")

	// ErrRefused is wrapped by every Refusal, on the side that was refused and on the side that
	// refused.
	ErrRefused = errors.New("refused")

	// ErrSecret is wrapped by the refusal if the two sides of a connection do not know the same
	// secret.
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

// Refusal is the error of a connection that was not admitted.
type Refusal struct {
	Reason string
	Theirs bool // the other side refused
	Later  bool // another try may succeed
	kind   error
}

// Refuse is a refusal for good.
func Refuse(format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// RefuseLater is a refusal after which another try may succeed.
func RefuseLater(format string, args ...any) *Refusal {
	r := Refuse(format, args...)
	r.Later = true
	return r
}

// refuseFor is a refusal with a reason that errors.Is recognizes.
func refuseFor(kind error, detail string) *Refusal {
	r := &Refusal{Reason: kind.Error(), kind: kind}
	if detail != "" {
		r.Reason += ": " + detail
	}
	return r
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns ErrRefused, and ErrSecret or ErrNoSecret if that is the reason.
func (r *Refusal) Unwrap() []error {
	if r.kind == nil {
		return []error{ErrRefused}
	}
	return []error{ErrRefused, r.kind}
}

// finalError marks an error after which another try cannot help.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// Final marks the error of a dial: another try would fail in the same way.
func Final(err error) error { return &finalError{err} }

// IsFinal reports whether another try would fail with the same error.
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
