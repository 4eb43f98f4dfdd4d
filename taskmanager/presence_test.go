package taskmanager

import (
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestPresence requires that the port sends its key to everybody, also to several at once, and that
// connections are refused after it is closed.
func TestPresence(t *testing.T) {
	p, err := openPresence(&Config{Listen: "127.0.0.1", Advertise: "localhost", Slots: 1})
	require.NoError(t, err)
	host, _, err := net.SplitHostPort(p.address)
	require.NoError(t, err)
	require.Equal(t, "localhost", host)
	address := p.listener.Addr().String()
	var all []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		all = append(all, conn)
	}
	for _, conn := range all {
		key, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, p.key, string(key))
		require.NoError(t, conn.Close())
	}
	p.close()
	_, err = net.Dial("tcp", address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	(*presence)(nil).close()
}

// TestPresenceLeavesPortsToWorkers requires that the port is the last of a range, and that there is
// none if the workers need the whole range.
func TestPresenceLeavesPortsToWorkers(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, text, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	c := &Config{Listen: "127.0.0.1", Advertise: "127.0.0.1", Slots: 2, Ports: wire.Ports{First: port - 1, Last: port}}
	p, err := openPresence(c)
	require.NoError(t, err)
	require.Nil(t, p, "two slots need two ports")
	c.Slots, c.Ports.First = 1, port
	c.Ports.Last = port + 1
	require.NoError(t, free.Close())
	p, err = openPresence(c)
	if err != nil {
		t.Skip("another process has taken both ports")
	}
	defer p.close()
	require.Contains(t, []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), net.JoinHostPort("127.0.0.1", strconv.Itoa(port+1))}, p.address)
}
