package task

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkersApartFollowAPeer requires that FollowsPeer is true of the error of workers that
// could not connect to each other, as its cause is in the missing worker.
func TestWorkersApartFollowAPeer(t *testing.T) {
	cause := errors.New("process 1 of 3 is missing")
	err := fmt.Errorf("run: %w", &groupError{queue: "sums", workers: 3, err: cause})
	require.True(t, FollowsPeer(err))
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, `run: queue "sums": its 3 workers did not connect: process 1 of 3 is missing`)
	require.False(t, FollowsPeer(cause))
}
