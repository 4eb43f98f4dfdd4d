package hugepage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const pageSize = 1 << pageShift

// book is a system that notes what it was asked for.
type book struct {
	pages  []uintptr
	calls  int
	refuse bool
}

func (b *book) ask(page, n uintptr) bool {
	b.calls++
	for i := range n {
		b.pages = append(b.pages, page+i)
	}
	return !b.refuse
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
		a := adviser{ask: b.ask}
		for range 3 {
			a.advise(c.from, c.bytes)
		}
		require.Equal(t, c.pages, b.pages, name)
		require.Equal(t, min(len(c.pages), 1), b.calls, name)
	}
}

// TestPagesAreAskedForOnce: whatever the buffers, each of their pages is, and no other one.
func TestPagesAreAskedForOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b book
		a := adviser{ask: b.ask}
		var want []uintptr
		for range 30 {
			from, n := uintptr(pageSize+rng.IntN(40*pageSize)), uintptr(Least+rng.IntN(5*pageSize))
			a.advise(from, n)
			for page := from / pageSize; page*pageSize < from+n; page++ {
				want = append(want, page)
			}
		}
		slices.Sort(want)
		slices.Sort(b.pages)
		require.Equal(t, slices.Compact(want), b.pages)
	}
}

func TestPagesThatWereDrivenOutAreAskedForAgain(t *testing.T) {
	var b book
	a := adviser{ask: b.ask}
	for range 2 {
		a.advise(7*pageSize, Least)
		a.advise((7+slots)*pageSize, Least)
	}
	require.Equal(t, []uintptr{7, 7 + slots, 7, 7 + slots}, b.pages)
}

func TestASystemThatRefusesIsNotAskedAgain(t *testing.T) {
	b := book{refuse: true}
	a := adviser{ask: b.ask}
	a.advise(7*pageSize, pageSize)
	a.advise(9*pageSize, pageSize)
	require.Equal(t, 1, b.calls)
}
