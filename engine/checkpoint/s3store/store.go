// Package s3store keeps checkpoints in S3-compatible stores. It implements checkpoint.Store.
//
//	store, err := s3store.Open(ctx, "s3://bucket/prefix", s3store.Config{Getenv: os.Getenv, Fail: cancel})
//
// A blob is an object whose key is the prefix, a slash and the blob's name. One more object is the
// lease of the run that writes there; see lease.
package s3store

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

// Scheme begins the places in stores, such as s3://bucket/prefix.
const Scheme = "s3://"

const (
	openTime  = 30 * time.Second // time for the first request
	closeTime = 10 * time.Second // time for the requests of Close
	mostKey   = 900              // bytes of a prefix, as keys have 1024 at most
)

// Config is what a Store needs.
type Config struct {
	// Getenv gives the environment, with the endpoint and the credentials; see fromEnv.
	Getenv func(name string) string
	// Fail is called once, if another run has taken over the place. The run must end then.
	Fail func(err error)
	// Job and Attempt, if set, say for which attempt of which job of a cluster the store is opened.
	// The place is then taken at once from an earlier attempt of the same job. A process of that
	// attempt may still run; it writes no further checkpoint.
	Job     string
	Attempt int
	// Say tells the user why Open waits; nil means that nobody is told.
	Say func(line string)
	// Transport sends the requests; nil means the network.
	Transport http.RoundTripper
}

// Store is a checkpoint.Store in an S3-compatible store.
type Store struct {
	bucket *bucket
	place  string // as the user has written it
	prefix string // of all keys: empty or with a slash at its end
	lease  *lease // nil after Join
}

// Is reports whether a place is in a store, rather than a directory.
func Is(place string) bool { return strings.HasPrefix(place, Scheme) }

// Open returns a Store at a place such as s3://bucket/prefix, for this run alone. If another run
// has the place, Open fails. If that run has ended without giving the place back, Open waits until
// its lease has ended, for a minute at most; see Config.Job.
func Open(ctx context.Context, place string, c Config) (*Store, error) {
	s, err := Join(place, c)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, c); err != nil {
		s.bucket.close()
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return s, nil
}

// Join returns a Store at a place that another process of the same run has opened with Open. It
// takes no lease, and sends no request.
func Join(place string, c Config) (*Store, error) {
	bucket, prefix, err := parse(place)
	if err != nil {
		return nil, err
	}
	settings, err := fromEnv(c.Getenv)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	settings.transport = c.Transport
	s := &Store{place: place, prefix: prefix}
	if s.bucket, err = openBucket(settings, bucket); err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return s, nil
}

// open finds out whether the bucket can be used, and takes the lease.
func (s *Store) open(ctx context.Context, c Config) error {
	first, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("there was no answer within %v", openTime))
	defer cancel()
	if _, err := s.List(first); err != nil {
		return err
	}
	var err error
	s.lease, err = take(ctx, s.bucket, s.prefix+leaseName, c)
	return err
}

// parse returns the bucket and the prefix of a place.
func parse(place string) (bucket, prefix string, err error) {
	bucket, prefix, _ = strings.Cut(strings.TrimPrefix(place, Scheme), "/")
	if prefix = strings.TrimRight(prefix, "/"); prefix == "" {
		return bucket, "", nil
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || part == "." || part == ".." {
			return "", "", fmt.Errorf("%s: a part of the path is %q, which not every store can keep: expected %sBUCKET/PREFIX", place, part, Scheme)
		}
	}
	if len(prefix) > mostKey {
		return "", "", fmt.Errorf("%s: the path has more than %d bytes", place, mostKey)
	}
	return bucket, prefix + "/", nil
}

// LastFailure returns the error of the last try of a write that has failed since a time, or nil. The write
// may still be tried again. LastFailure may be called from any goroutine.
func (s *Store) LastFailure(since time.Time) error {
	if f := s.bucket.failed.Load(); f != nil && !f.at.Before(since) {
		return f.err
	}
	return nil
}

// Put implements checkpoint.Store.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	_, err := s.bucket.put(ctx, s.prefix+name, data, condition{})
	return err
}

// Publish implements checkpoint.Store. It asks the store whether this run still has the lease.
func (s *Store) Publish(ctx context.Context, name string, data []byte) error {
	if s.lease != nil {
		if err := s.lease.renew(ctx); err != nil {
			return err
		}
	}
	_, err := s.bucket.put(ctx, s.prefix+name, data, condition{absent: true})
	if conditionFailed(err) {
		err = fmt.Errorf("%w: %w", fs.ErrExist, err)
	}
	return err
}

// hold returns an error if the lease is lost.
func (s *Store) hold(ctx context.Context) error {
	if s.lease == nil {
		return nil
	}
	return s.lease.hold(ctx)
}

// Get implements checkpoint.Store.
func (s *Store) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	o, err := s.bucket.get(ctx, s.prefix+name, most)
	if err != nil {
		return nil, err
	}
	return o.data, nil
}

// List implements checkpoint.Store.
func (s *Store) List(ctx context.Context) ([]string, error) {
	keys, err := s.bucket.list(ctx, s.prefix)
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], s.prefix)
	}
	return keys, err
}

// Delete implements checkpoint.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.hold(ctx); err != nil {
		return err
	}
	return s.bucket.delete(ctx, s.prefix+name)
}

func (s *Store) String() string { return s.place }

// Close implements checkpoint.Store. It gives the lease back.
func (s *Store) Close() error {
	defer s.bucket.close()
	if s.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("there was no answer within %v", closeTime))
	defer cancel()
	if err := s.lease.giveBack(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.place, err)
	}
	return nil
}
