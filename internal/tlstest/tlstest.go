// Package tlstest makes certificates for tests of TLS on this machine.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates for the processes of a test.
type Authority struct {
	Pool *x509.CertPool // has the authority's own certificate

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a new key.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Pool: x509.NewCertPool(), key: newKey(t)}
	der := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of a test"},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key)
	var err error
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.Pool.AddCert(a.cert)
	return a
}

// Certificate returns a new certificate for the loopback address, valid for clients and servers.
func (a *Authority) Certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key := newKey(t)
	der := a.sign(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "process"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Config returns a configuration for clients and servers with a new certificate. It trusts the
// certificates of the authority only.
func (a *Authority) Config(t testing.TB) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{a.Certificate(t)}, RootCAs: a.Pool, ClientCAs: a.Pool}
}

// NewConfig returns a configuration of a new authority.
func NewConfig(t testing.TB) *tls.Config {
	t.Helper()
	return NewAuthority(t).Config(t)
}

// sign returns a certificate with the properties of template for the owner of key. The
// authority's own certificate is the first that it signs.
func (a *Authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	parent := a.cert
	if parent == nil {
		parent = template
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	require.NoError(t, err)
	return der
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}
