package jobmanager

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Errors that callers distinguish with errors.Is.
var (
	errTooLarge = errors.New("the executable is too large")
	errNoRoom   = errors.New("no room for the executable")
	errNoSuch   = errors.New("the job manager does not have this executable")
	errWrong    = errors.New("the executable did not arrive as announced")
	errPlatform = errors.New("the executable is for another platform")
)

// artifacts stores executables. Executables of live jobs are pinned by hash, not by file: if
// the file of a pinned executable is removed because it is damaged, the next upload of the same
// bytes is pinned instead. The store has only complete executables. Whenever the store sends an
// executable, it checks the bytes, and removes the executable if they have changed.
//
// Its methods are safe for concurrent use.
type artifacts struct {
	*programs.Cache[[]wire.Platform]
	limit int64 // maximum size of one executable in bytes
	// create opens a new file for an upload.
	create func(path string) (uploadFile, error)
}

type artifact = programs.Kept[[]wire.Platform]

// offer adds p, an executable of this machine, to the store, unless the store has it already.
func (a *artifacts) offer(p programs.Program) error {
	if a.has(p.Hash) {
		return nil
	}
	f, err := os.Open(p.Path)
	if err == nil {
		defer f.Close()
		buf := make([]byte, wire.ChunkBytes)
		err = a.take(p.Hash, p.Size, func() ([]byte, error) {
			n, err := f.Read(buf)
			return buf[:n], err
		})
	}
	if err != nil {
		return fmt.Errorf("take in executable %s: %w", p.Name, err)
	}
	return nil
}

// uploadFile is the file to which an upload is written: an *os.File or, in tests, a file whose
// methods fail.
type uploadFile interface {
	io.Writer
	io.ReaderAt
	Sync() error
	Close() error
}

// openArtifacts opens the store in dir, with the executables that earlier job managers stored
// there. limit is the maximum size of one executable and cache the maximum size of all
// executables, in bytes. A file that is not an executable was not written by a job manager, and
// is not changed.
func openArtifacts(dir string, limit, cache int64) (*artifacts, error) {
	c, err := programs.OpenCache[[]wire.Platform](dir, cache)
	if err != nil {
		return nil, err
	}
	for hash, e := range c.Kept {
		f, err := os.Open(c.Path(hash))
		if err != nil {
			return nil, fmt.Errorf("look at executable %s: %w", hash, err)
		}
		if e.Info, err = platformsOf(f); err != nil {
			delete(c.Kept, hash)
		}
		f.Close()
	}
	return &artifacts{Cache: c, limit: limit, create: func(path string) (uploadFile, error) {
		return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	}}, nil
}

// has reports whether the store has an executable. The call counts as a use of the executable,
// because the caller usually submits a job with it next.
func (a *artifacts) has(hash string) bool {
	a.Lock()
	defer a.Unlock()
	return a.touch(hash) != nil
}

// touch counts a use of an executable and returns the executable. It returns nil if the store
// does not have it. The caller holds the lock.
func (a *artifacts) touch(hash string) *artifact {
	if e := a.Kept[hash]; e == nil || e.Size == 0 {
		return nil
	}
	return a.Use(hash)
}

// allows returns an error if an executable of the given size can never be stored.
func (a *artifacts) allows(size int64) error {
	if size > a.limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d; build it with -ldflags='-s -w', or raise --max-artifact of the job manager", errTooLarge, size, a.limit)
	}
	if size <= 0 {
		return fmt.Errorf("%w: a size of %d bytes", errWrong, size)
	}
	return nil
}

// put stores an executable of the given hash and size. next returns its bytes piece by piece,
// and io.EOF after the last piece. If put returns nil, the store has the executable; otherwise
// put has stored nothing. Simultaneous uploads of the same executable are independent, so that
// no upload waits for an upload that has stalled.
func (a *artifacts) put(hash string, size int64, next func() ([]byte, error)) error {
	if err := programs.CheckHash(hash); err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	if err := a.allows(size); err != nil {
		return err
	}
	return a.take(hash, size, next)
}

// take does the same as put, but does not check the size against the limit.
func (a *artifacts) take(hash string, size int64, next func() ([]byte, error)) error {
	if a.has(hash) {
		return nil
	}
	name := rand.Text() + programs.Partial
	defer a.release(name)
	if err := a.reserve(name, size); err != nil {
		return err
	}
	file, err := a.create(a.Path(name))
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	platforms, err := receive(file, hash, size, next)
	if e := file.Close(); err == nil && e != nil {
		err = fmt.Errorf("%w: %w", errNoRoom, e)
	}
	if err == nil {
		err = a.admit(name, hash, platforms)
	}
	if err != nil {
		os.Remove(a.Path(name))
	}
	return err
}

