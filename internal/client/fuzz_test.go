package client

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseAddress requires that package net can parse the returned address, and that
// ParseAddress returns the same for it again.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"localhost", "localhost:7000", "::1", "[::1]:80", "a:b:c", "http://x", "", "[", "]:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, port, err := ParseAddress(text)
		if err != nil {
			return
		}
		host, portText, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.NotEmpty(t, host)
		require.Equal(t, strconv.Itoa(port), portText)
		again, _, err := ParseAddress(address)
		require.NoError(t, err)
		require.Equal(t, address, again)
	})
}
