package membership

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// gone is an error of another network. Its method PeerLost returns the error's value.
type gone bool

func (gone) Error() string    { return "worker 2 was silent for 4s" }
func (g gone) PeerLost() bool { return bool(g) }

// TestLostPeersStayConsequences requires that PeerLost still returns true for an error that
// only reports the loss of another process, after the error was sent once and after it was sent
// twice.
func TestLostPeersStayConsequences(t *testing.T) {
	var lost interface{ PeerLost() bool }
	told := afterTransfer(fmt.Errorf("rank 1 was cancelled: %w", gone(true)))
	require.EqualError(t, told, "rank 1 was cancelled: worker 2 was silent for 4s")
	require.True(t, errors.As(told, &lost) && lost.PeerLost())
	again := afterTransfer(told)
	require.True(t, errors.As(again, &lost) && lost.PeerLost(), "the error must still report a loss when a second process has sent it on")
	require.False(t, errors.As(afterTransfer(fmt.Errorf("rank 1: %w", gone(false))), &lost))
	require.ErrorIs(t, afterTransfer(fmt.Errorf("rank 1: %w", ErrTimeout)), ErrTimeout)
}
