package peerlink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// PeerError says that another process, or a rank in it, was lost, cannot be reached, or
// violates the protocol. All ranks of a group get the same error: the error of the rank that
// noticed the failure first.
type PeerError struct {
	Worker   bool   // Rank and Reporter are numbers of workers, and not of ranks of a group
	Rank     int    // rank or worker that failed
	Address  string // address of the failed process's port, or of its end of the connection; "" if not known
	Reporter int    // rank or worker that noticed the failure
	During   string // operation that the reporter was executing, or ""
	Reason   string // such as "closed its connection" or "was silent for 3s"
	Kind     error  // error that Unwrap returns: a sentinel for the cause, or nil
}

// Error returns a text such as "rank 3 (10.0.0.2:4711) was silent for 4s, noticed by rank 1 in
// Barrier #4".
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

// PeerLost reports whether the error is about the loss of another process. Such an error may be
// the consequence of another failure. PeerLost returns false for damage in transit, which is
// never such a consequence.
func (e *PeerError) PeerLost() bool { return !errors.Is(e.Kind, ErrDamaged) }

var (
	// ErrDamaged is wrapped by errors about bytes that were changed in transit.
	ErrDamaged = checksum.ErrDamaged

	// ErrProtocol is wrapped by the error about a peer that sent bytes that are not a message
	// of the protocol.
	ErrProtocol = errors.New("no message of this protocol")

	// ErrRefused is wrapped by every Refusal, on both sides of the connection.
	ErrRefused = errors.New("refused")

	// ErrSecret is wrapped by the refusal of a connection whose two sides have different
	// secrets.
	ErrSecret = errors.New("the other side does not know the secret")

	// ErrNoSecret is wrapped by the refusal of a connection if only one side has a secret.
	ErrNoSecret = errors.New("one side has a secret and the other has none")

	// ErrClosed is returned by Open on a port that is closed.
	ErrClosed = errors.New("the port is closed")
)

// Damaged returns an error that wraps ErrDamaged and has the formatted details.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// Violation returns an error that wraps ErrProtocol and has the formatted details.
func Violation(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// Refusal is the error about a connection that was refused in its handshake.
type Refusal struct {
	Reason string
	Theirs bool // the other side has refused
	Later  bool // another try may succeed
	kind   error
}

// Refuse returns a final refusal: another try would be refused too.
func Refuse(format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// RefuseLater returns a refusal after which another try may succeed.
func RefuseLater(format string, args ...any) *Refusal {
	r := Refuse(format, args...)
	r.Later = true
	return r
}

// refuseFor returns a final refusal that wraps kind, with its text and detail as the reason.
func refuseFor(kind error, detail string) *Refusal {
	r := &Refusal{Reason: kind.Error(), kind: kind}
	if detail != "" {
		r.Reason += ": " + detail
	}
	return r
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns ErrRefused. It also returns ErrSecret or ErrNoSecret if this error is the
// reason of the refusal.
func (r *Refusal) Unwrap() []error {
	if r.kind == nil {
		return []error{ErrRefused}
	}
	return []error{ErrRefused, r.kind}
}

// finalError is an error after which another try is useless.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// Final returns err, marked as final: another try to connect would fail in the same way.
func Final(err error) error { return &finalError{err} }

// IsFinal reports whether err is final: whether it is marked by Final or is a final refusal.
func IsFinal(err error) bool {
	var final *finalError
	var refused *Refusal
	return errors.As(err, &final) || errors.As(err, &refused) && !refused.Later
}

// IsClosed reports whether err says that the other side has closed a connection. It does not
// distinguish a process that died from a process that closed the connection, because both cause
// the same errors, which depend on the operating system.
func IsClosed(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
