// Package diskspace tells when a disk is too full to go on, and when it is not any more.
package diskspace

import (
	"fmt"
	"sync"
)

// Gauge watches the space on the disk of a folder. It is safe for concurrent use.
type Gauge struct {
	// Least is the bytes below which the disk counts as full. It counts so until a quarter
	// more are free, so that what is written near the limit does not turn it on and off;
	// more would be more than some disks ever have. 0 never counts as full.
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
	Free int64  // bytes; -1 where that cannot be told
	Full string // how full the disk is if that is too full, else nothing
}

// Full is that of a reading.
func (g *Gauge) Full() string { return g.Read().Full }

// Read looks at the disk. Where the space cannot be told it does not count as full: then
// writing tells.
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
	return Reading{Free: n, Full: fmt.Sprintf("its disk has %s free, %s are the least (--min-free), and work goes on at %s", size(n), size(g.Least), size(again))}
}

// size writes bytes in whole MiB, or in KiB where those would be few.
func size(n int64) string {
	if n >= 16<<20 || n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
