package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// If a run has several processes, each writes the pieces of the states that it has, and then a
// list of these pieces. The process that has the Journal waits for the lists of a state, and
// writes the manifest.

// Times of waiting for the lists of other processes.
const (
	firstLook   = 2 * time.Millisecond // until the second look; doubled each time
	longestLook = 500 * time.Millisecond
	patience    = time.Minute // until the checkpoint is given up
)

// maxPart is the largest size in bytes of a partList.
const maxPart = 64 << 20

// partList lists the pieces of a state that one process has written.
type partList struct {
	First int    `json:"first"` // number of the first piece
	Blobs []Blob `json:"blobs"`
}

// Announce writes the mark of a run of several processes. The other processes find it with Join. key
// identifies the run.
func (j *Journal) Announce(ctx context.Context, key string) error {
	mark := blobName{kind: runKind, number: j.generation}.String()
	if err := j.store.Put(ctx, mark, []byte(key)); err != nil {
		return fmt.Errorf("write to %s: %w", j.store, err)
	}
	return nil
}

// Generation returns the number that the other processes of the run need for Join.
func (j *Journal) Generation() int { return j.generation }

// PartWriter writes the parts of checkpoints that a process has which does not have the Journal.
// Only one goroutine may use it at a time.
type PartWriter struct {
	pieceWriter
	process int
}

// Join returns the PartWriter of a process of a run. generation and key are those of the run's
// Journal, and process is the number of the process, which is not 0. Join fails if the store is not
// the one that the Journal writes to, as it may be a directory that machines do not share.
func Join(ctx context.Context, store Store, generation, process int, key string) (*PartWriter, error) {
	data, err := store.Get(ctx, blobName{kind: runKind, number: generation}.String(), int64(len(key)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || string(data) != key {
		return nil, fmt.Errorf("%s does not have what worker 0 has just written to it: the checkpoints of several machines need a directory that all of them share, or an S3-compatible store", store)
	}
	w := &PartWriter{process: process}
	w.pieceWriter, err = newPieceWriter(store, generation)
	return w, err
}

// LoadNumber returns the checkpoint of the given number, which another process of the run has loaded
// and verified, with the pieces that are needed. The others are nil.
func LoadNumber(ctx context.Context, store Store, number int, needed Needed) (*Checkpoint, error) {
	m, err := readManifest(ctx, store, number)
	c := &Checkpoint{}
	if err == nil {
		c.Manifest = *m
		c.Pieces, err = readPieces(ctx, store, m, needed, false)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s in %s: %w", manifestName(number), store, err)
	}
	return c, nil
}

// Write stores the pieces of states that are in this process.
func (w *PartWriter) Write(ctx context.Context, states []State) error {
	for _, s := range states {
		list := partList{First: s.First}
		var err error
		if list.Blobs, err = w.put(ctx, s); err != nil {
			return err
		}
		data, err := sealed(list)
		if err == nil {
			err = w.store.Put(ctx, w.name(partKind, s, w.process), data)
		}
		if err != nil {
			return fmt.Errorf("write a checkpoint of queue %q after superstep %d to %s: %w", s.Queue, s.Superstep, w.store, err)
		}
	}
	return nil
}

// gather returns the pieces of a state, of which own are those that this process has written. It
// waits for the lists of the other processes.
func (j *Journal) gather(ctx context.Context, s State, own []Blob) ([]Blob, error) {
	if s.Of == 0 || len(own) == s.Of {
		return own, nil
	}
	all := make([]Blob, s.Of)
	missing := s.Of - copy(all[s.First:], own)
	read := make(map[string]bool)
	began := time.Now()
	for look := firstLook; ; look = min(2*look, longestLook) {
		names, err := j.store.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			n, ok := parseName(name)
			if !ok || read[name] || name != j.name(partKind, s, n.index) {
				continue
			}
			read[name] = true
			found, err := j.addPart(ctx, name, all)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			missing -= found
		}
		switch {
		case missing == 0:
			return all, nil
		case time.Since(began) >= patience:
			return nil, fmt.Errorf("%d of the %d subtasks did not save their state within %v, from subtask %d on", missing, s.Of-1, patience, firstMissing(all)-1)
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// addPart adds the pieces of a process to those of the whole state, and returns their number.
func (j *Journal) addPart(ctx context.Context, name string, all []Blob) (int, error) {
	data, err := j.store.Get(ctx, name, maxPart)
	if err != nil {
		return 0, err
	}
	var list partList
	if err := unseal(data, &list); err != nil {
		return 0, err
	}
	if list.First < 0 || list.First > len(all) || len(list.Blobs) > len(all)-list.First {
		return 0, fmt.Errorf("it has %d pieces from %d on, and the state has %d", len(list.Blobs), list.First, len(all))
	}
	for _, b := range all[list.First:][:len(list.Blobs)] {
		if b.Name != "" {
			return 0, fmt.Errorf("another process has written %s too", b.Name)
		}
	}
	return copy(all[list.First:], list.Blobs), checkBlobs(list.Blobs)
}

// firstMissing returns the number of the first piece that is not there.
func firstMissing(all []Blob) int {
	for i, b := range all {
		if b.Name == "" {
			return i
		}
	}
	return len(all)
}
