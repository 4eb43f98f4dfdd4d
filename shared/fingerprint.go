package shared

import (
	"fmt"

	"github.com/zeebo/xxh3"
)

// Fingerprint is a hash of one replicated object. It is computed over the bytes of the object
// as encoded by the codec of its key. Objects with different fingerprints differ.
type Fingerprint struct {
	Name string // name of the key
	Hash uint64
}

// Fingerprints appends the fingerprints of the replicated objects to dst, sorted by name, and
// returns the extended slice. Objects under a name for which except returns true are left out
// and not encoded; except may be nil. Subtasks with the same replicated objects return equal
// slices.
//
// Fingerprints encodes and hashes all other replicated objects. If a codec fails or the session
// is closed, it returns dst unchanged and an error.
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
