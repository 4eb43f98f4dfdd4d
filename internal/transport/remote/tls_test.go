package remote

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/tlstest"
	"github.com/superstep-ml/superstep/internal/transport"
)

// TestTLS sends messages in both directions over TLS, and requires that no network fails, even
// when it is idle or closes.
func TestTLS(t *testing.T) {
	c := tlstest.NewConfig(t)
	j := newJobAt(t, 2, func(_ int, cfg *peerlink.Config) { cfg.TLS = c }, func(_ int, cfg *Config) { cfg.Detection = 400 * time.Millisecond })
	j.connect()
	rows := j.rows(5000)
	defer rows.Release()
	for w := range 2 {
		k := newKeeper(100)
		j.listen(at(0, 0, w), k)
		s := j.dial(1-w, at(0, 0, w))
		for range 100 {
			rows.Retain()
			require.NoError(t, s.Send(soon(t), transport.Message{Rows: rows}))
		}
		for range 100 {
			m := k.next(t)
			require.EqualValues(t, 5000, m.Rows.NumRows())
			m.Release()
		}
	}
	<-time.After(time.Second) // this is longer than the detection time
	require.NoError(t, j.nets[0].Close())
	j.close()
	j.noFailures()
}

// TestTLSDisagreement requires that a worker with TLS and a worker without TLS cannot connect,
// and that workers with different certificate authorities cannot connect. The dialer's error
// must name the reason.
func TestTLSDisagreement(t *testing.T) {
	c, other := tlstest.NewConfig(t), tlstest.NewConfig(t)
	bare := c.Clone()
	bare.Certificates = nil
	for _, x := range []struct {
		dialer, listener *tls.Config
		says, logs       string
	}{
		{nil, c, "it closes the connection without an answer: does it use TLS", "first record does not look like a TLS handshake"},
		{c, nil, "cannot be reached: TLS: ", "it begins with TLS, which this process does not use"},
		{other, c, "cannot be reached: TLS: tls: failed to verify certificate", "remote error"},
		{bare, c, "certificate required", "client didn't provide a certificate"},
	} {
		var logs syncBuffer
		j := newJobAt(t, 2, func(w int, cfg *peerlink.Config) {
			cfg.TLS = x.dialer
			if w == 1 {
				cfg.TLS, cfg.Logger = x.listener, hclog.New(&hclog.LoggerOptions{Output: &logs})
			}
		}, func(_ int, cfg *Config) { cfg.ConnectTimeout = 500 * time.Millisecond })
		j.connect()
		err := j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{})
		require.ErrorContains(t, err, x.says)
		require.Equal(t, error(j.failure(0)), err)
		require.Eventually(t, func() bool { return strings.Contains(logs.String(), x.logs) }, patience, time.Millisecond)
		j.close()
		require.Len(t, j.fails, 1)
	}
}
