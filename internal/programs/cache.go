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

// Partial is the suffix of the names of files that are not complete yet.
const Partial = ".part"

// Cache is an LRU cache of executables in a folder of its own. The name of a complete file is the
// hash of its bytes; a file gets that name once its bytes have been checked. Fit removes executables
// until their total size is within Limit bytes. It never removes pinned executables.
//
// The mutex guards all other fields. It must be held when methods other than Path are called. T
// is the type of the data that the owner of the cache stores with an executable.
type Cache[T any] struct {
	sync.Mutex
	Dir   string
	Limit int64
	Kept  map[string]*Kept[T]

	clock uint64 // number of calls of Use
}

// Kept is the entry of an executable in a cache. An entry may also have a name that is not a
// hash. Such an entry has no file; while it is pinned, it reserves Size bytes.
type Kept[T any] struct {
	Name string
	Size int64 // size of the file, or number of reserved bytes
	Pins int   // the entry is not removed while Pins is above 0
	Info T

	used uint64 // Cache.clock at the last use
}

// OpenCache opens the cache in the folder dir, which it creates if it does not exist. It removes
// partial files. It ignores files whose names are not hashes.
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

// Use returns the entry with the given name, and marks it as the most recently used. If there is no
// such entry, Use adds it.
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

// Fit removes unpinned executables, the least recently used first, until the total size is within
// the limit or all entries are pinned. It returns the total size in bytes of the remaining entries.
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
