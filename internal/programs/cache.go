package programs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Partial ends the names of files that are not complete yet.
const Partial = ".part"

// Cache keeps executables by hash, in a folder of its own and up to a number of bytes. Pinned
// ones stay; to make room, the others are removed, the least recently used first. A file gets
// its hash as its name once its bytes have been checked.
//
// The lock guards all other fields. Methods are called with the lock held, except Path. T is the
// owner's own data about an executable.
type Cache[T any] struct {
	sync.Mutex
	Dir   string
	Limit int64
	Kept  map[string]*Kept[T]

	clock uint64 // counts uses
}

// Kept is an executable in a cache, or room reserved for one: a pinned entry under any name.
type Kept[T any] struct {
	Name string
	Size int64 // 0 if there is no file
	Pins int
	Info T

	used uint64
}

// OpenCache opens the cache in a folder, which it makes if need be. It removes partial files.
// Files that have no hash as their name stay.
func OpenCache[T any](dir string, limit int64) (*Cache[T], error) {
	fail := func(err error) (*Cache[T], error) { return nil, fmt.Errorf("artifact cache: %w", err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fail(err)
	}
	c := &Cache[T]{Dir: dir, Limit: limit, Kept: make(map[string]*Kept[T])}
	var found []fs.FileInfo
	for _, e := range entries {
		switch {
		case e.Type().IsRegular() && strings.HasSuffix(e.Name(), Partial):
			if err := os.Remove(c.Path(e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fail(err)
			}
		case e.Type().IsRegular() && CheckHash(e.Name()) == nil:
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fail(err)
			}
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(x, y fs.FileInfo) int {
		return cmp.Or(x.ModTime().Compare(y.ModTime()), strings.Compare(x.Name(), y.Name()))
	})
	for _, f := range found {
		c.Use(f.Name()).Size = f.Size()
	}
	return c, nil
}

// Path returns the path of a file in the cache.
func (c *Cache[T]) Path(name string) string { return filepath.Join(c.Dir, name) }

// Use returns the entry of a name, and counts it as just used. If there is none, Use adds it.
func (c *Cache[T]) Use(name string) *Kept[T] {
	e := c.Kept[name]
	if e == nil {
		e = &Kept[T]{Name: name}
		c.Kept[name] = e
	}
	c.clock++
	e.used = c.clock
	return e
}

// Fit removes unpinned executables until the rest is within the limit or all of it is pinned. It
// returns the total bytes of the rest.
func (c *Cache[T]) Fit() (total int64, err error) {
	for {
		total = 0
		var oldest *Kept[T]
		for _, e := range c.Kept {
			total += e.Size
			if e.Pins == 0 && (oldest == nil || e.used < oldest.used) {
				oldest = e
			}
		}
		if total <= c.Limit || oldest == nil {
			return total, nil
		}
		if err := os.RemoveAll(c.Path(oldest.Name)); err != nil {
			return total, fmt.Errorf("make room in the artifact cache: %w", err)
		}
		delete(c.Kept, oldest.Name)
	}
}
