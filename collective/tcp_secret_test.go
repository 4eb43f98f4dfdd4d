package collective

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// TestTCPSecret requires that collectives work in a group whose processes share a secret.
func TestTCPSecret(t *testing.T) {
	groups := tcpGroups(t, 3, nil, func(c *TCPConfig) { c.Secret = []byte("known to all three") })
	errs := make(chan error, 3)
	for _, g := range groups {
		go func() { errs <- g.Rank(g.Ranks()[0]).Barrier(context.Background()) }()
	}
	for range 3 {
		require.NoError(t, <-errs)
	}
	closeAll(t, groups)
}

// TestTCPWrongSecret requires that a process without the right secret cannot join, and that the
// errors of both sides mention the secret.
func TestTCPWrongSecret(t *testing.T) {
	for _, secrets := range [][2]string{{"one", "other"}, {"one", ""}, {"", "other"}} {
		store := membership.FileStore(t.TempDir())
		errs := [2]chan error{make(chan error, 1), make(chan error, 1)}
		for rank := range 2 {
			go func() {
				_, err := NewTCPGroup(context.Background(), rank, TCPConfig{
					Store: store, Size: 2, Group: t.Name(), Secret: []byte(secrets[rank]), JoinTimeout: time.Second,
				})
				errs[rank] <- err
			}()
		}
		for rank := range 2 {
			err := <-errs[rank]
			require.ErrorContains(t, err, "secret", "rank %d, %q", rank, secrets)
		}
	}
}
