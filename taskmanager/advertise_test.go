package taskmanager

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdvertised(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	for _, c := range []struct{ jobManager, host, listen, want string }{
		{"10.0.0.1:6123", "", "10.0.0.2", "10.0.0.2"},
		{"10.0.0.1:6123", "here", "10.0.0.2", "10.0.0.2"},
		{"10.0.0.1:6123", "", "worker.example.com", "worker.example.com"},
		{"10.0.0.1:6123", "here", "0.0.0.0", "here"},
		{"10.0.0.1:6123", "here", "", "here"},
		{"127.0.0.1:6123", "", "0.0.0.0", "127.0.0.1"},
		{"127.0.0.1:6123", "", "", "127.0.0.1"},
		{"127.0.0.2:6123", "", "::", "127.0.0.1"}, // the local address of the route
		{"no-such-host.invalid:6123", "", "0.0.0.0", name},
		{"no port", "", "0.0.0.0", name},
	} {
		require.Equal(t, c.want, advertised(c.jobManager, c.host, c.listen), c)
	}
}

func TestSecluded(t *testing.T) {
	for c, want := range map[[2]string]bool{
		{"10.0.0.1:6123", "127.0.0.1"}:  true,
		{"jobs:6123", "localhost"}:      true,
		{"10.0.0.1:6123", "10.0.0.2"}:   false,
		{"127.0.0.1:6123", "127.0.0.1"}: false,
		{"localhost:6123", "here"}:      false,
	} {
		require.Equal(t, want, (&Config{JobManager: c[0], Advertise: c[1]}).loopbackOnly(), c)
	}
}
