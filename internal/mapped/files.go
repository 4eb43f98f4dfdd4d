package mapped

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/superstep-ml/superstep/internal/disk"
)

// Files makes mapped files in a directory. Small regions share a mapping: a process may have
// only so many (vm.max_map_count of Linux), and each takes a page of the disk at least. It is
// safe for concurrent use.
type Files struct {
	on  disk.FS
	dir string

	mu     sync.Mutex
	shared *mapping // the mapping that small parts are taken from, nil at first
	free   []byte   // its unused bytes
	next   int64    // bytes of the next shared mapping
}

const (
	largePart   = 256 << 10 // bytes of a part that has a mapping of its own
	leastShared = 64 << 10  // bytes of the first shared mapping
	mostShared  = 4 << 20
)

// NewFiles returns the files of a directory on a file system.
func NewFiles(on disk.FS, dir string) *Files { return &Files{on: on, dir: dir, next: leastShared} }

// part returns a part of n bytes.
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
		m, err := f.newMapping(max(n, f.next))
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

// Close ends the sharing: mappings are unmapped with their last region.
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
	name  string // the file's name, while it had one
	data  []byte
	users atomic.Int64 // parts, and one for Files while it shares the mapping
}

func (f *Files) newMapping(n int64) (*mapping, error) {
	m, err := mapNew(f.on, f.dir, n)
	if err != nil {
		return nil, err
	}
	m.users.Store(1)
	live.add(m.data)
	return m, nil
}

func (m *mapping) release() {
	if m.users.Add(-1) == 0 {
		live.remove(m.data)
		unmap(m.data)
	}
}

// live knows all mappings of the process.
var live mappings

// mappings are mappings in the order of their addresses.
type mappings struct {
	mu  sync.RWMutex
	all [][]byte
}

// at returns the index of the first mapping that ends behind an address.
func (m *mappings) at(address uintptr) int {
	return sort.Search(len(m.all), func(i int) bool { return address < first(m.all[i])+uintptr(len(m.all[i])) })
}

func (m *mappings) add(data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.Insert(m.all, m.at(first(data)), data)
}

func (m *mappings) remove(data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.at(first(data))
	m.all = slices.Delete(m.all, i, i+1)
}

// Contains reports whether b lies in a mapped file of this process.
func Contains(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	live.mu.RLock()
	defer live.mu.RUnlock()
	i := live.at(first(b))
	return i < len(live.all) && first(live.all[i]) <= first(b)
}

// first returns the address of the first byte.
func first(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
