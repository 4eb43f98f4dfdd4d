package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Store is a key-value store to which process 0 writes its address for the other processes.
type Store interface {
	// Set sets the value of a key. It replaces an earlier value.
	Set(ctx context.Context, key string, value []byte) error

	// Get returns the value of a key. It waits until the key has a value.
	Get(ctx context.Context, key string) ([]byte, error)
}

// key returns the key of the coordinator's address. The key contains the number of the attempt,
// so that the address of an earlier attempt is not used.
func (c *Config) key() string {
	return fmt.Sprintf("superstep/%s/%d/coordinator", c.Group, c.Attempt)
}

// FileStore returns a store that keeps values as files in directory dir, which all processes
// must be able to access. Set creates the directory if it does not exist, and writes a value
// atomically.
func FileStore(dir string) Store { return fileStore(dir) }

type fileStore string

// filePoll is the interval at which Get checks whether a file exists. Get polls because network
// file systems do not notify clients of changes.
const filePoll = 20 * time.Millisecond

func (s fileStore) path(key string) string {
	return filepath.Join(string(s), url.PathEscape(key))
}

func (s fileStore) Set(_ context.Context, key string, value []byte) (err error) {
	if err := os.MkdirAll(string(s), 0o777); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	f, err := os.CreateTemp(string(s), ".new-*")
	if err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	_, err = f.Write(value)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(key))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("file store: %w", err)
	}
	return nil
}

func (s fileStore) Get(ctx context.Context, key string) ([]byte, error) {
	t := time.NewTicker(filePoll)
	defer t.Stop()
	for {
		value, err := os.ReadFile(s.path(key))
		if err == nil {
			return value, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("file store: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.C:
		}
	}
}
