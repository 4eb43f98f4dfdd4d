package mapped

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/memrange"
)

// Files creates mapped files in a directory. Small regions share a mapping, because Linux limits
// the number of mappings of a process (vm.max_map_count), and because a mapping takes at least a
// page of the disk. Files is safe for concurrent use.
type Files struct {
	on    disk.FS
	dir   string
	named bool // files keep their names until they are unmapped

	mu     sync.Mutex
	shared *mapping // the mapping that small parts are taken from, nil at first
	free   []byte   // unused bytes of shared
	next   int64    // size in bytes of the next shared mapping
}

const (
	largePart   = 256 << 10 // a part of at least this number of bytes has its own mapping
	leastShared = 64 << 10  // size in bytes of the first shared mapping
	mostShared  = 4 << 20   // upper limit of next
)

// NewFiles returns a Files that creates its files in the directory dir of the file system on.
func NewFiles(on disk.FS, dir string) *Files { return &Files{on: on, dir: dir, next: leastShared} }

// NewNamed returns a Files whose files keep their names until the last region of each is released, so that
// another process can map them if this one ends before. The directory must be of this process alone.
func NewNamed(on disk.FS, dir string) *Files {
	f := NewFiles(on, dir)
	f.named = true
	return f
}

// part returns a part of at least n bytes: a mapping of its own, or a piece of the shared mapping.
func (f *Files) part(n int64) (part, error) {
	if n >= largePart {
		m, err := f.newMapping(n)
		if err != nil {
			return part{}, err
		}
		return part{of: m, data: m.data}, nil
	}
	n = (n + alignment - 1) &^ (alignment - 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > int64(len(f.free)) {
		m, err := f.newShared(n)
		if err != nil {
			return part{}, err
		}
		f.drop()
		f.shared, f.free = m, m.data
		f.next = min(2*f.next, mostShared)
	}
	p := part{of: f.shared, data: f.free[:n:n]}
	f.free = f.free[n:]
	f.shared.users.Add(1)
	return p, nil
}

// newShared returns a new shared mapping of at least n bytes. It tries next bytes first. If that
// fails, for example because the disk is full, the mapping has n bytes.
func (f *Files) newShared(n int64) (*mapping, error) {
	m, err := f.newMapping(max(n, f.next))
	if err == nil || n >= f.next || errors.Is(err, ErrUnsupported) {
		return m, err
	}
	return f.newMapping(n)
}

// Close releases the shared mapping. Regions remain valid: a mapping is unmapped when its last
// region is released.
func (f *Files) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
}

func (f *Files) drop() {
	if f.shared != nil {
		f.shared.release()
	}
	f.shared, f.free = nil, nil
}

// mapping is a mapped file.
type mapping struct {
	name  string  // the file's name, or its former name, for errors
	on    disk.FS // where the name is removed when the file is unmapped; nil if it has none
	data  []byte
	users atomic.Int64 // number of parts, plus 1 while the mapping is Files.shared
}

func (f *Files) newMapping(n int64) (*mapping, error) {
	m, err := mapNew(f.on, f.dir, n, f.named)
	if err != nil {
		return nil, err
	}
	m.users.Store(1)
	live.Add(m.data)
	return m, nil
}

func (m *mapping) release() {
	if m.users.Add(-1) == 0 {
		live.Remove(m.data)
		unmap(m.data)
		if m.on != nil {
			_ = m.on.Remove(m.name) // otherwise it is removed with its directory
		}
	}
}

// live has all mappings of this package in the process.
var live memrange.Set

// Contains reports whether b lies in a mapped file of this process.
func Contains(b []byte) bool { return live.Contains(b) }
