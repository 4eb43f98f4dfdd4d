package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/s3test"
)

// place is where a store is. A test can see and change its blobs.
type place interface {
	open(ctx context.Context) (Store, error)
	blobs(t testing.TB) map[string][]byte // all but the lock
	set(t testing.TB, name string, data []byte)
	remove(t testing.TB, name string)
	String() string
}

// everywhere runs f with each kind of store. empty returns a new place. It is in a synctest bubble.
func everywhere(t *testing.T, f func(t *testing.T, empty func() place)) {
	kinds := map[string]func(t testing.TB) place{
		"directory": func(t testing.TB) place { return inDir(filepath.Join(t.TempDir(), "made", "here")) },
		"s3":        func(testing.TB) place { return inS3{s3test.New()} },
	}
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, func() place { return empty(t) }) })
		})
	}
}

// inDir is a directory.
type inDir string

func (p inDir) open(context.Context) (Store, error) { return OpenDir(disk.OS(), string(p)) }

func (p inDir) blobs(t testing.TB) map[string][]byte {
	entries, err := os.ReadDir(string(p))
	require.NoError(t, err)
	blobs := make(map[string][]byte)
	for _, e := range entries {
		if e.Name() != lockName {
			blobs[e.Name()], err = os.ReadFile(filepath.Join(string(p), e.Name()))
			require.NoError(t, err)
		}
	}
	return blobs
}

func (p inDir) set(t testing.TB, name string, data []byte) {
	require.NoError(t, os.MkdirAll(string(p), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(string(p), name), data, 0o600))
}

func (p inDir) remove(t testing.TB, name string) {
	require.NoError(t, os.Remove(filepath.Join(string(p), name)))
}

func (p inDir) String() string { return string(p) }

// inS3 is a prefix in an S3-compatible store.
type inS3 struct{ server *s3test.Server }

func (p inS3) open(ctx context.Context) (Store, error) {
	store, err := s3store.Open(ctx, p.String(), s3store.Config{
		Getenv: p.server.Env("http://s3.test"), Transport: p.server, Fail: func(error) {},
	})
	if err != nil {
		return nil, err
	}
	return store, nil
}

func (p inS3) blobs(testing.TB) map[string][]byte {
	blobs := make(map[string][]byte)
	for key, data := range p.server.Objects() {
		if name := strings.TrimPrefix(key, "a/b/"); !strings.HasPrefix(name, ".superstep.") {
			blobs[name] = data
		}
	}
	return blobs
}

func (p inS3) set(_ testing.TB, name string, data []byte) {
	p.server.SetObject("a/b/"+name, append([]byte{}, data...))
}

func (p inS3) remove(_ testing.TB, name string) { p.server.SetObject("a/b/"+name, nil) }

func (p inS3) String() string { return "s3://bucket/a/b" }
