package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"localhost":        "localhost:6123",
		" localhost:7000 ": "localhost:7000",
		"10.0.0.1":         "10.0.0.1:6123",
		"::1":              "[::1]:6123",
		"[::1]":            "[::1]:6123",
		"[::1]:80":         "[::1]:80",
		"fe80::1%eth0":     "[fe80::1%eth0]:6123",
	} {
		got, _, err := ParseAddress(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	_, port, err := ParseAddress("host:81")
	require.NoError(t, err)
	require.Equal(t, 81, port)
	for _, text := range []string{"", " ", ":6123", "host:", "host:0", "host:65536", "host:http", "a:b:c", "http://host:6123", "host/path", "two hosts", "[::1", "[]", "[", "[host]:1x", "[a:b:c]:1"} {
		_, _, err := ParseAddress(text)
		require.ErrorContains(t, err, "is no address of a job manager", text)
		require.ErrorContains(t, err, "such as localhost:6123", text)
	}
}
