package security

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestInitTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "tls")
	set, err := InitTLS(dir, []string{"Manager.example.com.", "10.1.2.3", "[fd00::1]", "localhost"}, false)
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"ca-key.pem", "ca.pem", "client-key.pem", "client.pem", "jobmanager-key.pem", "jobmanager.pem", "taskmanager-key.pem", "taskmanager.pem"}, names)

	ca := leaf(t, set.JobManager.CA)
	require.True(t, ca.IsCA)
	require.True(t, ca.MaxPathLenZero)
	require.WithinDuration(t, time.Now().Add(366*24*time.Hour), ca.NotAfter, time.Hour)
	require.Equal(t, ca.NotAfter, set.Expires)
	manager := leaf(t, set.JobManager.Cert)
	require.Equal(t, []string{"manager.example.com", "localhost"}, manager.DNSNames)
	require.Len(t, manager.IPAddresses, 4)
	for role, files := range map[string]TLSFiles{RoleJobManager: set.JobManager, RoleTaskManager: set.TaskManager, RoleClient: set.Client} {
		cert := leaf(t, files.Cert)
		require.Equal(t, []string{role}, roles(cert))
		require.False(t, cert.IsCA)
		require.NoError(t, cert.CheckSignatureFrom(ca))
		require.Equal(t, ca.NotAfter, cert.NotAfter)
		want := x509.ExtKeyUsageClientAuth
		if role == RoleJobManager {
			want = x509.ExtKeyUsageServerAuth
		}
		require.Equal(t, []x509.ExtKeyUsage{want}, cert.ExtKeyUsage)
	}
	require.Contains(t, set.String(), "--tls-cert "+set.TaskManager.Cert)
	require.Contains(t, set.String(), "All are good until "+day(set.Expires))

	before, err := os.ReadFile(set.JobManager.Cert)
	require.NoError(t, err)
	_, err = InitTLS(dir, nil, false)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "ca-key.pem is there already: choose another folder, or give --replace")
	unchanged, err := os.ReadFile(set.JobManager.Cert)
	require.NoError(t, err)
	require.Equal(t, before, unchanged)
	_, err = InitTLS(dir, nil, true)
	require.NoError(t, err)
	after, err := os.ReadFile(set.JobManager.Cert)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
}

