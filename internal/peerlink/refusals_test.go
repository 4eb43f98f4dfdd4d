package peerlink

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// TestRefusalsAreCounted requires that the first refusals of a minute are logged, and further
// refusals are only counted.
func TestRefusalsAreCounted(t *testing.T) {
	var r refusals
	now := time.Unix(1000, 0)
	for round := range 3 {
		for i := range 100 {
			untold, tell := r.next(now.Add(time.Duration(i) * time.Millisecond))
			require.Equal(t, i < maxLoggedRefusals, tell, i)
			if i == 0 && round > 0 {
				require.Equal(t, 100-maxLoggedRefusals, untold)
			} else {
				require.Zero(t, untold)
			}
		}
		now = now.Add(refusalWindow)
	}
}

// TestRefusalsDoNotFillTheLog requires that connections without a hello cause only a bounded
// number of log lines.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	p, err := Listen(Config{Job: "test", Secret: testSecret, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	require.NoError(t, err)
	for range 50 {
		nc, err := net.Dial("tcp", p.Address())
		require.NoError(t, err)
		_, err = nc.Write([]byte("no hello"))
		require.NoError(t, err)
		require.NoError(t, nc.(*net.TCPConn).CloseWrite())
		_, _ = nc.Read(make([]byte, 1)) // returns when the port has closed the connection
		require.NoError(t, nc.Close())
	}
	require.NoError(t, p.Close())
	require.Equal(t, maxLoggedRefusals, strings.Count(log.String(), "refused a connection"))
	require.Contains(t, log.String(), "refused connections that were not logged one by one: connections=45")
	require.NoError(t, p.Close())
	require.Equal(t, 1, strings.Count(log.String(), "one by one"))
}
