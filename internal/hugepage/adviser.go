package hugepage

import (
	"maps"
	"slices"
	"sync"
)

// pageShift is the shift of huge pages on systems with 4 KiB pages. On systems with larger huge
// pages, whole pages are still requested, as neighbouring ranges merge.
const pageShift = 21

// system has the calls of an adviser, for n huge pages from a given one on. Both return false
// if further calls are of no use.
type system struct {
	advise, forget func(page, n uintptr) bool
}

// adviser requests huge pages, each only once: buffers come and go at the same addresses of the
// heap, which never returns address space.
type adviser struct {
	system system

	mu     sync.Mutex
	asked  map[uintptr]struct{} // numbers of pages
	closed bool                 // no more requests
}

// advise requests huge pages for n bytes from an address on, and so for other parts of the heap
// on the same pages. Unused memory gets huge pages at its first use; for the rest the system
// decides.
func (a *adviser) advise(from, n uintptr) {
	if n < Least {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if a.asked == nil {
		a.asked = map[uintptr]struct{}{}
	}
	end := (from+n-1)>>pageShift + 1
	for page := from >> pageShift; page < end; page++ {
		first := page
		for ; page < end && !a.has(page); page++ {
			a.asked[page] = struct{}{}
		}
		if page > first && !a.system.advise(first, page-first) {
			a.closed = true
			return
		}
	}
}

func (a *adviser) has(page uintptr) bool {
	_, ok := a.asked[page]
	return ok
}

// close takes the advice back.
func (a *adviser) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	pages := slices.Sorted(maps.Keys(a.asked))
	a.asked = nil
	for i := 0; i < len(pages); {
		first, n := pages[i], 0
		for i < len(pages) && pages[i] == first+uintptr(n) {
			i, n = i+1, n+1
		}
		if !a.system.forget(first, uintptr(n)) {
			return
		}
	}
}
