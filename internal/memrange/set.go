// Package memrange knows which memory of the process belongs to a package that maps it.
//
// Memory that is unmapped is lost to everybody who still has a view of it. A package that maps
// memory keeps its mappings in a Set, and others ask the Set whether a slice lies in one of them.
package memrange

import (
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// Set is a set of byte ranges that do not overlap. The zero value is empty. It is safe for
// concurrent use. It does not keep the memory alive.
type Set struct {
	mu  sync.RWMutex
	all []span // by address
}

// span is a range of addresses: of its first byte, and behind its last.
type span struct{ from, to uintptr }

// Add adds the memory of b, which is not empty.
func (s *Set) Add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := Address(b)
	s.all = slices.Insert(s.all, s.behind(from), span{from, from + uintptr(len(b))})
}

// Remove removes memory that was added.
func (s *Set) Remove(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.behind(Address(b))
	s.all = slices.Delete(s.all, i, i+1)
}

// Contains reports whether the first byte of b lies in the set; there is none in an empty slice.
func (s *Set) Contains(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.behind(Address(b))
	return i < len(s.all) && s.all[i].from <= Address(b)
}

// behind returns the index of the first range that ends behind an address.
func (s *Set) behind(address uintptr) int {
	return sort.Search(len(s.all), func(i int) bool { return address < s.all[i].to })
}

// Address returns the address of the first byte.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
