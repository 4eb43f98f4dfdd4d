package hugepage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const pageSize = 1 << pageShift

// book is a system that records requests.
type book struct {
	pages, back []uintptr // requested pages, and pages whose requests were withdrawn
	calls       int
	refuse      bool
}

func (b *book) system() system {
	note := func(to *[]uintptr) func(page, n uintptr) bool {
		return func(page, n uintptr) bool {
			b.calls++
			for i := range n {
				*to = append(*to, page+i)
			}
			return !b.refuse
		}
	}
	return system{advise: note(&b.pages), forget: note(&b.back)}
}

func TestPagesThatAreAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		from, bytes uintptr
		pages       []uintptr
	}{
		"too small":               {4 * pageSize, Least - 1, nil},
		"none":                    {4 * pageSize, 0, nil},
		"the first that is large": {4*pageSize + 64, Least, []uintptr{4}},
		"a whole page":            {4 * pageSize, pageSize, []uintptr{4}},
		"a byte of the next":      {4*pageSize + 1, pageSize, []uintptr{4, 5}},
		"around a border":         {5*pageSize - 64, Least, []uintptr{4, 5}},
		"several":                 {4*pageSize + 4096, 3 * pageSize, []uintptr{4, 5, 6, 7}},
	} {
		var b book
		a := adviser{system: b.system()}
		for range 3 {
			a.advise(c.from, c.bytes)
		}
		require.Equal(t, c.pages, b.pages, name)
		require.Equal(t, min(len(c.pages), 1), b.calls, name)
	}
}

// TestPagesAreAskedForOnce allocates random buffers. It requires that each of their pages is
// requested exactly once, and no other page.
func TestPagesAreAskedForOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b book
		a := adviser{system: b.system()}
		var want []uintptr
		for range 30 {
			from, n := uintptr(pageSize+rng.IntN(40*pageSize)), uintptr(Least+rng.IntN(5*pageSize))
			a.advise(from, n)
			for page := from / pageSize; page*pageSize < from+n; page++ {
				want = append(want, page)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		slices.Sort(b.pages)
		require.Equal(t, want, b.pages)

		// close withdraws the requests with one call for each contiguous range of pages. After it,
		// no pages are requested.
		ranges, before := 1, b.calls
		for i := range want[1:] {
			if want[i+1] != want[i]+1 {
				ranges++
			}
		}
		a.close()
		require.Equal(t, want, b.back)
		require.Equal(t, ranges, b.calls-before)
		a.advise(77*pageSize, pageSize)
		a.close()
		require.Equal(t, ranges, b.calls-before)
	}
}

func TestASystemThatRefusesIsNotAskedAgain(t *testing.T) {
	b := book{refuse: true}
	a := adviser{system: b.system()}
	a.advise(7*pageSize, pageSize)
	a.advise(9*pageSize, pageSize)
	require.Equal(t, 1, b.calls)
}
