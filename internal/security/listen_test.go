package security

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckListen(t *testing.T) {
	for _, address := range []string{
		"localhost:6123", "LOCALHOST:6123", "localhost.:6123", "127.0.0.1:6123", "127.8.9.10:0", "[::1]:6123", "[::ffff:127.0.0.1]:6123", "unix:/run/x.sock",
	} {
		require.NoError(t, CheckListen(address, false, false), address)
	}
	for _, address := range []string{
		":6123", ":0", "0.0.0.0:6123", "[::]:6123", "10.0.0.1:6123", "128.0.0.1:6123", "[fe80::1%eth0]:6123", "[::ffff:10.0.0.1]:6123",
		"example.com:6123", "localhost.example.com:6123", "notlocalhost:6123", "127.1:6123", "2130706433:6123", "0x7f.1:6123",
	} {
		err := CheckListen(address, false, false)
		require.ErrorContains(t, err, "listening on "+address+" lets other machines in: give a certificate with --tls-cert and --tls-key")
		require.NoError(t, CheckListen(address, true, false))
		require.NoError(t, CheckListen(address, false, true))
	}
	for address, want := range map[string]string{
		"": "it is not host:port", "localhost": "it is not host:port", "6123": "it is not host:port", "::1:6123": "it is not host:port",
		"localhost:": `port ""`, "localhost:http": `port "http"`, "localhost:65536": `port "65536"`, "localhost:-1": `port "-1"`,
	} {
		require.ErrorContains(t, CheckListen(address, true, true), want, address)
	}
}

func FuzzCheckListen(f *testing.F) {
	f.Add("localhost:6123")
	f.Add("[::1%lo]:1")
	f.Fuzz(func(t *testing.T, address string) {
		if CheckListen(address, false, false) == nil {
			require.NoError(t, CheckListen(address, true, true))
			local, err := IsLoopback(address)
			require.NoError(t, err)
			require.True(t, local)
		}
	})
}
