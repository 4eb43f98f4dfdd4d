package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Store is a place where process 0 leaves its address for the others.
type Store interface {
	// Set sets a key, which may have a value already.
	Set(ctx context.Context, key string, value []byte) error

	// Get returns the value of a key, and waits until there is one.
	Get(ctx context.Context, key string) ([]byte, error)
}

// key returns the key of the coordinator's address. It differs by attempt, so that the address
// of an earlier attempt is not used.
func (c *Config) key() string {
	return fmt.Sprintf("superstep/%s/%d/coordinator", c.Group, c.Attempt)
}

// NewMemoryStore returns a store for the groups of one process.
func NewMemoryStore() Store {
	return &memoryStore{values: make(map[string][]byte), changed: make(chan struct{})}
}

type memoryStore struct {
	mu      sync.Mutex
	values  map[string][]byte
	changed chan struct{} // closed by the next Set
}

func (s *memoryStore) Set(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = append([]byte(nil), value...)
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *memoryStore) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		s.mu.Lock()
		value, ok := s.values[key]
		changed := s.changed
		s.mu.Unlock()
		if ok {
			return append([]byte(nil), value...), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// FileStore returns a store of files in a directory that all processes see, which
// is made if it does not exist. A value appears whole or not at all.
func FileStore(dir string) Store { return fileStore(dir) }

type fileStore string

// filePoll is the interval of looking for a file: network file systems give no notice of
// changes.
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
