package shared

import (
	"fmt"

	"github.com/zeebo/xxh3"
)

// Fingerprint is a hash of one replicated object, taken over the bytes that the
// codec of its key gives. Objects with different fingerprints differ.
type Fingerprint struct {
	Name string // of the key
	Hash uint64
}

// Fingerprints appends the fingerprints of the replicated objects to dst, sorted by name, and
// returns the extended slice. Objects under a name for which except returns true are left out,
// at no cost; except may be nil. Subtasks with the same replicated objects return equal slices.
//
// It costs a pass over the objects. If a codec fails or the session is closed, it returns an
// error and dst unchanged.
func (o *Objects) Fingerprints(dst []Fingerprint, except func(name string) bool) ([]Fingerprint, error) {
	if o.closed() {
		return dst, fmt.Errorf("shared: fingerprints of session %q, subtask %d: %w", o.session.Name(), o.subtask, ErrClosed)
	}
	prints := dst
	var buf []byte
	var failed error
	for _, name := range o.names() {
		c := o.cells[name]
		if c.declared().kind != KindReplicated || except != nil && except(name) {
			continue
		}
		buf, _ = c.encode(buf, func(_ int, data []byte, err error) bool {
			if failed = err; err == nil {
				prints = append(prints, Fingerprint{name, xxh3.Hash(data)})
			}
			return err == nil
		})
		if failed != nil {
			return dst, failed
		}
	}
	return prints, nil
}
