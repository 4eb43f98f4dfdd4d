package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

const (
	// attemptLife is the time for which the credentials of an attempt are valid.
	attemptLife = 30 * 24 * time.Hour
	// clockSkew is the maximum difference between the clocks of two machines.
	clockSkew = 10 * time.Minute
	// workerName is a host name in the certificates of all workers. Connections between workers
	// verify this name and not the worker's address: a process with a certificate of the
	// attempt's authority is one of its workers, wherever it runs.
	workerName = "worker.superstep.invalid"
)

// Authority is a certificate authority that exists only in memory. A job manager makes one for
// an attempt of a job, issues a certificate to each worker, and then drops the authority. A
// worker cannot sign certificates, and other attempts have other authorities.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

// NewAuthority returns a new authority for the workers of one attempt. It is valid for 30 days.
func NewAuthority() (*Authority, error) {
	return newAuthority("superstep attempt", time.Now(), attemptLife)
}

func newAuthority(name string, now time.Time, life time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"Superstep"}, CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // the authority cannot sign certificates of other authorities
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	return &Authority{cert: cert, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

// PEM returns the authority's certificate in PEM.
func (a *Authority) PEM() string { return a.pem }

// Issue returns a new certificate for a worker, for use as server and as client, and its
// private key. hosts has names and addresses of the worker in addition to workerName; it may be
// empty.
func (a *Authority) Issue(hosts []string) (certPEM, keyPEM string, err error) {
	return a.issue(grant{
		name: "superstep worker", role: roleWorker, hosts: append([]string{workerName}, hosts...),
		usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// grant has the contents of a certificate.
type grant struct {
	name  string
	role  string
	hosts []string
	usage []x509.ExtKeyUsage
}

// issue returns a new certificate, which is valid for as long as the authority, and its private
// key.
func (a *Authority) issue(g grant) (certPEM, keyPEM string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("making a certificate: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return "", "", fmt.Errorf("making a certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"Superstep"}, CommonName: g.name},
		NotBefore:             a.cert.NotBefore,
		NotAfter:              a.cert.NotAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           g.usage,
		BasicConstraintsValid: true,
		URIs:                  []*url.URL{{Scheme: roleScheme, Opaque: g.role}},
	}
	if err := addHosts(template, g.hosts); err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return "", "", fmt.Errorf("making a certificate: %w", err)
	}
	keyPEM, err = encodeKey(key)
	return encodePEM("CERTIFICATE", der), keyPEM, err
}

// addHosts adds names and addresses to a certificate, without duplicates.
func addHosts(template *x509.Certificate, hosts []string) error {
	seen := map[string]bool{}
	for _, host := range hosts {
		host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
		if seen[host] {
			continue
		}
		seen[host] = true
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		if !hostName(host) {
			return fmt.Errorf("host %q is neither a name nor an address (a port is not part of it)", host)
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	return nil
}

// hostName reports whether name, in lower case, is valid in a certificate. It must consist of
// labels of letters, digits, hyphens and underscores; the first of several labels may be "*".
func hostName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for i, label := range strings.Split(name, ".") {
		if i == 0 && label == "*" && name != "*" {
			continue
		}
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

// AttemptTLS returns the TLS configuration for a worker's connections within its attempt, for
// servers and clients. Each side must present a certificate of the attempt's authority.
// AttemptTLS returns nil if the credential has no certificate.
func AttemptTLS(c wire.Credential) (*tls.Config, error) { return attemptTLS(c, time.Now()) }

func attemptTLS(c wire.Credential, now time.Time) (*tls.Config, error) {
	if c.Certificate == "" && c.Key == "" && c.Authority == "" {
		return nil, nil
	}
	if c.Certificate == "" || c.Key == "" || c.Authority == "" {
		return nil, errors.New("the attempt's credential is incomplete: it needs certificate, key and authority")
	}
	cert, err := keyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		return nil, fmt.Errorf("the attempt's certificate: %w", err)
	}
	if err := checkTimes(cert.Leaf, now); err != nil {
		return nil, fmt.Errorf("the attempt's certificate is good from %s to %s, and the clock of this machine says %s: set the clocks of all machines alike",
			minute(cert.Leaf.NotBefore), minute(cert.Leaf.NotAfter), minute(now))
	}
	authority, err := parseCertificates([]byte(c.Authority))
	if err != nil {
		return nil, fmt.Errorf("the attempt's authority: %w", err)
	}
	pool := x509.NewCertPool()
	for _, a := range authority {
		pool.AddCert(a)
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{cert},
		RootCAs:                pool,
		ClientCAs:              pool,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ServerName:             workerName,
		VerifyConnection:       requireRole(roleWorker),
		SessionTicketsDisabled: true, // so that both sides authenticate themselves on every connection
	}, nil
}

// newSerial returns a serial number for a certificate: 127 random bits. RFC 5280 requires that
// it is positive and has at most 20 bytes.
func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func encodeKey(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	return encodePEM("PRIVATE KEY", der), nil
}
