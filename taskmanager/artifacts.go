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
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// source fetches the executable with the given hash. Each call of next returns the next chunk
// of the executable, and io.EOF after the last chunk.
type source func(ctx context.Context, hash string) (next func() (*wire.Chunk, error), err error)

// artifacts caches executables. Executables are fetched, or linked if the directory near has
// them. The hash of a file that no worker uses is checked before the file is used again: after
// a crash of the machine the file may exist without its contents, and the contents may have
// been damaged on disk.
type artifacts struct {
	*programs.Cache[fetchState]
	fetch   source
	near    string // directory whose executables are linked instead of fetched; "" if none
	fetches sync.WaitGroup
}

// artifact is an executable that is in the cache or is being fetched. Each worker that waits
// for it or runs it has one pin on it. The goroutine that checks or fetches it has one pin too.
type artifact = programs.Kept[fetchState]

// fetchState describes the last fetch of an executable, or the last check of its file.
type fetchState struct {
	ready  chan struct{}      // closed once the fetch or check has succeeded or failed
	cancel context.CancelFunc // cancels the fetch or check; nil if none is in progress
	err    error
}

// openArtifacts opens the cache in the directory dir. It makes the directory if it does not
// exist.
func openArtifacts(dir string, limit int64, near string, fetch source) (*artifacts, error) {
	c, err := programs.OpenCache[fetchState](dir, limit)
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	_, err = c.Fit() // the limit may have been higher in an earlier run
	return &artifacts{Cache: c, near: near, fetch: fetch}, err
}

// acquire returns the path of an executable, and fetches the executable if it is not in the
// cache. Concurrent callers with the same hash share one fetch, which continues as long as at
// least one caller waits. The file is not removed before release is called.
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
			continue // the abandoned fetch has ended, so want can be called again
		}
		release = func() {}
		if use {
			release = sync.OnceFunc(func() { a.release(e) })
		}
		if err = ctx.Err(); err == nil {
			err = e.Info.err // begin has set err before it closed ready
		}
		if err != nil {
			release()
			return "", nil, err
		}
		return a.Path(hash), release, nil
	}
}

// want returns the entry of an executable, and a channel that is closed when its fetch or check
// has ended. It pins the entry and returns use true, unless the fetch was abandoned and is
// about to end.
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

// abandoned reports whether e is being fetched or checked and no worker waits for it any more.
// The caller holds the lock.
func abandoned(e *artifact) bool { return e.Info.cancel != nil && e.Pins == 1 }

// begin starts a goroutine that checks or fetches an executable. The caller holds the lock.
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
			delete(a.Kept, e.Name) // the next call of acquire fetches again
		}
		e.Info.cancel = nil
		e.Pins--
		close(e.Info.ready)
	})
}

// release removes one pin. It cancels a fetch for which no worker waits any more.
func (a *artifacts) release(e *artifact) {
	a.Lock()
	defer a.Unlock()
	if e.Pins--; abandoned(e) {
		e.Info.cancel()
	}
}

// close waits until all fetches have ended. The caller must have released all executables,
// which cancels the fetches.
func (a *artifacts) close() { a.fetches.Wait() }

// bring checks the file of an executable if there is one. If there is no file or the file is
// damaged, bring links or fetches the executable.
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
		return nil // on error the file in near may be missing, incomplete, or on another file system
	}
	// A job manager that cannot be reached may come back, and its jobs then go on. So the fetch
	// is tried again as long as a worker waits for it.
	for wait := core.NewBackoff(seed()); ; {
		err := a.place(e, func(part string) error { return a.download(ctx, e, part) })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case wire.Code(err) != codes.Unavailable:
			return fmt.Errorf("fetch executable %.12s…: %w", e.Name, err)
		}
		select {
		case <-time.After(wait.Wait()):
		case <-ctx.Done():
		}
	}
}

// place calls make with the path of a temporary file in the cache's directory. make must write
// the executable to the file and check it. If make succeeds, place renames the file to its
// final name.
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

// verify checks that the file at path has the given SHA-256.
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

// link makes a hard link named part to the executable's file in near, and checks its bytes.
// Linking lets task managers on the job manager's machine share the files of the job manager,
// on disk and in memory, and takes less time than fetching.
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

// download fetches an executable into the new file part, and checks its bytes.
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

// receive writes the chunks of an executable to w, and checks the hash of their concatenation.
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
		// The first chunk may state the total size. A lack of space is then noticed at once.
		if err := a.grow(e, max(written, chunk.Size)); err != nil {
			return err
		}
		sum.Write(chunk.Data)
		if _, err := w.Write(chunk.Data); err != nil {
			return err
		}
	}
}

// grow records that an executable needs size bytes. If the limit requires it, grow removes
// unused executables from the cache. It returns an error if even then the cache would exceed
// the limit.
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

// shrink records that an executable needs no space. It is called when a fetch failed or a
// damaged file was removed.
func (a *artifacts) shrink(e *artifact) {
	a.Lock()
	defer a.Unlock()
	e.Size = 0
}
