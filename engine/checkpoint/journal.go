package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
)

// window is an upper bound of the memory in bytes that a decoder needs beside the piece.
const window = 8 << 20

// kept is the number of checkpoints that a Journal keeps.
const kept = 2

// Journal writes and loads the checkpoints of a run. Only one goroutine may use it at a time.
type Journal struct {
	store Store
	run   Run
	found []int // numbers of the manifests that the store had, in descending order
	next  int   // number of the next checkpoint

	written []*Manifest // the checkpoints to keep, the newest last
	encoder *zstd.Encoder
}

// State is the state of a queue to be stored.
type State struct {
	Queue     string
	Superstep int
	Ended     bool
	// Pieces yields the encoded pieces of the state, each valid until the next is yielded.
	Pieces iter.Seq2[[]byte, error]
}

// Checkpoint is a checkpoint that was loaded and verified.
type Checkpoint struct {
	Manifest
	// Pieces has, for each of Manifest.Queues, the pieces of its state.
	Pieces [][][]byte
}

// Open returns the Journal of a run. It reads the names in the store and changes nothing.
func Open(ctx context.Context, store Store, run Run) (*Journal, error) {
	names, err := store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for checkpoints: %w", err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	j := &Journal{store: store, run: run, next: 1, encoder: encoder}
	for _, name := range names {
		if n, ok := manifestNumber(name); ok {
			j.found = append(j.found, n)
			j.next = max(j.next, n+1)
		} else if n, ok := blobNumber(name); ok {
			j.next = max(j.next, n+1)
		}
	}
	slices.SortFunc(j.found, func(a, b int) int { return cmp.Compare(b, a) })
	return j, nil
}

// Empty reports whether the store had no checkpoint when the Journal was opened.
func (j *Journal) Empty() bool { return len(j.found) == 0 }

// Load returns the newest complete checkpoint in the store, or nil if the store has none. refused
// has an error for each newer checkpoint that is damaged or cannot be read. Load fails if the
// newest checkpoint is of another run, or if the store has checkpoints but none that is complete.
// The next Write keeps the states of queues that it is not given.
func (j *Journal) Load(ctx context.Context) (c *Checkpoint, refused []error, err error) {
	for _, number := range j.found {
		c, err := j.load(ctx, number)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err == nil {
			j.written = []*Manifest{&c.Manifest}
			return c, refused, nil
		}
		err = fmt.Errorf("checkpoint %s in %s: %w", manifestName(number), j.store, err)
		var other *otherRunError
		if errors.As(err, &other) {
			return nil, refused, err
		}
		refused = append(refused, err)
	}
	if len(refused) > 0 {
		return nil, nil, fmt.Errorf("no checkpoint in %s can be used (if they are removed, the run begins at superstep 1): %w", j.store, errors.Join(refused...))
	}
	return nil, nil, nil
}

// otherRunError is the error of a checkpoint of another run.
type otherRunError struct{ difference string }

func (e *otherRunError) Error() string { return "this run cannot continue from it: " + e.difference }

// load reads and verifies one checkpoint.
func (j *Journal) load(ctx context.Context, number int) (*Checkpoint, error) {
	m, err := readManifest(ctx, j.store, number)
	if err != nil {
		return nil, err
	}
	if d := m.Run.difference(j.run); d != "" {
		return nil, &otherRunError{d}
	}
	c := &Checkpoint{Manifest: *m}
	for _, q := range m.Queues {
		pieces, err := readQueue(ctx, j.store, q)
		if err != nil {
			return nil, err
		}
		c.Pieces = append(c.Pieces, pieces)
	}
	return c, nil
}

