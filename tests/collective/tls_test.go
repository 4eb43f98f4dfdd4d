package collective_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// authority signs certificates for the processes of a group.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pool.AddCert(a.cert)
	return a
}

// sign returns a certificate for a process on this machine, valid for clients and servers.
func (a *authority) sign(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "process"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestEverythingUnderTLS requires that all collectives and algorithms work among processes that
// authenticate each other by certificates.
func TestEverythingUnderTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "the group's")
	mutual := func(cfg *collective.TCPConfig) {
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{ca.sign(t)}, RootCAs: ca.pool, ClientCAs: ca.pool}
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
	ca, other := newAuthority(t, "the group's"), newAuthority(t, "another's")
	member := func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{ca.sign(t)}, RootCAs: ca.pool, ClientCAs: ca.pool}
	}
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
		w.tcp[0], err = join(0, killLimit, member())
		first <- err
	}()
	_, err := store.Get(context.Background(), fmt.Sprintf("superstep/%s/0/coordinator", t.Name()))
	require.NoError(t, err)
	for what, security := range map[string]*tls.Config{
		"no TLS":                           nil,
		"no certificate":                   {RootCAs: ca.pool},
		"a certificate of somebody else's": {RootCAs: ca.pool, Certificates: []tls.Certificate{other.sign(t)}},
		"another idea of whom to trust":    {RootCAs: other.pool, Certificates: []tls.Certificate{ca.sign(t)}},
	} {
		g, err := join(1, 300*time.Millisecond, security)
		if err == nil {
			g.Close()
		}
		require.ErrorContains(t, err, "rank 1 cannot join the group", what)
	}
	w.tcp[1], err = join(1, killLimit, member())
	require.NoError(t, err)
	require.NoError(t, <-first)
	w.end = func(rank int) *collective.Comm { return w.tcp[rank].Rank(rank) }
	w.run(t, func(c *collective.Comm) error {
		return allReduceOf[float64](c, &allReduceCase{n: 1000})
	})
	w.close(t)
}