func TestInitTLSThatFails(t *testing.T) {
	for _, host := range []string{"", "a b", "host:6123", "http://host", "-x", "a..b", "*", strings.Repeat("a", 64), strings.Repeat("a.", 130) + "a", "ümlaut"} {
		_, err := InitTLS(t.TempDir(), []string{host}, false)
		require.ErrorContains(t, err, "is neither a name nor an address", "%q", host)
	}
	_, err := InitTLS(t.TempDir(), []string{"*.example.com", "under_score"}, false)
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = InitTLS(file, nil, false)
	require.ErrorContains(t, err, "folder of the certificates")

	// If one file cannot be replaced, no temporary files must be left.
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ca-key.pem", "x"), 0o700))
	_, err = InitTLS(dir, nil, true)
	require.ErrorContains(t, err, "writing "+filepath.Join(dir, "ca-key.pem"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = InitTLS(dir, nil, true)
	require.ErrorContains(t, err, "others may replace files")
}

func TestNoFilesIsNoTLS(t *testing.T) {
	server, err := TLSFiles{}.Server()
	require.NoError(t, err)
	require.Nil(t, server)
	client, err := TLSFiles{}.Client()
	require.NoError(t, err)
	require.Nil(t, client)
	worker, err := AttemptTLS(wire.Credential{Secret: make([]byte, 32)})
	require.NoError(t, err)
	require.Nil(t, worker)
}

func TestFilesThatDoNotServe(t *testing.T) {
	set, other := makeTLS(t), makeTLS(t)
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	key, err := os.ReadFile(set.JobManager.Key)
	require.NoError(t, err)
	good := set.JobManager
	for _, c := range []struct {
		files TLSFiles
		want  string
	}{
		{TLSFiles{CA: good.CA}, "needs both --tls-cert and --tls-key"},
		{TLSFiles{Cert: good.Cert}, "needs both --tls-cert and --tls-key"},
		{TLSFiles{Key: good.Key}, "needs both --tls-cert and --tls-key"},
		{TLSFiles{Cert: "nowhere.pem", Key: good.Key}, "certificate: open nowhere.pem"},
		{TLSFiles{Cert: good.Cert, Key: "nowhere.pem"}, "private key nowhere.pem: stat nowhere.pem"},
		{TLSFiles{Cert: good.Cert, Key: other.JobManager.Key}, "private key does not match public key"},
		{TLSFiles{Cert: good.Key, Key: good.Key}, "certificate " + good.Key + " with key"},
		{TLSFiles{Cert: good.Cert, Key: good.Cert}, "certificate " + good.Cert + " with key"},
		{TLSFiles{Cert: good.Cert, Key: write("open.pem", string(key), 0o644)}, "others may use the key (mode 0644): run chmod 600"},
		{TLSFiles{Cert: write("large.pem", strings.Repeat("x", maxPEM+1), 0o600), Key: good.Key}, "it is not in PEM"},
		{TLSFiles{Cert: good.Cert, Key: good.Key, CA: "nowhere.pem"}, "authority: open nowhere.pem"},
		{TLSFiles{Cert: good.Cert, Key: good.Key, CA: good.Key}, "it has a private key where certificates should be"},
		{TLSFiles{Cert: good.Cert, Key: good.Key, CA: write("empty.pem", "", 0o600)}, "it has no certificate in PEM"},
		{TLSFiles{Cert: good.Cert, Key: good.Key, CA: write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0o600)}, "certificate 1: x509"},
	} {
		_, err := c.files.Server()
		require.ErrorContains(t, err, c.want)
		if !strings.Contains(c.want, "needs both") {
			_, err = c.files.Client()
			require.ErrorContains(t, err, c.want)
		}
	}
	_, err = TLSFiles{CA: good.CA, Cert: good.Cert}.Client()
	require.ErrorContains(t, err, "--tls-cert and --tls-key go together")
	_, err = TLSFiles{Cert: good.Cert, Key: write("group.pem", string(key), 0o640)}.Server()
	require.NoError(t, err, "a key that the group of a service can read must be accepted")
}

func TestOldTLSIsRefused(t *testing.T) {
	set := makeTLS(t)
	for _, files := range []TLSFiles{set.JobManager, {Cert: set.JobManager.Cert, Key: set.JobManager.Key}} {
		server, err := files.Server()
		require.NoError(t, err)
		old := clientTLS(t, set.Client)
		old.ServerName = "localhost"
		ofServer, ofClient := converse(t, server, old)
		require.NoError(t, ofServer)
		require.NoError(t, ofClient)
		old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		ofServer, _ = converse(t, server, old)
		require.ErrorContains(t, ofServer, "unsupported versions")
	}
}

func TestTimesOfCertificates(t *testing.T) {
	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	set := initAt(t, made)
	for _, f := range []func(time.Time) (*tls.Config, error){set.JobManager.server, set.TaskManager.client} {
		for _, now := range []time.Time{made, made.Add(-clockSkew), made.Add(certificateLife)} {
			_, err := f(now)
			require.NoError(t, err)
		}
		_, err := f(made.Add(certificateLife + time.Second))
		require.ErrorContains(t, err, "expired on 2 May 2027: make new ones (superstep tls init --replace) and give them to all machines")
		_, err = f(made.Add(-clockSkew - time.Hour))
		require.ErrorContains(t, err, "is good only from 2026-05-01 11:50 UTC on, and the clock of this machine says 2026-05-01 10:50 UTC: set the clock")
	}
	_, err := authorities(set.Client.CA, made.Add(2*certificateLife))
	require.ErrorContains(t, err, "authority "+set.Client.CA+" expired on")
}

// credential returns the credential of one worker of an attempt with authority a.
func credential(t *testing.T, a *Authority, hosts ...string) wire.Credential {
	t.Helper()
	cert, key, err := a.Issue(hosts)
	require.NoError(t, err)
	return wire.Credential{Certificate: cert, Key: key, Authority: a.PEM()}
}

func workerTLS(t *testing.T, c wire.Credential) *tls.Config {
	t.Helper()
	config, err := AttemptTLS(c)
	require.NoError(t, err)
	return config
}

// converse connects a client and a server, which send each other a byte, and returns their
// errors.
func converse(t *testing.T, server, client *tls.Config) (ofServer, ofClient error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			s := tls.Server(conn, server)
			if err = s.HandshakeContext(context.Background()); err == nil {
				if _, err = io.ReadFull(s, make([]byte, 1)); err == nil {
					_, err = s.Write([]byte{2})
				}
			}
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer raw.Close()
	c := tls.Client(raw, client)
	if err = c.HandshakeContext(t.Context()); err == nil {
		if _, err = c.Write([]byte{1}); err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
	}
	raw.Close()
	return <-done, err
}

func TestWorkersOfAnAttemptKnowEachOther(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	one, two := credential(t, a), credential(t, a, "10.0.0.7", "tm-7")
	ofServer, ofClient := converse(t, workerTLS(t, one), workerTLS(t, two))
	require.NoError(t, ofServer)
	require.NoError(t, ofClient)
	byHost := workerTLS(t, one).Clone()
	byHost.ServerName = "tm-7"
	ofServer, ofClient = converse(t, workerTLS(t, two), byHost)
	require.NoError(t, ofServer)
	require.NoError(t, ofClient)

	cert := leafOf(t, []byte(one.Certificate))
	require.Less(t, time.Until(cert.NotAfter), 30*24*time.Hour+time.Minute)
	require.Equal(t, []string{roleWorker}, roles(cert))
}

func TestCertificatesOfOtherAttempts(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	b, err := NewAuthority()
	require.NoError(t, err)
	mine := credential(t, a)
	stranger := credential(t, b)
	mixed := stranger // trusts the authority of the attempt, but has a certificate of another authority
	mixed.Authority = a.PEM()
	set := makeTLS(t)
	for name, other := range map[string]*tls.Config{
		"another attempt":               workerTLS(t, stranger),
		"another attempt's certificate": workerTLS(t, mixed),
		"a client of the cluster":       clientTLS(t, set.Client),
		"no certificate":                {InsecureSkipVerify: true},
		"old TLS":                       {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: workerTLS(t, mine).Certificates},
	} {
		ofServer, ofClient := converse(t, workerTLS(t, mine), other)
		require.Error(t, ofServer, name)
		require.Error(t, ofClient, name)
	}
	ofServer, ofClient := converse(t, workerTLS(t, mixed), workerTLS(t, mine))
	require.Error(t, ofServer)
	require.ErrorContains(t, ofClient, "unknown authority")

	// A worker's certificate must not give access to a job manager, and a worker must not be
	// able to sign certificates.
	server, err := set.JobManager.Server()
	require.NoError(t, err)
	ofServer, _ = converse(t, server, workerTLS(t, mine))
	require.Error(t, ofServer)
	require.False(t, leafOf(t, []byte(mine.Certificate)).IsCA)
}

func TestCredentialsThatAreNotWhole(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	good := credential(t, a)
	for want, change := range map[string]func(*wire.Credential){
		"needs certificate, key and authority":     func(c *wire.Credential) { c.Key = "" },
		"is incomplete":                            func(c *wire.Credential) { c.Authority = "" },
		"the attempt's certificate":                func(c *wire.Credential) { c.Certificate = "x" },
		"does not match":                           func(c *wire.Credential) { c.Key = credential(t, a).Key },
		"the attempt's authority: it has no certi": func(c *wire.Credential) { c.Authority = "x" },
	} {
		c := good
		change(&c)
		_, err := AttemptTLS(c)
		require.ErrorContains(t, err, want)
	}
	_, err = attemptTLS(good, time.Now().Add(attemptLife+time.Hour))
	require.ErrorContains(t, err, "the attempt's certificate is good from")
	_, _, err = a.Issue([]string{"a b"})
	require.ErrorContains(t, err, `host "a b" is neither`)
}

func leaf(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return leafOf(t, data)
}

func leafOf(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(data)
	require.NotNil(t, block)
	require.Empty(t, bytes.TrimSpace(rest))
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

func FuzzParseCertificates(f *testing.F) {
	a, err := NewAuthority()
	require.NoError(f, err)
	_, key, err := a.Issue(nil)
	require.NoError(f, err)
	f.Add([]byte(a.PEM()))
	f.Add([]byte(a.PEM() + a.PEM()))
	f.Add([]byte(key))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		certs, err := parseCertificates(data)
		require.Equal(t, err == nil, len(certs) > 0)
		_, _ = AttemptTLS(wire.Credential{Certificate: string(data), Key: key, Authority: string(data)})
		for _, c := range certs {
			_ = roles(c)
		}
	})
}