// readManifest reads and verifies a manifest.
func readManifest(ctx context.Context, store Store, number int) (*Manifest, error) {
	data, err := store.Get(ctx, manifestName(number), maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err == nil && m.Number != number {
		err = fmt.Errorf("it is damaged: it has the number %d", m.Number)
	}
	return m, err
}

// readQueue reads and verifies the pieces of a queue's state.
func readQueue(ctx context.Context, store Store, q Queue) (pieces [][]byte, err error) {
	for _, b := range q.Blobs {
		piece, err := readBlob(ctx, store, b)
		if err != nil {
			return nil, fmt.Errorf("queue %q, superstep %d: %s: %w", q.Name, q.Superstep, b.Name, err)
		}
		pieces = append(pieces, piece)
	}
	return pieces, nil
}

// readBlob reads and verifies one blob.
func readBlob(ctx context.Context, store Store, b Blob) ([]byte, error) {
	data, err := store.Get(ctx, b.Name, b.Size)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != b.Size {
		return nil, fmt.Errorf("it is damaged: it has %d bytes, and was written with %d", len(data), b.Size)
	}
	if got := checksum(data); got != b.Sum {
		return nil, fmt.Errorf("it is damaged: its checksum is %s, and was %s", got, b.Sum)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(b.Bytes)+window))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	piece, err := decoder.DecodeAll(data, nil)
	if err == nil && int64(len(piece)) != b.Bytes {
		err = fmt.Errorf("%d bytes", len(piece))
	}
	if err != nil {
		return nil, fmt.Errorf("it does not decode to the %d bytes that were written: %w", b.Bytes, err)
	}
	return piece, nil
}

// Write stores a checkpoint with the given states, and with the states of the other queues of the
// checkpoint before. Then it removes all older checkpoints except the one before. If it fails,
// the older checkpoints are still there. An error in removing old blobs is returned as leftover.
func (j *Journal) Write(ctx context.Context, states []State) (m *Manifest, leftover, err error) {
	m = &Manifest{Format: format, Number: j.next, Run: j.run, Written: time.Now().UTC()}
	j.next++ // also after a failure, so that no blob is written twice
	for i, s := range states {
		q, err := j.put(ctx, m.Number, i, s)
		if err != nil {
			return nil, nil, fmt.Errorf("write a checkpoint of queue %q after superstep %d to %s: %w", s.Queue, s.Superstep, j.store, err)
		}
		m.Queues = append(m.Queues, q)
	}
	if n := len(j.written); n > 0 {
		for _, q := range j.written[n-1].Queues {
			if !slices.ContainsFunc(states, func(s State) bool { return s.Queue == q.Name }) {
				m.Queues = append(m.Queues, q)
			}
		}
	}
	slices.SortFunc(m.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	data, err := m.encode()
	if err == nil {
		err = j.store.Put(ctx, manifestName(m.Number), data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("write checkpoint %d to %s: %w", m.Number, j.store, err)
	}
	j.written = append(j.written, m)
	j.written = j.written[max(0, len(j.written)-kept):]
	return m, j.sweep(ctx), nil
}

// put stores the pieces of a state.
func (j *Journal) put(ctx context.Context, number, index int, s State) (Queue, error) {
	q := Queue{Name: s.Queue, Superstep: s.Superstep, Ended: s.Ended}
	var data []byte
	for piece, err := range s.Pieces {
		if err != nil {
			return q, err
		}
		data = j.encoder.EncodeAll(piece, data[:0])
		b := Blob{Name: blobName(number, index, len(q.Blobs)), Size: int64(len(data)), Bytes: int64(len(piece)), Sum: checksum(data)}
		if err := j.store.Put(ctx, b.Name, data); err != nil {
			return q, err
		}
		q.Blobs = append(q.Blobs, b)
	}
	return q, nil
}

// sweep removes the checkpoints that are not to be kept, and blobs that belong to none.
// Manifests are removed first, so that every manifest in the store has its blobs.
func (j *Journal) sweep(ctx context.Context) error {
	keep := make(map[string]bool)
	for _, m := range j.written {
		keep[manifestName(m.Number)] = true
		for _, q := range m.Queues {
			for _, b := range q.Blobs {
				keep[b.Name] = true
			}
		}
	}
	return j.remove(ctx, func(name string) bool { return keep[name] })
}

// Remove removes all checkpoints. Nothing may be written afterwards.
func (j *Journal) Remove(ctx context.Context) error {
	return j.remove(ctx, func(string) bool { return false })
}

func (j *Journal) remove(ctx context.Context, keep func(name string) bool) error {
	names, err := j.store.List(ctx)
	if err != nil {
		return err
	}
	slices.Sort(names) // manifests before blobs, and older ones before newer ones
	for _, name := range names {
		_, manifest := manifestNumber(name)
		_, blob := blobNumber(name)
		if !manifest && !blob || keep(name) {
			continue
		}
		if err := j.store.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
