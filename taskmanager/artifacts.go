package taskmanager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// source streams an executable: its chunks in order, then io.EOF.
type source func(ctx context.Context, hash string) (next func() (*wire.Chunk, error), err error)

// artifacts keeps executables by the SHA-256 of their bytes, in a directory of its own and up
// to a number of bytes. They are fetched, or linked if near has them. An executable in use
// stays; the others are removed in the order of their last use. A file gets its name after its
// bytes have been checked. The bytes are checked again before the first use after a time of no
// use: a machine that crashed may have kept a name without the bytes, and a disk may change
// them.
type artifacts struct {
	dir   string
	limit int64
	fetch source
	near  string // directory whose executables are linked instead of fetched; "" if none

	mu      sync.Mutex
	entries map[string]*artifact
	clock   uint64 // counts uses
	fetches sync.WaitGroup
}

// artifact is an executable in the cache, or on its way there.
type artifact struct {
	hash string
	size int64
	used uint64
	pins int // workers that wait for it or run it

	ready     chan struct{}      // closed once it is there or has failed; nil before it is asked for
	cancel    context.CancelFunc // ends its fetch
	abandoned bool               // nobody waits for the fetch, which is about to end
	err       error
}

const partSuffix = ".part"

// openArtifacts opens the cache in a directory, which it makes if need be.
func openArtifacts(dir string, limit int64, near string, fetch source) (*artifacts, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("artifact cache: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("artifact cache: %w", err)
	}
	a := &artifacts{dir: dir, limit: limit, near: near, fetch: fetch, entries: map[string]*artifact{}}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || programs.CheckHash(f.Name()) != nil {
			if strings.HasSuffix(f.Name(), partSuffix) {
				err = os.Remove(path)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("artifact cache: %w", err)
			}
			continue // files of others are left alone
		}
		a.entries[f.Name()] = &artifact{hash: f.Name(), size: info.Size()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a, a.evict() // the limit may have been higher
}

// acquire returns the path of an executable, which it fetches if it is not there. Callers that
// want the same one share the fetch, which goes on as long as one of them waits. The file stays
// until release is called.
func (a *artifacts) acquire(ctx context.Context, hash string) (path string, release func(), err error) {
	if err := programs.CheckHash(hash); err != nil {
		return "", nil, err
	}
	for {
		e, ready, use := a.want(hash)
		select {
		case <-ready:
		case <-ctx.Done():
		}
		if !use && ctx.Err() == nil {
			continue // the entry that was given up is removed
		}
		release = func() {}
		if use {
			release = sync.OnceFunc(func() { a.release(e) })
		}
		if err = ctx.Err(); err == nil {
			err = e.err // set before ready was closed
		}
		if err != nil {
			release()
			return "", nil, err
		}
		return filepath.Join(a.dir, hash), release, nil
	}
}

// want returns an executable and a channel that is closed when it is there. It counts a use,
// unless the fetch of the executable was given up and is about to end.
func (a *artifacts) want(hash string) (e *artifact, ready <-chan struct{}, use bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e = a.entries[hash]
	if e == nil {
		e = &artifact{hash: hash}
		a.entries[hash] = e
	}
	if e.abandoned {
		return e, e.ready, false
	}
	if e.ready == nil || e.pins == 0 && e.there() {
		a.begin(e)
	}
	a.clock++
	e.used = a.clock
	e.pins++
	return e, e.ready, true
}

// there reports whether an executable is in the cache; the lock of the cache is held.
func (e *artifact) there() bool {
	select {
	case <-e.ready:
		return e.err == nil
	default:
		return false
	}
}

// begin starts to check or fetch an executable; the lock is held.
func (a *artifacts) begin(e *artifact) {
	ctx, cancel := context.WithCancel(context.Background())
	e.ready, e.cancel = make(chan struct{}), cancel
	a.fetches.Go(func() {
		defer cancel()
		err := a.bring(ctx, e)
		a.mu.Lock()
		defer a.mu.Unlock()
		if e.err = err; err != nil {
			delete(a.entries, e.hash) // the next one to ask tries again
		}
		e.abandoned = false
		close(e.ready)
	})
}

// release gives up one use. A fetch that nobody waits for ends.
func (a *artifacts) release(e *artifact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.pins--
	if e.pins > 0 {
		return
	}
	select {
	case <-e.ready:
	default:
		e.abandoned = true
		e.cancel()
	}
}

// close waits for the fetches; a fetch ends once nobody waits for it.
func (a *artifacts) close() { a.fetches.Wait() }

// bring checks an executable's file if there is one, and else fetches it.
func (a *artifacts) bring(ctx context.Context, e *artifact) error {
	path := filepath.Join(a.dir, e.hash)
	if e.size > 0 {
		if err := verify(path, e.hash); err == nil {
			return os.Chmod(path, 0o700)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a damaged executable: %w", err)
		}
		a.shrink(e)
	}
	if a.near != "" {
		if err := a.link(e, path); err == nil {
			return nil
		}
		a.shrink(e) // it may be missing, incomplete, or on another file system
	}
	if err := a.download(ctx, e, path); err != nil {
		a.shrink(e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("fetch executable %.12s…: %w", e.hash, err)
	}
	return nil
}

// verify checks the bytes of a file.
func verify(path, hash string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	return sameHash(sum.Sum(nil), hash)
}

func sameHash(sum []byte, want string) error {
	if got := hex.EncodeToString(sum); got != want {
		return fmt.Errorf("its SHA-256 is %s: it was damaged on the way, or where it is kept", got)
	}
	return nil
}

// link makes a hard link in the cache to an executable in near, if its bytes are right. So task
// managers on the job manager's machine share its files, on disk and in memory, and need no
// time to fetch.
func (a *artifacts) link(e *artifact, path string) error {
	source, part := filepath.Join(a.near, e.hash), filepath.Join(a.dir, e.hash[:12]+"-link"+partSuffix)
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", source)
	}
	if err := a.grow(e, info.Size()); err != nil {
		return err
	}
	if err := os.Link(source, part); err != nil {
		return err
	}
	err = verify(part, e.hash)
	if err == nil {
		err = os.Chmod(part, 0o700)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// download fetches an executable to a file beside its place and, if its bytes are
// right, moves it there.
func (a *artifacts) download(ctx context.Context, e *artifact, path string) error {
	next, err := a.fetch(ctx, e.hash)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(a.dir, e.hash[:12]+"-*"+partSuffix)
	if err != nil {
		return err
	}
	err = a.receive(e, next, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o700)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// receive writes the chunks of an executable, and checks them.
func (a *artifacts) receive(e *artifact, next func() (*wire.Chunk, error), w io.Writer) error {
	sum := sha256.New()
	for written := int64(0); ; {
		chunk, err := next()
		if err == io.EOF {
			return sameHash(sum.Sum(nil), e.hash)
		}
		if err != nil {
			return err
		}
		written += int64(len(chunk.Data))
		// The first chunk may have the total size: then a lack of room shows early.
		if err := a.grow(e, max(written, chunk.Size)); err != nil {
			return err
		}
		sum.Write(chunk.Data)
		if _, err := w.Write(chunk.Data); err != nil {
			return err
		}
	}
}

// grow makes room for an executable of a size.
func (a *artifacts) grow(e *artifact, size int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if size > a.limit {
		return fmt.Errorf("it has %d bytes, more than the artifact cache may have (%d): raise its limit", size, a.limit)
	}
	e.size = max(e.size, size)
	return a.evict()
}

// shrink takes back the room of an executable that is not there.
func (a *artifacts) shrink(e *artifact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.size = 0
}

// evict removes executables, the one used longest ago first, until the others fit; the
// lock is held.
func (a *artifacts) evict() error {
	for {
		var total int64
		var oldest *artifact
		for _, e := range a.entries {
			total += e.size
			if e.pins == 0 && !e.abandoned && (oldest == nil || older(e, oldest)) {
				oldest = e
			}
		}
		if total <= a.limit {
			return nil
		}
		if oldest == nil {
			return fmt.Errorf("the artifact cache would have %d bytes in use and may have %d: raise its limit, or run fewer programs at once", total, a.limit)
		}
		if err := os.Remove(filepath.Join(a.dir, oldest.hash)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("make room in the artifact cache: %w", err)
		}
		delete(a.entries, oldest.hash)
	}
}

// older orders executables by their last use. Those that were not used since the start
// come first, by name.
func older(a, b *artifact) bool {
	if a.used != b.used {
		return a.used < b.used
	}
	return a.hash < b.hash
}
