package programs

import (
	"cmp"
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

// Cache keeps executables by hash, in a folder of its own and up to a number of bytes. One that
// is pinned stays; the others are removed in the order of their last use when room is wanted.
// A file gets its hash as its name once its bytes have been checked.
//
// The lock guards all other fields. Methods are called with the lock held, except Path. T is
// what the cache's owner knows about an executable besides.
type Cache[T any] struct {
	sync.Mutex
	Dir   string
	Limit int64
	Kept  map[string]*Kept[T]

	clock uint64 // counts uses
}

// Kept is an executable in a cache or, under any name and with a pin, room for one.
type Kept[T any] struct {
	Name string
	Size int64 // 0 if there is no file
	Pins int
	Info T

	used uint64
}

// OpenCache opens the cache in a folder, which it makes if need be. It removes partial files,
// and leaves those of others alone.
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
		case strings.HasSuffix(e.Name(), Partial):
			if err := os.RemoveAll(c.Path(e.Name())); err != nil {
				return fail(err)
			}
		case e.Type().IsRegular() && CheckHash(e.Name()) == nil:
			info, err := e.Info()
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

// Use returns the entry of a name, which it adds if there is none, and counts it as just used.
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

// Fit removes executables until the others are within the limit, or pinned. It returns the
// bytes of the others.
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