// receive writes an upload to file, checks its hash and size, and returns the platforms of the
// executable.
func receive(file uploadFile, hash string, size int64, next func() ([]byte, error)) ([]wire.Platform, error) {
	sum := sha256.New()
	var got int64
	for {
		data, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if got += int64(len(data)); got > size {
			return nil, fmt.Errorf("%w: more than the %d bytes that were announced", errWrong, size)
		}
		sum.Write(data)
		if _, err := file.Write(data); err != nil {
			return nil, fmt.Errorf("%w at byte %d of %d: %w", errNoRoom, got-int64(len(data)), size, err)
		}
	}
	if got < size {
		return nil, fmt.Errorf("%w: %d bytes of %d, it was cut short", errWrong, got, size)
	}
	want, _ := hex.DecodeString(hash) // the hash is valid, as put has checked it
	if have := sum.Sum(nil); !bytes.Equal(have, want) {
		return nil, fmt.Errorf("%w: its SHA-256 is %x, not %s", errWrong, have, hash)
	}
	platforms, err := platformsOf(file)
	if err != nil {
		return nil, fmt.Errorf("%w: not an executable: %w", errWrong, err)
	}
	if err := file.Sync(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return platforms, nil
}

// admit renames the checked file name to the executable's hash, and adds the executable to the
// store.
func (a *artifacts) admit(name, hash string, platforms []wire.Platform) error {
	a.Lock()
	defer a.Unlock()
	if a.touch(hash) != nil {
		return os.Remove(a.Path(name))
	}
	if err := os.Rename(a.Path(name), a.Path(hash)); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	e := a.Use(hash)
	e.Info, e.Size = platforms, a.Kept[name].Size
	return nil
}

// reserve reserves size bytes for an upload, and removes unused executables if that is
// necessary.
func (a *artifacts) reserve(name string, size int64) error {
	a.Lock()
	defer a.Unlock()
	e := a.Use(name)
	e.Size, e.Pins = size, 1
	total, err := a.Fit()
	if err == nil && total > a.Limit {
		err = fmt.Errorf("%d bytes are wanted, and jobs and uploads under way take %d of the %d that the cache may hold; wait for them, or raise --artifact-cache of the job manager",
			size, total-size, a.Limit)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return nil
}

// release frees the space that reserve reserved for an upload.
func (a *artifacts) release(name string) {
	a.Lock()
	defer a.Unlock()
	delete(a.Kept, name)
}

// pin keeps an executable for a live job until unpin is called. It returns an error if the
// store does not have the executable, or if the executable is not for on, the platform that the
// job names.
func (a *artifacts) pin(hash string, on wire.Platform) error {
	if err := programs.CheckHash(hash); err != nil {
		return fmt.Errorf("%w: %w", errNoSuch, err)
	}
	a.Lock()
	defer a.Unlock()
	f := a.touch(hash)
	if f == nil {
		return fmt.Errorf("%w, %s: upload it first", errNoSuch, hash)
	}
	if !slices.Contains(f.Info, on) {
		return fmt.Errorf("%w: it runs on %s, not on %s as the submission says", errPlatform, wire.PlatformNames(f.Info), on)
	}
	f.Pins++
	return nil
}

// keep does the same as pin for a job that was accepted by an earlier job manager. If the store
// does not have the executable, the pin applies to the next upload of the same bytes.
func (a *artifacts) keep(hash string) {
	a.Lock()
	defer a.Unlock()
	a.Use(hash).Pins++
}

// unpin undoes pin and keep. The executable's file may have been replaced or removed since pin.
func (a *artifacts) unpin(hash string) {
	a.Lock()
	defer a.Unlock()
	if f := a.Kept[hash]; f != nil {
		if f.Pins--; f.Pins == 0 && f.Size == 0 {
			delete(a.Kept, hash)
		}
	}
}

// send calls piece with the pieces of an executable. After the last piece it returns an error
// if the bytes differ from the bytes that were uploaded. A piece is valid until piece is called
// again.
func (a *artifacts) send(ctx context.Context, hash string, piece func(c *wire.Chunk) error) error {
	if err := programs.CheckHash(hash); err != nil {
		return fmt.Errorf("%w: %w", errNoSuch, err)
	}
	a.Lock()
	f := a.touch(hash)
	a.Unlock()
	if f == nil {
		return fmt.Errorf("%w, %s", errNoSuch, hash)
	}
	file, err := os.Open(a.Path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w, %s, any more: the file was removed where it was kept: submit the job again, which uploads it again", errNoSuch, hash),
			a.removeChanged(hash, f))
	}
	if err != nil {
		return fmt.Errorf("%w, %s: %w", errNoSuch, hash, err)
	}
	defer file.Close()
	c := &wire.Chunk{Hash: hash, Size: f.Size}
	buf := make([]byte, wire.ChunkBytes)
	sum := sha256.New()
	for ctx.Err() == nil {
		n, err := io.ReadFull(file, buf)
		if n > 0 {
			sum.Write(buf[:n])
			c.Data = buf[:n]
			if err := piece(c); err != nil {
				return err
			}
			c = new(wire.Chunk)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if have := hex.EncodeToString(sum.Sum(nil)); have != hash {
				return errors.Join(fmt.Errorf("%w, %s, any more: it was damaged where it was kept (its SHA-256 is %s): submit the job again, which uploads it again", errNoSuch, hash, have),
					a.removeChanged(hash, f))
			}
			return nil
		case err != nil:
			return fmt.Errorf("read executable %s: %w", hash, err)
		}
	}
	return ctx.Err()
}

// removeChanged removes f, the file of an executable, because its bytes have changed; if f was
// removed before, it does nothing. The pins of jobs then apply to the next file with the
// original bytes.
func (a *artifacts) removeChanged(hash string, f *artifact) error {
	a.Lock()
	defer a.Unlock()
	if a.Kept[hash] != f {
		return nil
	}
	delete(a.Kept, hash)
	if f.Pins > 0 {
		a.Use(hash).Pins = f.Pins
	}
	return os.RemoveAll(a.Path(hash))
}

// bytes returns the total size of all stored executables.
func (a *artifacts) bytes() (total int64) {
	a.Lock()
	defer a.Unlock()
	for _, f := range a.Kept {
		if f.Info != nil {
			total += f.Size
		}
	}
	return total
}
