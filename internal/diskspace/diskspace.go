// Package diskspace tells when a disk is too full to go on, and when it is not any more.
package diskspace

import (
	"fmt"
	"sync"
)

// Gauge watches the space on the disk of a folder. It is safe for concurrent use.
type Gauge struct {
	// Least is the bytes below which the disk counts as full. It counts so until twice as
	// many are free, so that what is written near the limit does not turn it on and off.
	// 0 never counts as full.
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

// Full says how full the disk is if that is too full, and else nothing. Where the space
// cannot be told it says nothing either: then writing tells.
func (g *Gauge) Full() string {
	if g.Least <= 0 {
		return ""
	}
	n, err := g.Free()
	if err != nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	want := g.Least
	if g.low {
		want *= 2
	}
	if g.low = n < want; !g.low {
		return ""
	}
	return fmt.Sprintf("its disk has %d MiB free, %d MiB are the least (--min-free), and work goes on at %d MiB", n>>20, g.Least>>20, 2*g.Least>>20)
}
