// Package diskspace determines whether a disk is too full for further work.
package diskspace

import (
	"fmt"
	"sync"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// Gauge measures the free space on the disk of a folder. It is safe for concurrent use.
type Gauge struct {
	// Least is the number of free bytes below which the disk counts as full; 0 means never. A
	// full disk counts as full until 5/4 of Least are free, so that writes near the limit do not
	// switch the state back and forth. The factor is small because some disks never have many
	// more bytes free than Least.
	Least int64
	// Free returns the number of bytes that this user may still write.
	Free func() (int64, error)

	mu  sync.Mutex
	low bool
}

// New returns a gauge for the disk of the folder dir.
func New(dir string, least int64) *Gauge {
	return &Gauge{Least: least, Free: func() (int64, error) { return free(dir) }}
}

// Reading is the result of one measurement.
type Reading struct {
	Free int64  // free bytes; -1 if unknown
	Full string // message for users if the disk counts as full; else ""
}

// Full measures the free space and returns the field Full of the reading.
func (g *Gauge) Full() string { return g.Read().Full }

// Read measures the free space. A disk whose free space is unknown does not count as full: if it
// is full, writes fail.
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
	return Reading{Free: n, Full: fmt.Sprintf("its disk has %s free, %s are the least (--min-free), and work is taken again at %s", humanize.Bytes(n), humanize.Bytes(g.Least), humanize.Bytes(again))}
}
