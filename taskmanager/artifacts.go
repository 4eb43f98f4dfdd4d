package taskmanager

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// source streams an executable: its chunks in order, then io.EOF.
type source func(ctx context.Context, hash string) (next func() (*wire.Chunk, error), err error)

// artifacts keeps executables. They are fetched, or linked if near has them. A file that nobody
// uses is checked again before its next use: after a crash of the machine its name may be there
// without its bytes, and a disk may change them.
type artifacts struct {
	*programs.Cache[fetchState]
	fetch   source
	near    string // directory whose executables are linked instead of fetched; "" if none
	fetches sync.WaitGroup
}

// artifact is an executable in the cache, or on its way there. It is pinned by the workers that
// wait for it or run it, and while it is checked or fetched once more.
type artifact = programs.Kept[fetchState]

// fetchState is about the last fetch of an executable, or check of one that was there.
type fetchState struct {
	ready  chan struct{}      // closed once it is there or has failed
	cancel context.CancelFunc // ends it; nil if none is under way
	err    error
}

// openArtifacts opens the cache in a directory, which it makes if need be.
func openArtifacts(dir string, limit int64, near string, fetch source) (*artifacts, error) {
	c, err := programs.OpenCache[fetchState](dir, limit)
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	_, err = c.Fit() // the limit may have been higher
	return &artifacts{Cache: c, near: near, fetch: fetch}, err
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
			err = e.Info.err // set before ready was closed
		}
		if err != nil {
			release()
			return "", nil, err
		}
		return a.Path(hash), release, nil
	}
}

// want returns an executable and a channel that is closed when it is there. It counts a use,
// unless the fetch of the executable was given up and is about to end.
func (a *artifacts) want(hash string) (e *artifact, ready <-chan struct{}, use bool) {
	a.Lock()
	defer a.Unlock()
	if e = a.Kept[hash]; e != nil && abandoned(e) {
		return e, e.Info.ready, false
	}
	if e = a.Use(hash); e.Pins == 0 {
		a.begin(e)
	}
	e.Pins++
	return e, e.Info.ready, true
}

// abandoned reports whether nobody waits for a fetch, which is about to end. The lock is held.
func abandoned(e *artifact) bool { return e.Info.cancel != nil && e.Pins == 1 }

// begin starts to check or fetch an executable; the lock is held.
func (a *artifacts) begin(e *artifact) {
	ctx, cancel := context.WithCancel(context.Background())
	e.Info = fetchState{ready: make(chan struct{}), cancel: cancel}
	e.Pins++
	a.fetches.Go(func() {
		defer cancel()
		err := a.bring(ctx, e)
		a.Lock()
		defer a.Unlock()
		if e.Info.err = err; err != nil {
			delete(a.Kept, e.Name) // the next one to ask tries again
		}
		e.Info.cancel = nil
		e.Pins--
		close(e.Info.ready)
	})
}

// release gives up one use. A fetch that nobody waits for ends.
func (a *artifacts) release(e *artifact) {
	a.Lock()
	defer a.Unlock()
	if e.Pins--; abandoned(e) {
		e.Info.cancel()
	}
}

// close waits for the fetches; a fetch ends once nobody waits for it.
func (a *artifacts) close() { a.fetches.Wait() }

// bring checks an executable's file if there is one, and else links or fetches it.
func (a *artifacts) bring(ctx context.Context, e *artifact) error {
	if e.Size > 0 {
		if verify(a.Path(e.Name), e.Name) == nil {
			return os.Chmod(a.Path(e.Name), 0o700)
		}
		if err := os.RemoveAll(a.Path(e.Name)); err != nil {
			return fmt.Errorf("remove a damaged executable: %w", err)
		}
		a.shrink(e)
	}
	if a.near != "" && a.place(e, func(part string) error { return a.link(e, part) }) == nil {
		return nil // else it may be missing, incomplete, or on another file system
	}
	if err := a.place(e, func(part string) error { return a.download(ctx, e, part) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("fetch executable %.12s…: %w", e.Name, err)
	}
	return nil
}

// place lets make write an executable to a file beside its place and, if the bytes are right,
// moves it there.
func (a *artifacts) place(e *artifact, make func(part string) error) error {
	part := a.Path(e.Name[:12] + "-" + rand.Text() + programs.Partial)
	err := make(part)
	if err == nil {
		err = os.Chmod(part, 0o700)
	}
	if err == nil {
		err = os.Rename(part, a.Path(e.Name))
	}
	if err != nil {
		a.shrink(e)
		return errors.Join(err, os.RemoveAll(part))
	}
	return nil
}

// verify checks the bytes of a file.
func verify(path, hash string) error {
	p, err := programs.Of(path, wire.Platform{})
	if err != nil {
		return err
	}
	return sameHash(p.Hash, hash)
}

func sameHash(got, want string) error {
	if got != want {
		return fmt.Errorf("its SHA-256 is %s: it was damaged on the way, or where it is kept", got)
	}
	return nil
}

// link makes a hard link to an executable in near, if its bytes are right. So task managers on
// the job manager's machine share its files, on disk and in memory, and need no time to fetch.
func (a *artifacts) link(e *artifact, part string) error {
	source := filepath.Join(a.near, e.Name)
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
	return verify(part, e.Name)
}

// download fetches an executable to a file, and checks its bytes.
func (a *artifacts) download(ctx context.Context, e *artifact, part string) error {
	next, err := a.fetch(ctx, e.Name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(a.receive(e, next, f), f.Close())
}

// receive writes the chunks of an executable, and checks them.
func (a *artifacts) receive(e *artifact, next func() (*wire.Chunk, error), w io.Writer) error {
	sum := sha256.New()
	for written := int64(0); ; {
		chunk, err := next()
		if err == io.EOF {
			return sameHash(hex.EncodeToString(sum.Sum(nil)), e.Name)
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
	a.Lock()
	defer a.Unlock()
	if size > a.Limit {
		return fmt.Errorf("it has %d bytes, more than the artifact cache may have (%d): raise its limit", size, a.Limit)
	}
	e.Size = max(e.Size, size)
	total, err := a.Fit()
	if err == nil && total > a.Limit {
		err = fmt.Errorf("the artifact cache would have %d bytes in use and may have %d: raise its limit, or run fewer programs at once", total, a.Limit)
	}
	return err
}

// shrink takes back the room of an executable that is not there.
func (a *artifacts) shrink(e *artifact) {
	a.Lock()
	defer a.Unlock()
	e.Size = 0
}
