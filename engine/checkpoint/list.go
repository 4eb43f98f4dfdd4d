package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
)

// Entry is one checkpoint in a store.
type Entry struct {
	Number int
	// Manifest describes the checkpoint. It is nil if Err says why it cannot be used.
	Manifest *Manifest
	Err      error
}

// List returns the checkpoints in a store, the newest first. If verify is true, it reads all of
// their blobs, and Err names the first blob that is damaged. Checkpoints that are removed
// meanwhile are left out.
func List(ctx context.Context, store Store, verify bool) ([]Entry, error) {
	names, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, name := range names {
		number, ok := manifestNumber(name)
		if !ok {
			continue
		}
		e := Entry{Number: number}
		e.Manifest, e.Err = readManifest(ctx, store, number)
		if e.Err == nil && verify {
			for _, q := range e.Manifest.Queues {
				if _, err := readQueue(ctx, store, q, nil, true); err != nil {
					e.Manifest, e.Err = nil, err
					break
				}
			}
		}
		if e.Err != nil {
			if _, err := store.Get(ctx, name, maxManifest); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(b.Number, a.Number) })
	return entries, nil
}
