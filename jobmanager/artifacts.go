package jobmanager

import (
	"bytes"
	"cmp"
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
	"strings"
	"sync"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// artifactsDir is where executables are, under the work directory, by hash.
const artifactsDir = "artifacts"

// uploadPrefix begins the names of executables that are being uploaded. Files of this name that
// a job manager finds at its start are uploads that were cut off.
const uploadPrefix = "upload-"

// Errors that callers distinguish.
var (
	errTooLarge = errors.New("the executable is too large")
	errNoRoom   = errors.New("no room for the executable")
	errNoSuch   = errors.New("the job manager does not have this executable")
	errWrong    = errors.New("the executable did not arrive as announced")
	errPlatform = errors.New("the executable is for another platform")
)

// artifacts keeps executables by the SHA-256 of their bytes. Together they take no more than
// the cache's bytes: a new one displaces the least recently used ones that no live job holds.
// An executable is in the store whole or not at all: it is written to a file under another
// name, checked, flushed and only then renamed. It is checked again whenever it is sent, and
// removed if its bytes have changed.
//
// Its methods are safe for concurrent use.
type artifacts struct {
	root  *os.Root // the work directory
	limit int64    // bytes of one executable
	cache int64    // bytes of all
	// create opens a new file for an upload.
	create func(name string) (uploadFile, error)

	mu   sync.Mutex
	kept map[string]*artifact
	// missed counts, by hash, the live jobs whose executable was removed as damaged. They hold
	// the next upload of the same bytes.
	missed   map[string]int
	used     int64  // bytes of kept
	reserved int64  // bytes of uploads under way
	clock    uint64 // grows with every use
}

// offer adds an executable of this machine to the store, unless it is there already.
func (a *artifacts) offer(p programs.Program) error {
	if a.has(p.Hash) {
		return nil
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return fmt.Errorf("take in executable %s: %w", p.Name, err)
	}
	defer f.Close()
	buf := make([]byte, wire.ChunkBytes)
	err = a.take(p.Hash, p.Size, func() ([]byte, error) {
		n, err := f.Read(buf)
		return buf[:n], err
	})
	if err != nil {
		return fmt.Errorf("take in executable %s: %w", p.Name, err)
	}
	return nil
}

// artifact is one executable that is there.
type artifact struct {
	size      int64
	platforms []wire.Platform
	lastUse   uint64
	pins      int // live jobs that hold it
}

// uploadFile is what an upload is written to: an *os.File, or in tests one that fails.
type uploadFile interface {
	io.Writer
	io.ReaderAt
	Sync() error
	Close() error
}

// openArtifacts finds the executables of an earlier run in the work directory.
func openArtifacts(root *os.Root, limit, cache int64) (*artifacts, error) {
	a := &artifacts{root: root, limit: limit, cache: cache, kept: make(map[string]*artifact), missed: make(map[string]int)}
	a.create = func(name string) (uploadFile, error) {
		return root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	}
	if err := root.MkdirAll(artifactsDir, 0o700); err != nil {
		return nil, fmt.Errorf("keep executables: %w", err)
	}
	entries, err := fs.ReadDir(root.FS(), artifactsDir)
	if err != nil {
		return nil, fmt.Errorf("look for executables: %w", err)
	}
	var found []fs.FileInfo
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), uploadPrefix):
			if err := root.Remove(artifactsDir + "/" + e.Name()); err != nil {
				return nil, fmt.Errorf("clear away an upload that was cut off: %w", err)
			}
		case programs.CheckHash(e.Name()) == nil:
			info, err := e.Info()
			if err != nil {
				return nil, fmt.Errorf("look for executables: %w", err)
			}
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(x, y fs.FileInfo) int {
		return cmp.Or(x.ModTime().Compare(y.ModTime()), cmp.Compare(x.Name(), y.Name()))
	})
	for _, info := range found {
		if err := a.adopt(info.Name(), info.Size()); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// adopt takes in a file that was there at the start. A file that is no executable was not
// written by a job manager, and is left alone.
func (a *artifacts) adopt(hash string, size int64) error {
	f, err := a.root.Open(artifactsDir + "/" + hash)
	if err != nil {
		return fmt.Errorf("look at executable %s: %w", hash, err)
	}
	defer f.Close()
	platforms, err := platformsOf(f)
	if err != nil {
		return nil
	}
	a.clock++
	a.kept[hash] = &artifact{size: size, platforms: platforms, lastUse: a.clock}
	a.used += size
	return nil
}

// has reports whether an executable is there. Asking counts as use, as a submission
// follows.
func (a *artifacts) has(hash string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.touch(hash) != nil
}

// touch returns an executable and counts it as just used; nil if it is not there. The
// caller holds mu.
func (a *artifacts) touch(hash string) *artifact {
	f := a.kept[hash]
	if f != nil {
		a.clock++
		f.lastUse = a.clock
	}
	return f
}

// allows says why an executable of the given size can never be kept.
func (a *artifacts) allows(size int64) error {
	if size > a.limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d; build it with -ldflags='-s -w', or raise --max-artifact of the job manager", errTooLarge, size, a.limit)
	}
	if size <= 0 {
		return fmt.Errorf("%w: a size of %d bytes", errWrong, size)
	}
	return nil
}

