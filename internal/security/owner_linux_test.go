package security

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoListens(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		uid, known := listenerOf(port)
		require.True(t, known, address)
		require.Equal(t, os.Getuid(), uid)
		require.NoError(t, checkListener(port))
		require.NoError(t, l.Close())
		_, known = listenerOf(port)
		require.False(t, known)
	}
	const line = "   0: 0100007F:17EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1234        0 99 1 0 100 0 0 10 0"
	uid, ok := listensAt(line, 6123)
	require.True(t, ok)
	require.Equal(t, 1234, uid)
	for _, other := range []string{
		"   0: 0100007F:17EC 00000000:0000 0A 0:0 00:0 0  1234 0",              // another port
		"   0: 0100007F:17EB 0100007F:1111 01 0:0 00:0 0  1234 0",              // a connection
		"   0: 0100000A:17EB 00000000:0000 0A 0:0 00:0 0  1234 0",              // another interface
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm uid", "", // not an entry
	} {
		_, ok := listensAt(other, 6123)
		require.False(t, ok, other)
	}
}
