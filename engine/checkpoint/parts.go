package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// If a run has several processes, each writes the pieces of the states that it has, and then a
// list of these pieces. The process that has the Journal waits for the lists of a state, and
// writes the manifest.

// Times between two looks for the lists of other processes.
const (
	firstLook   = 2 * time.Millisecond // doubled each time
	longestLook = 500 * time.Millisecond
)

// maxPart is the largest size in bytes of a partList.
const maxPart = 64 << 20

// partList lists the pieces of a state that one process has written.
type partList struct {
	First int    `json:"first"` // number of the first piece
	Blobs []Blob `json:"blobs"`
}

// Announce writes the mark of a run of several processes, or of an attempt of a job on a cluster.
// The other processes find it with Join. key identifies the run, or the attempt.
func (j *Journal) Announce(ctx context.Context, key string) error {
	for {
		err := publish(ctx, j.store, markName(j.generation), []byte(key))
		if err == nil {
			j.key = key
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("write to %s: %w", j.store, err)
		}
		j.generation++
	}
}

// markName returns the name of the mark of a generation.
func markName(generation int) string { return blobName{kind: runKind, number: generation}.String() }

// publish stores a blob by Store.Publish. If there is a blob of that name with the same bytes, it
// succeeds, as this process may have written it.
func publish(ctx context.Context, store Store, name string, data []byte) error {
	err := store.Publish(ctx, name, data)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if there, unread := store.Get(ctx, name, int64(len(data))); unread == nil && bytes.Equal(there, data) {
		return nil
	}
	return err
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
	data, err := store.Get(ctx, markName(generation), int64(len(key)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || string(data) != key {
		return nil, fmt.Errorf("%s does not have what worker 0 has just written to it: the checkpoints of several machines need a directory that all of them share, or an S3-compatible store", store)
	}
	w := &PartWriter{process: process}
	w.pieceWriter, err = newPieceWriter(store, generation)
	w.key = key
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

// Write stores the pieces of states that are in this process. If a later attempt of the job has
// removed the mark of the run, Write removes what it has just stored, as nobody else would, and
// returns ErrTaken. If somebody else has removed it, the error is ErrGone.
func (w *PartWriter) Write(ctx context.Context, states []State) error {
	for _, s := range states {
		list := partList{First: s.First}
		if err := w.verifyMark(ctx); err != nil {
			return fmt.Errorf("write a checkpoint of queue %q after superstep %d to %s: %w", s.Queue, s.Superstep, w.store, err)
		}
		var err error
		if list.Blobs, err = w.put(ctx, s); err != nil {
			return err
		}
		if err = w.verifyMark(ctx); errors.Is(err, ErrTaken) || errors.Is(err, ErrGone) {
			w.discard(ctx, list.Blobs)
		}
		var data []byte
		if err == nil {
			data, err = sealed(list)
		}
		if err == nil {
			err = w.store.Put(ctx, w.name(partKind, s, w.process), data)
		}
		if err != nil {
			return fmt.Errorf("write a checkpoint of queue %q after superstep %d to %s: %w", s.Queue, s.Superstep, w.store, err)
		}
	}
	return nil
}

// maxMark is the largest size in bytes of a mark.
const maxMark = 4 << 10

// verifyMark returns ErrTaken or ErrGone if the run has written a mark and it is gone. After that, a later
// attempt may have a mark of the same number.
func (w *pieceWriter) verifyMark(ctx context.Context) error {
	if w.key == "" {
		return nil
	}
	data, err := w.store.Get(ctx, markName(w.generation), maxMark)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.whyGone(ctx)
	case err == nil && string(data) != w.key:
		return ErrTaken
	}
	return err
}

// whyGone returns ErrTaken if the store has the mark of a later attempt, and ErrGone otherwise. It is called
// when what says that this attempt has the store is gone. A later attempt writes its mark before it removes
// that of an earlier one.
func (w *pieceWriter) whyGone(ctx context.Context) error {
	names, err := w.store.List(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n, ok := parseName(name); ok && n.kind == runKind && n.number > w.generation {
			return ErrTaken
		}
	}
	return ErrGone
}

// Awaited says for what Write waits in other processes; "" if it does not. It may be called from any
// goroutine.
func (j *Journal) Awaited() string {
	if text := j.awaited.Load(); text != nil {
		return *text
	}
	return ""
}

// gather returns the pieces of a state, of which own are those that this process has written. It
// waits for the lists of the other processes, which write each state for which this is called.
func (j *Journal) gather(ctx context.Context, s State, own []Blob) ([]Blob, error) {
	if s.Of == 0 || len(own) == s.Of {
		return own, nil
	}
	all := make([]Blob, s.Of)
	missing := s.Of - copy(all[s.First:], own)
	read := make(map[string]bool)
	defer j.awaited.Store(nil)
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
		failed := j.unwritten.take(s)
		if missing == 0 {
			return all, nil
		}
		if failed != nil {
			return nil, failed
		}
		text := fmt.Sprintf("%d of the %d subtasks of queue %q have not written their state, from subtask %d on", missing, s.Of-1, s.Queue, firstMissing(all)-1)
		j.awaited.Store(&text)
		if err := j.pause(ctx, look); err != nil {
			return nil, err
		}
	}
}

// pause waits for a time, or until the context is done, and then returns the cause of that.
func (j *Journal) pause(ctx context.Context, d time.Duration) error {
	if j.Pause != nil {
		return j.Pause(ctx, d)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
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
