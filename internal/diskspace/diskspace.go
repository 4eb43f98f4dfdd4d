// Package diskspace tells whether a disk is too full to take more work.
package diskspace

import (
	"fmt"
	"sync"
)

// Gauge watches the space on the disk of a folder. It is safe for concurrent use.
type Gauge struct {
	// Least is the number of free bytes below which the disk counts as full; 0 means never. It
	// stays full until a quarter more than Least is free, so that writes near the limit do not
	// switch the state back and forth. Some disks never have much more than that free.
	Least int64
	// Free returns the bytes that this user may still write.
	Free func() (int64, error)

	mu  sync.Mutex
	low bool
}

// New returns a gauge of a folder's disk.
func New(dir string, least int64) *Gauge {
	return &Gauge{Least: least, Free: func() (int64, error) { return free(dir) }}
}

// Reading is what a gauge shows.
type Reading struct {
	Free int64  // bytes; -1 if unknown
	Full string // how full the disk is, if it is too full; else ""
}

// Full returns the Full of a new reading.
func (g *Gauge) Full() string { return g.Read().Full }

// Read looks at the disk. A disk whose free space is unknown does not count as full: writes
// to it show whether it is.
func (g *Gauge) Read() Reading {
	n, err := g.Free()
	switch {
	case err != nil:
		return Reading{Free: -1}
	case g.Least <= 0:
		return Reading{Free: n}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	want, again := g.Least, g.Least+g.Least/4
	if g.low {
		want = again
	}
	if g.low = n < want; !g.low {
		return Reading{Free: n}
	}
	return Reading{Free: n, Full: fmt.Sprintf("its disk has %s free, %s are the least (--min-free), and work is taken again at %s", size(n), size(g.Least), size(again))}
}

// size writes n bytes in whole MiB, or in KiB if n is below 16 MiB and no multiple of 1 MiB.
func size(n int64) string {
	if n >= 16<<20 || n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
