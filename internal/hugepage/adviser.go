package hugepage

import "sync/atomic"

const (
	// pageShift is that of huge pages where others have 4 KiB. Where they are larger, what is
	// asked for still is whole pages, and what lies side by side becomes one range again.
	pageShift = 21

	// slots is how many huge pages are remembered: those of 16 GiB, if they follow each other.
	slots = 1 << 13
)

// adviser asks for huge pages, for each once if it can: buffers come and go at the same
// addresses of the heap, which never gives an address back, and asking takes the lock of the
// whole address space.
type adviser struct {
	// ask asks for n huge pages from a given one on. It returns false where the system has
	// none to give, at any time.
	ask func(page, n uintptr) bool

	refused atomic.Bool
	// asked has the numbers of pages that were asked for, each in the slot of its number
	// modulo slots. One that another has driven out is asked for again.
	asked [slots]atomic.Uintptr
}

// advise asks for the huge pages that n bytes from an address on lie on, with what else of
// the heap lies on them. What is not in use yet becomes huge when it is first used; for the
// rest it is the system's to decide.
func (a *adviser) advise(from, n uintptr) {
	if n < Least || a.refused.Load() {
		return
	}
	end := (from+n-1)>>pageShift + 1
	for page := from >> pageShift; page < end; page++ {
		first := page
		for page < end && a.asked[page%slots].Swap(page) != page {
			page++
		}
		if page > first && !a.ask(first, page-first) {
			a.refused.Store(true)
			return
		}
	}
}