// put takes in an executable of the given hash and size, whose bytes next returns piece by
// piece, with io.EOF after the last. It is there when put returns nil; otherwise nothing of it
// is. Simultaneous uploads of one executable are independent, so that none waits for another
// that has stalled.
func (a *artifacts) put(hash string, size int64, next func() ([]byte, error)) error {
	if err := programs.CheckHash(hash); err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	if err := a.allows(size); err != nil {
		return err
	}
	return a.take(hash, size, next)
}

// take is put without the check of the size against the limit.
func (a *artifacts) take(hash string, size int64, next func() ([]byte, error)) error {
	if a.has(hash) {
		return nil
	}
	if err := a.reserve(size); err != nil {
		return err
	}
	defer a.release(size)

	name := artifactsDir + "/" + uploadPrefix + rand.Text()
	file, err := a.create(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	platforms, err := receive(file, hash, size, next)
	if e := file.Close(); err == nil && e != nil {
		err = fmt.Errorf("%w: %w", errNoRoom, e)
	}
	if err == nil {
		err = a.admit(name, hash, size, platforms)
	}
	if err != nil {
		a.root.Remove(name)
		return err
	}
	return nil
}

// receive writes an upload to a file and checks it.
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
	want, _ := hex.DecodeString(hash) // valid: put has checked it
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

// admit gives a checked file its name.
func (a *artifacts) admit(name, hash string, size int64, platforms []wire.Platform) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.touch(hash) != nil {
		return a.root.Remove(name)
	}
	if err := a.root.Rename(name, artifactsDir+"/"+hash); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	a.clock++
	a.kept[hash] = &artifact{size: size, platforms: platforms, lastUse: a.clock, pins: a.missed[hash]}
	delete(a.missed, hash)
	a.used += size
	return nil
}

// reserve makes room for an upload.
func (a *artifacts) reserve(size int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.used+a.reserved+size > a.cache {
		victim := a.leastUsed()
		if victim == "" {
			return fmt.Errorf("%w: %d bytes are wanted, and jobs and uploads under way take %d of the %d that the cache may hold; wait for them, or raise --artifact-cache of the job manager",
				errNoRoom, size, a.used+a.reserved, a.cache)
		}
		if err := a.root.Remove(artifactsDir + "/" + victim); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", errNoRoom, err)
		}
		a.used -= a.kept[victim].size
		delete(a.kept, victim)
	}
	a.reserved += size
	return nil
}

// release gives back what reserve took.
func (a *artifacts) release(size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserved -= size
}

// leastUsed returns the executable to give up first, "" if none may go. The caller
// holds mu.
func (a *artifacts) leastUsed() string {
	victim := ""
	for hash, f := range a.kept {
		if f.pins == 0 && (victim == "" || f.lastUse < a.kept[victim].lastUse) {
			victim = hash
		}
	}
	return victim
}

// pin holds an executable for a live job, until unpin. It fails if the executable is not there,
// or not for the platform that the job names.
func (a *artifacts) pin(hash string, on wire.Platform) error {
	if err := programs.CheckHash(hash); err != nil {
		return fmt.Errorf("%w: %w", errNoSuch, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.touch(hash)
	if f == nil {
		return fmt.Errorf("%w, %s: upload it first", errNoSuch, hash)
	}
	if !slices.Contains(f.platforms, on) {
		return fmt.Errorf("%w: it runs on %s, not on %s as the submission says", errPlatform, platformText(f.platforms), on)
	}
	f.pins++
	return nil
}

// unpin undoes pin. The executable's file may have been replaced or removed since.
func (a *artifacts) unpin(hash string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.kept[hash]; f != nil {
		f.pins--
	} else if a.missed[hash]--; a.missed[hash] <= 0 {
		delete(a.missed, hash)
	}
}

// send passes an executable to piece, in pieces. It fails at the end if the bytes are not those
// that were uploaded. A piece is valid until the next one.
func (a *artifacts) send(ctx context.Context, hash string, piece func(c *wire.Chunk) error) error {
	if err := programs.CheckHash(hash); err != nil {
		return fmt.Errorf("%w: %w", errNoSuch, err)
	}
	a.mu.Lock()
	f := a.touch(hash)
	a.mu.Unlock()
	if f == nil {
		return fmt.Errorf("%w, %s", errNoSuch, hash)
	}
	file, err := a.root.Open(artifactsDir + "/" + hash)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w, %s, any more: the file was removed where it was kept: submit the job again, which uploads it anew", errNoSuch, hash),
			a.giveUp(hash, f))
	}
	if err != nil {
		return fmt.Errorf("%w, %s: %w", errNoSuch, hash, err)
	}
	defer file.Close()
	c := &wire.Chunk{Hash: hash, Size: f.size}
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
				return errors.Join(fmt.Errorf("%w, %s, any more: it was damaged where it was kept (its SHA-256 is %s): submit the job again, which uploads it anew", errNoSuch, hash, have),
					a.giveUp(hash, f))
			}
			return nil
		case err != nil:
			return fmt.Errorf("read executable %s: %w", hash, err)
		}
	}
	return ctx.Err()
}

// giveUp removes an executable whose bytes have changed, unless it is removed already. Jobs
// that hold it will hold the next file of the original bytes.
func (a *artifacts) giveUp(hash string, f *artifact) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept[hash] != f {
		return nil
	}
	a.used -= f.size
	delete(a.kept, hash)
	if f.pins > 0 {
		a.missed[hash] = f.pins
	}
	if err := a.root.Remove(artifactsDir + "/" + hash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// bytes returns the size of all kept executables.
func (a *artifacts) bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}
