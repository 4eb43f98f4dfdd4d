package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// PeerError says that another worker was lost, or cannot be reached, or does not
// behave.
type PeerError struct {
	Worker  int
	Address string // where it was reached, or from where it came
	Reason  string // "was silent for 4s"
	Err     error  // what was found, or nil
}

// Error writes "worker 3 (10.0.0.2:4711) was silent for 4s".
func (e *PeerError) Error() string {
	return fmt.Sprintf("worker %d (%s) %s", e.Worker, e.Address, e.Reason)
}

// Unwrap returns what was found.
func (e *PeerError) Unwrap() error { return e.Err }

var (
	// ErrLeft is wrapped by the error of a Send to a worker that has closed its network
	// with a good-bye.
	ErrLeft = errors.New("it has left")

	// ErrSilent is wrapped by the error about a worker that was silent for too long.
	ErrSilent = errors.New("silence")

	// ErrRefused is wrapped by the error of who was refused by another worker, or had to
	// refuse it: they are not of the same attempt.
	ErrRefused = errors.New("refused")

	// ErrProtocol is wrapped by the error about who sends what is no message.
	ErrProtocol = errors.New("no message of this protocol")
)

// accusation is that the other side got something damaged.
type accusation struct{ text string }

func (e *accusation) Error() string { return "what was sent came " + e.text }
func (e *accusation) Unwrap() error { return ErrDamaged }

// violation is an ErrProtocol with details.
func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// reason says how a connection was lost, after "worker 3 ...". A process that dies
// and one that closes look alike, and differently from one system to another.
func (n *Network) reason(err error) string {
	var theirs *accusation
	switch {
	case errors.As(err, &theirs):
		return fmt.Sprintf("says that what worker %d sent it came %s", n.cfg.Worker, theirs.text)
	case errors.Is(err, ErrDamaged):
		return fmt.Sprintf("sent worker %d what was %v", n.cfg.Worker, err)
	case errors.Is(err, ErrProtocol):
		return "sent what is " + err.Error()
	case closed(err):
		return "closed its connection without a good-bye"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "did not answer in time"
	}
	return "lost its connection: " + err.Error()
}

// closed reports whether an error says that the other side has closed a connection.
func closed(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// PeerLost says that what failed follows from the loss of another worker. What was
// damaged in transit is nobody's loss, but a cause.
func (e *PeerError) PeerLost() bool { return !errors.Is(e.Err, ErrDamaged) }
