package remote

import (
	"errors"
	"fmt"
	"os"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// PeerError says that another worker was lost, cannot be reached, or violates the protocol.
// Rank is the number of that worker.
type PeerError = peerlink.PeerError

// lost returns a PeerError about another worker. The error err is its Kind.
func (n *Network) lost(worker int, address, reason string, err error) *PeerError {
	return &PeerError{Worker: true, Rank: worker, Address: address, Reporter: n.cfg.Worker, Reason: reason, Kind: err}
}

var (
	// ErrLeft is wrapped by the error of Send to a worker that has closed its network and sent
	// a good-bye.
	ErrLeft = errors.New("it has left")

	// ErrSilent is wrapped by the error that says that a worker was silent for the detection
	// time.
	ErrSilent = errors.New("silence")

	// ErrRefused is wrapped by the error that says that one of two workers refused the other,
	// for example because their attempts differ.
	ErrRefused = peerlink.ErrRefused

	// ErrProtocol is wrapped by the error that says that a worker violates the protocol.
	ErrProtocol = peerlink.ErrProtocol
)

// damageReport is the other side's report that it received damaged bytes from this side.
type damageReport struct{ text string }

func (e *damageReport) Error() string { return "what was sent came " + e.text }
func (e *damageReport) Unwrap() error { return ErrDamaged }

// reason returns the reason why a connection was lost, as a text that follows "worker 3 ". The
// text for a process that died is the same as that for a process that closed its connection:
// the two cannot be distinguished, and err depends on the operating system.
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
