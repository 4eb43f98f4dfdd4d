package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/tlstest"
)

// TestSecret requires that processes with the same secret can connect, with and without TLS.
func TestSecret(t *testing.T) {
	for _, secure := range []bool{false, true} {
		certs := tlstest.NewConfig(t)
		_, nodes := clusterAt(t, oneEach(2), func(c *peerlink.Config) {
			c.Secret = []byte("known to both")
			if secure {
				c.TLS = certs
			}
		}, nil)
		a, b := couple(t, nodes[0], nodes[1], 0)
		h := Header{Seq: 1, Length: 3}
		require.NoError(t, a.Send(&h, []byte("abc")))
		var got Header
		require.NoError(t, b.Next(&got))
		data := make([]byte, 3)
		require.NoError(t, b.Read(data))
		require.Equal(t, "abc", string(data))
	}
}

// TestWrongSecret requires that the dialer gets an error with the reason if the secrets differ,
// and that the group ends for this reason on both sides.
func TestWrongSecret(t *testing.T) {
	for says, secrets := range map[string][2]string{
		peerlink.ErrSecret.Error():                                                             {"one", "other"},
		peerlink.ErrNoSecret.Error() + ": the other has none":                                  {"one", ""},
		peerlink.ErrNoSecret.Error() + ": the side that connects sends no proof of the secret": {"", "other"},
	} {
		given := make(chan string, 2)
		given <- secrets[0]
		given <- secrets[1]
		_, nodes := clusterAt(t, oneEach(2), func(c *peerlink.Config) { c.Secret = []byte(<-given) }, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err := nodes[0].Open(ctx, []Route{{Peer: 1}})
		cancel()
		require.ErrorContains(t, err, "refuses channel 0 of rank 0: "+says)
		<-nodes[1].Failed()
		require.ErrorContains(t, nodes[1].Err(), says)
	}
}
