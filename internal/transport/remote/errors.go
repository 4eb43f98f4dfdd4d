package remote

import (
	"errors"
	"fmt"
	"os"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// PeerError says that another worker was lost, cannot be reached, or breaks the protocol. Its
// Rank is the number of the worker.
type PeerError = peerlink.PeerError

// lost returns the error about another worker.
func (n *Network) lost(worker int, address, reason string, err error) *PeerError {
	return &PeerError{Worker: true, Rank: worker, Address: address, Reporter: n.cfg.Worker, Reason: reason, Kind: err}
}

var (
	// ErrLeft is wrapped by the error of a Send to a worker that has closed its network
	// with a good-bye.
	ErrLeft = errors.New("it has left")

	// ErrSilent is wrapped by the error about a worker that was silent for too long.
	ErrSilent = errors.New("silence")

	// ErrRefused is wrapped by the error if one of two workers refused the other: they are not
	// of the same attempt.
	ErrRefused = peerlink.ErrRefused

	// ErrProtocol is wrapped by the error about a worker that breaks the protocol.
	ErrProtocol = peerlink.ErrProtocol
)

// damageReport is the other side's report that bytes arrived there damaged.
type damageReport struct{ text string }

func (e *damageReport) Error() string { return "what was sent came " + e.text }
func (e *damageReport) Unwrap() error { return ErrDamaged }

// violation is an ErrProtocol with details.
func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// reason says how a connection was lost, in words that follow "worker 3 ...". A process that
// dies and one that closes look alike, and differently from one system to another.
func (n *Network) reason(err error) string {
	var theirs *damageReport
	switch {
	case errors.As(err, &theirs):
		return fmt.Sprintf("says that what worker %d sent it came %s", n.cfg.Worker, theirs.text)
	case errors.Is(err, ErrDamaged):
		return fmt.Sprintf("sent worker %d what was %v", n.cfg.Worker, err)
	case errors.Is(err, ErrProtocol):
		return "sent what is " + err.Error()
	case peerlink.IsClosed(err):
		return "closed its connection without a good-bye"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "did not answer in time"
	}
	return "lost its connection: " + err.Error()
}
