//go:build unix

package commands

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecondSignal requires that the second of two signals is noticed, and not the first.
func TestSecondSignal(t *testing.T) {
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(arrived)
	second, stop := secondSignal()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	<-arrived
	select {
	case <-second:
		require.Fail(t, "there was one signal only")
	default:
	}
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	<-second
	stop()

	second, stop = secondSignal()
	stop()
	select {
	case <-second:
		require.Fail(t, "there was no signal")
	default:
	}
}
