package collective_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/tlstest"
)

// TestEverythingUnderTLS requires that all collectives and algorithms work among processes that
// authenticate each other by certificates.
func TestEverythingUnderTLS(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewAuthority(t)
	mutual := func(cfg *collective.TCPConfig) {
		cfg.TLS = ca.Config(t)
	}
	places := [][][]int{blockLayout(3, 3), cyclicLayout(4, 2)}
	if testsize.Soak {
		places = append(places, blockLayout(2, 2), blockLayout(5, 5), cyclicLayout(7, 3))
	}
	for _, hosts := range places {
		p := len(flat(hosts))
		w := overTCP(t, p, hosts, mutual)
		for coll := range program.NumCollectives {
			if coll == program.AllReduce {
				names := named(coll, algorithm.Params{P: p})
				runAllReduces(t, w, allReduceTable(p, []int{0, 1, 1000, 40000}, names))
				continue
			}
			runCalls(t, w, callsOf(coll, p, []int{0, 1, 1000}), 3)
		}
		w.run(t, func(c *collective.Comm) error { return exchangeAll(c, 1000) })
		w.close(t)
	}
}

// TestWhoHasNoCertificateStaysOutside requires that a TLS group that waits for its last process
// refuses processes without a certificate of the group. The last process must then be able to
// join.
func TestWhoHasNoCertificateStaysOutside(t *testing.T) {
	t.Parallel()
	ca, other := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	store := newTestStore()
	join := func(rank int, wait time.Duration, security *tls.Config) (*collective.TCPGroup, error) {
		return collective.NewTCPGroup(t.Context(), rank, collective.TCPConfig{
			Store: store, Size: 2, Group: t.Name(), TLS: security, JoinTimeout: wait,
		})
	}
	w := &testGroup{name: "TLS", p: 2, tcp: make([]*collective.TCPGroup, 2)}
	first := make(chan error, 1)
	go func() {
		var err error
		w.tcp[0], err = join(0, killLimit, ca.Config(t))
		first <- err
	}()
	_, err := store.Get(context.Background(), fmt.Sprintf("superstep/%s/0/coordinator", t.Name()))
	require.NoError(t, err)
	for what, security := range map[string]*tls.Config{
		"no TLS":                           nil,
		"no certificate":                   {RootCAs: ca.Pool},
		"a certificate of somebody else's": {RootCAs: ca.Pool, Certificates: []tls.Certificate{other.Certificate(t)}},
		"another idea of whom to trust":    {RootCAs: other.Pool, Certificates: []tls.Certificate{ca.Certificate(t)}},
	} {
		g, err := join(1, 300*time.Millisecond, security)
		if err == nil {
			g.Close()
		}
		require.ErrorContains(t, err, "rank 1 cannot join the group", what)
	}
	w.tcp[1], err = join(1, killLimit, ca.Config(t))
	require.NoError(t, err)
	require.NoError(t, <-first)
	w.end = func(rank int) *collective.Comm { return w.tcp[rank].Rank(rank) }
	w.run(t, func(c *collective.Comm) error {
		return allReduceOf[float64](c, &allReduceCase{n: 1000})
	})
	w.close(t)
}
