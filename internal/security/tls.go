package security

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// maxPEM bounds the bytes of a PEM file. It is enough for hundreds of authorities.
const maxPEM = 1 << 20

// Roles in the certificates of InitTLS. A role is a URI in the certificate (a subject
// alternative name), such as "superstep:jobmanager". It prevents the use of a client's
// certificate as the certificate of a job manager. Certificates that InitTLS did not make have
// no role, and can be used for everything that their key usage and names allow.
const (
	RoleJobManager  = "jobmanager"
	RoleTaskManager = "taskmanager"
	RoleClient      = "client"
	roleWorker      = "worker"

	roleScheme = "superstep"
)

// TLSFiles has the paths of the PEM files of one side of a connection. The zero value means no
// TLS.
type TLSFiles struct {
	CA   string // certificates of authorities, one of which must have signed the other side's certificate
	Cert string // this side's certificate, followed by the intermediate certificates up to the authority
	Key  string // private key of this side's certificate
}

// IsZero reports whether there are no files.
func (f TLSFiles) IsZero() bool { return f == TLSFiles{} }

// Server returns the TLS configuration of a server, or nil if f is zero. If CA is set, clients
// must present a certificate that one of its authorities has signed; if that certificate has a
// role, the role must be task manager or client. Only TLS 1.3 is accepted.
func (f TLSFiles) Server() (*tls.Config, error) { return f.server(time.Now()) }

func (f TLSFiles) server(now time.Time) (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("a server with TLS needs both --tls-cert and --tls-key; superstep tls init makes them")
	}
	cert, err := f.certificate(now)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
	if f.CA != "" {
		if config.ClientCAs, err = authorities(f.CA, now); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.VerifyConnection = requireRole(RoleTaskManager, RoleClient)
	}
	return config, nil
}

// Client returns the TLS configuration of a client, or nil if f is zero. If CA is not set, the
// client trusts the authorities of the operating system. If Cert and Key are set, the client
// presents this certificate. The server's certificate must be valid for the dialled name; if it
// has a role, the role must be job manager.
func (f TLSFiles) Client() (*tls.Config, error) { return f.client(time.Now()) }

func (f TLSFiles) client(now time.Time) (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--tls-cert and --tls-key go together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, VerifyConnection: requireRole(RoleJobManager)}
	var err error
	if f.CA != "" {
		if config.RootCAs, err = authorities(f.CA, now); err != nil {
			return nil, err
		}
	}
	if f.Cert != "" {
		cert, err := f.certificate(now)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}

// certificate reads certificate and key, and checks that the certificate is valid now.
func (f TLSFiles) certificate(now time.Time) (tls.Certificate, error) {
	if err := checkKey(f.Key); err != nil {
		return tls.Certificate{}, fmt.Errorf("private key %s: %w", f.Key, err)
	}
	certPEM, err := readPEM(f.Cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate: %w", err)
	}
	keyPEM, err := readPEM(f.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("private key: %w", err)
	}
	cert, err := keyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	if err := checkTimes(cert.Leaf, now); err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s %w", f.Cert, err)
	}
	return cert, nil
}

// keyPair is like tls.X509KeyPair, but always sets Leaf.
func keyPair(certPEM, keyPEM []byte) (tls.Certificate, error) {
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err == nil && cert.Leaf == nil {
		cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
	}
	return cert, err
}

// authorities reads a file of certificates to trust. At least one of these certificates must be
// valid now.
func authorities(path string, now time.Time) (*x509.CertPool, error) {
	data, err := readPEM(path)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	certs, err := parseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", path, err)
	}
	pool, good := x509.NewCertPool(), 0
	for _, c := range certs {
		pool.AddCert(c)
		if checkTimes(c, now) == nil {
			good++
		}
	}
	if good == 0 {
		return nil, fmt.Errorf("authority %s %w", path, checkTimes(certs[0], now))
	}
	return pool, nil
}

// parseCertificates returns all certificates in data, which is PEM. It returns an error if
// there is none.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			if strings.Contains(block.Type, "PRIVATE KEY") {
				return nil, errors.New("it has a private key where certificates should be")
			}
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errors.New("it has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
	}
	return certs, nil
}

// readPEM reads a file of at most maxPEM bytes.
func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPEM {
		return nil, fmt.Errorf("%s is larger than %d bytes: it is not in PEM", path, maxPEM)
	}
	return data, nil
}

// checkTimes returns an error if a certificate is not valid now. The caller puts the name of
// the certificate before the text of the error.
func checkTimes(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("expired on %s: make new ones (superstep tls init --replace) and give them to all machines", day(c.NotAfter))
	case now.Before(c.NotBefore):
		return fmt.Errorf("is good only from %s on, and the clock of this machine says %s: set the clock", minute(c.NotBefore), minute(now))
	}
	return nil
}

func day(t time.Time) string    { return t.UTC().Format("2 January 2006") }
func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// roles returns the roles that a certificate names.
func roles(c *x509.Certificate) []string {
	var found []string
	for _, u := range c.URIs {
		if u.Scheme == roleScheme {
			found = append(found, u.Opaque)
		}
	}
	return found
}

// requireRole returns a function for tls.Config.VerifyConnection. It checks that the other
// side's certificate has no role or one of the allowed roles.
func requireRole(allowed ...string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil // ClientAuth decides whether there must be a certificate
		}
		have := roles(state.PeerCertificates[0])
		for _, role := range have {
			for _, a := range allowed {
				if role == a {
					return nil
				}
			}
		}
		if len(have) == 0 {
			return nil
		}
		return fmt.Errorf("%sof a %s, where one of a %s is needed", roleRefused, strings.Join(have, " and "), strings.Join(allowed, " or "))
	}
}

// roleRefused is the beginning of the error about a certificate with another role.
const roleRefused = "the other side shows the certificate "
