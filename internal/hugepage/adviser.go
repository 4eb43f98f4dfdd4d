package hugepage

import (
	"maps"
	"slices"
	"sync"
)

// pageShift is the binary logarithm of the size of huge pages on systems with pages of 4 KiB. On
// systems with larger huge pages, whole pages are still requested, because the system merges
// neighbouring requests.
const pageShift = 21

// system has the system calls of an adviser: advise requests n huge pages, the first of which has
// the number page, and forget withdraws the requests. Both return false if further calls are
// useless.
type system struct {
	advise, forget func(page, n uintptr) bool
}

// adviser requests huge pages, and requests each page only once. That is enough because the
// heap never returns address space: buffers are allocated again and again at the same
// addresses.
type adviser struct {
	system system

	mu     sync.Mutex
	asked  map[uintptr]struct{} // numbers of requested pages
	closed bool                 // no more pages are requested
}

// advise requests huge pages for the n bytes that begin at address from. Other objects of the
// heap may lie on the same pages. Memory that was not used yet gets huge pages at its first
// use; for memory in use the system decides.
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

// close withdraws all requests.
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
