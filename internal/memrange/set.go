// Package memrange records address ranges of memory that a package has mapped itself and did
// not allocate from the Go runtime.
//
// After memory is unmapped, slices of it must not be used. A package that maps memory keeps its
// mappings in a Set. Other packages use the Set to find out whether a slice lies in such memory.
package memrange

import (
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// Set is a set of byte ranges that do not overlap. The zero value is empty. It is safe for
// concurrent use. It does not keep the memory alive. Its memory must not move, so it must not lie
// on the stack of a goroutine.
type Set struct {
	mu  sync.RWMutex
	all []span // sorted by address
}

// span is the range of the addresses a with from <= a < to.
type span struct{ from, to uintptr }

// Add adds the memory of b, which must not be empty.
func (s *Set) Add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := Address(b)
	s.all = slices.Insert(s.all, s.behind(from), span{from, from + uintptr(len(b))})
}

// Remove removes b, which must have been added.
func (s *Set) Remove(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.behind(Address(b))
	s.all = slices.Delete(s.all, i, i+1)
}

// Contains reports whether the first byte of b lies in the set. It returns false if b is empty.
func (s *Set) Contains(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.behind(Address(b))
	return i < len(s.all) && s.all[i].from <= Address(b)
}

// behind returns the index in s.all of the first range that ends after address.
func (s *Set) behind(address uintptr) int {
	return sort.Search(len(s.all), func(i int) bool { return address < s.all[i].to })
}

// Address returns the address of the first byte of b.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
