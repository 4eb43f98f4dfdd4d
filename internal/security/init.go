package security

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// certificateLife is the time for which the certificates of InitTLS are valid.
const certificateLife = 366 * 24 * time.Hour

// TLSSet has the files that InitTLS made, for each role.
type TLSSet struct {
	JobManager  TLSFiles
	TaskManager TLSFiles
	Client      TLSFiles
	// AuthorityKey is the file of the private key that signed all certificates. The cluster
	// does not need it. Anybody who has it can make certificates that the cluster trusts.
	AuthorityKey string
	Hosts        []string // names and addresses in the job manager's certificate
	Expires      time.Time
}

// InitTLS makes an authority and certificates for job manager, task managers and clients, and
// writes them to files in dir, which it makes if necessary. Only the user can read the files.
// The certificates are valid for a year. hosts has the names and addresses at which clients
// reach the job manager; InitTLS adds the name and the addresses of localhost. If a file exists
// already, InitTLS returns an error, unless replace is set. If it fails, it leaves no temporary
// files, but some files may have been replaced.
func InitTLS(dir string, hosts []string, replace bool) (*TLSSet, error) {
	return initTLS(dir, hosts, replace, time.Now())
}

func initTLS(dir string, hosts []string, replace bool, now time.Time) (*TLSSet, error) {
	hosts = append(append([]string{}, hosts...), "localhost", "127.0.0.1", "::1")
	files, expires, err := makeSet(hosts, now)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the certificates: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return nil, fmt.Errorf("folder of the certificates %s: %w", dir, err)
	}
	if !replace {
		for _, f := range files {
			if _, err := os.Lstat(filepath.Join(dir, f.name)); err == nil {
				return nil, &advised{
					text:  fmt.Sprintf("%s is there already: choose another folder, or give --replace, after which all machines need the new files", filepath.Join(dir, f.name)),
					cause: fs.ErrExist,
				}
			}
		}
	}
	if err := writeSet(dir, files); err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	role := func(name string) TLSFiles {
		return TLSFiles{CA: at("ca.pem"), Cert: at(name + ".pem"), Key: at(name + "-key.pem")}
	}
	return &TLSSet{
		JobManager: role(RoleJobManager), TaskManager: role(RoleTaskManager), Client: role(RoleClient),
		AuthorityKey: at("ca-key.pem"), Hosts: hosts, Expires: expires,
	}, nil
}

type namedFile struct{ name, content string }

// makeSet returns the contents of all files, and the time when the certificates expire.
func makeSet(hosts []string, now time.Time) ([]namedFile, time.Time, error) {
	authority, err := newAuthority("superstep authority of "+now.UTC().Format(time.DateOnly), now, certificateLife)
	if err != nil {
		return nil, time.Time{}, err
	}
	key, err := encodeKey(authority.key)
	if err != nil {
		return nil, time.Time{}, err
	}
	files := []namedFile{{"ca-key.pem", key}, {"ca.pem", authority.PEM()}}
	serves, calls := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, g := range []grant{
		{name: "superstep job manager", role: RoleJobManager, hosts: hosts, usage: serves},
		{name: "superstep task manager", role: RoleTaskManager, usage: calls},
		{name: "superstep client", role: RoleClient, usage: calls},
	} {
		cert, key, err := authority.issue(g)
		if err != nil {
			return nil, time.Time{}, err
		}
		files = append(files, namedFile{g.role + ".pem", cert}, namedFile{g.role + "-key.pem", key})
	}
	return files, authority.cert.NotAfter, nil
}

// writeSet writes all files under temporary names before it renames the first one, so that
// earlier files are kept if the disk is full.
func writeSet(dir string, files []namedFile) (err error) {
	aside := make([]string, 0, len(files))
	defer func() {
		for _, path := range aside {
			if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) && err == nil {
				err = fmt.Errorf("certificates: %w", gone)
			}
		}
	}()
	for _, f := range files {
		path, err := writeAside(dir, f.content)
		if err != nil {
			return fmt.Errorf("writing %s: %w", filepath.Join(dir, f.name), err)
		}
		aside = append(aside, path)
	}
	for i, f := range files {
		if err := os.Rename(aside[i], filepath.Join(dir, f.name)); err != nil {
			return fmt.Errorf("writing %s: %w", filepath.Join(dir, f.name), err)
		}
	}
	return nil
}

// String returns a text that lists the flags for each role, the hosts, and when the
// certificates expire.
func (s *TLSSet) String() string {
	var b strings.Builder
	for _, part := range []struct {
		who   string
		files TLSFiles
	}{
		{"job manager ", s.JobManager}, {"task manager", s.TaskManager}, {"client      ", s.Client},
	} {
		fmt.Fprintf(&b, "%s  --tls-ca %s --tls-cert %s --tls-key %s\n", part.who, part.files.CA, part.files.Cert, part.files.Key)
	}
	fmt.Fprintf(&b, "The job manager's certificate is for %s.\n", strings.Join(s.Hosts, ", "))
	fmt.Fprintf(&b, "All are good until %s. Keep %s away from the cluster, or delete it.\n", day(s.Expires), s.AuthorityKey)
	return b.String()
}
