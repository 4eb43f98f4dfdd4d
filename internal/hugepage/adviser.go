package hugepage

import (
	"maps"
	"slices"
	"sync"
)

// pageShift is that of huge pages where others have 4 KiB. Where they are larger, what is
// asked for still is whole pages, and what lies side by side becomes one range again.
const pageShift = 21

// system is what an adviser asks, for n huge pages from a given one on. Both return false
// where there is no use in asking again.
type system struct {
	advise, forget func(page, n uintptr) bool
}

// adviser asks for huge pages, for each once: buffers come and go at the same addresses of
// the heap, which never gives an address back.
type adviser struct {
	system system

	mu     sync.Mutex
	asked  map[uintptr]struct{} // numbers of pages
	closed bool                 // nothing is asked any more
}

// advise asks for the huge pages that n bytes from an address on lie on, with what else of
// the heap lies on them. What is not in use yet becomes huge when it is first used; for the
// rest it is the system's to decide.
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
