package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// kept is the number of checkpoints that a Journal keeps.
const kept = 2

// Journal writes and loads the checkpoints of a run. Only one goroutine may use it at a time.
type Journal struct {
	// Pause waits between two looks for what other processes have written. nil means a timer.
	Pause func(ctx context.Context, d time.Duration) error

	pieceWriter
	run   Run
	found []int           // numbers of the manifests that the store had, in descending order
	next  int             // number of the next checkpoint
	had   map[string]bool // hashes of the queues of which the store had pieces, or a manifest that was read

	written   []*Manifest // the checkpoints to keep, the newest last
	savepoint string      // of the next checkpoint; see Manifest.Savepoint

	mu   sync.Mutex
	held []*Manifest // further checkpoints to keep; see Hold

	awaited   atomic.Pointer[string] // what gather waits for; nil if it does not
	unwritten unwrittenParts
}

// Checkpoint is a checkpoint that was loaded and verified.
type Checkpoint struct {
	Manifest
	// Pieces has, for each of Manifest.Queues, the pieces of its state. Pieces that are not needed
	// are nil.
	Pieces [][][]byte
}

// Open returns the Journal of a run. It reads the names in the store and changes nothing.
func Open(ctx context.Context, store Store, run Run) (*Journal, error) {
	names, err := store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for checkpoints: %w", err)
	}
	j := &Journal{run: run, next: 1, had: make(map[string]bool)}
	for _, name := range names {
		n, ok := parseName(name)
		if !ok {
			continue
		}
		if n.number > maxNumber {
			return nil, fmt.Errorf("look for checkpoints: %s has the name %s, whose number no run has reached: remove it", store, name)
		}
		switch n.kind {
		case manifestKind:
			j.found = append(j.found, n.number)
		case stateKind:
			j.had[n.queue] = true
		}
		j.next = max(j.next, n.number+1)
	}
	if j.pieceWriter, err = newPieceWriter(store, j.next); err != nil {
		return nil, err
	}
	slices.SortFunc(j.found, func(a, b int) int { return cmp.Compare(b, a) })
	return j, nil
}

// Empty reports whether the store had no checkpoint when the Journal was opened.
func (j *Journal) Empty() bool { return len(j.found) == 0 }

// Load returns the newest complete checkpoint in the store, or nil if the store has none. refused
// has an error for each newer checkpoint that is damaged. Load fails if the newest of the others is of
// another run, with a *ReadError if it cannot be read, and with an *UnusableError if the store has
// checkpoints but all of them are damaged.
// All pieces are verified, and those that are needed are returned; nil means all. The next Write
// keeps the states of queues that it is not given.
func (j *Journal) Load(ctx context.Context, needed Needed) (c *Checkpoint, refused []error, err error) {
	for _, number := range j.found {
		c, err := j.load(ctx, number, needed)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err == nil {
			written := c.Manifest // without the pieces, which may be large
			j.written, j.savepoint = []*Manifest{&written}, written.Savepoint
			return c, refused, nil
		}
		err = fmt.Errorf("checkpoint %s in %s: %w", manifestName(number), j.store, err)
		var other *otherRunError
		if errors.As(err, &other) {
			return nil, refused, err
		}
		var unread *ReadError
		if errors.As(err, &unread) {
			return nil, refused, fmt.Errorf("%w (if that lasts, remove this file: the checkpoint before is used then)", err)
		}
		refused = append(refused, err)
	}
	if len(refused) > 0 {
		return nil, nil, &UnusableError{store: j.store.String(), refused: refused, queues: j.had}
	}
	return nil, nil, nil
}

// otherRunError is the error of a checkpoint of another run.
type otherRunError struct{ difference string }

func (e *otherRunError) Error() string { return "this run cannot continue from it: " + e.difference }

// load reads and verifies one checkpoint.
func (j *Journal) load(ctx context.Context, number int, needed Needed) (*Checkpoint, error) {
	m, err := readManifest(ctx, j.store, number)
	if err != nil {
		return nil, err
	}
	if d := m.Run.difference(j.run); d != "" {
		return nil, &otherRunError{d}
	}
	for _, q := range m.Queues {
		j.had[queueHash(q.Name)] = true
	}
	c := &Checkpoint{Manifest: *m}
	c.Pieces, err = readPieces(ctx, j.store, m, needed, true)
	return c, err
}

// readPieces reads and verifies the pieces of all states of a checkpoint; see readQueue.
func readPieces(ctx context.Context, store Store, m *Manifest, needed Needed, unneeded bool) ([][][]byte, error) {
	all := make([][][]byte, len(m.Queues))
	for i, q := range m.Queues {
		var err error
		if all[i], err = readQueue(ctx, store, q, needed, unneeded); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readManifest reads and verifies a manifest.
func readManifest(ctx context.Context, store Store, number int) (*Manifest, error) {
	data, err := get(ctx, store, manifestName(number), maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err == nil && m.Number != number {
		err = fmt.Errorf("it is damaged: it has the number %d", m.Number)
	}
	return m, err
}

// Attempts of a job can overlap: a later one takes over the store while a process of an earlier one
// still writes. What the later one has loaded stays in the store, whatever the earlier one does. The
// earlier one writes at most one more manifest, which it was about to write, and removes blobs only
// after a manifest. So it keeps the checkpoint that was the newest when the store was taken over, and
// removes no blob of a later generation.

// Write stores a checkpoint with the given states, and with the states of the other queues of the
// checkpoint before. If other processes have pieces of a state, it waits for them, and fails if PartFailed
// says that one of them could not write its pieces. Then it removes all older checkpoints except the one before
// and those that Hold keeps. If it fails, the older checkpoints are still there.
// An error in removing old blobs is returned as leftover.
func (j *Journal) Write(ctx context.Context, states []State) (m *Manifest, leftover, err error) {
	if err := j.verifyMark(ctx); err != nil {
		return nil, nil, fmt.Errorf("write a checkpoint to %s: %w", j.store, err)
	}
	m = &Manifest{Format: format, Number: j.next, Run: j.run, Written: time.Now().UTC(), Savepoint: j.savepoint}
	j.next++ // also after a failure, so that no manifest is written twice
	own := make([][]Blob, len(states))
	for i, s := range states {
		if own[i], err = j.put(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	for i, s := range states {
		all, err := j.gather(ctx, s, own[i])
		if part := (*partError)(nil); errors.As(err, &part) {
			return nil, nil, err // it says what was written
		}
		if err != nil {
			return nil, nil, fmt.Errorf("write a checkpoint of queue %q after superstep %d to %s: %w", s.Queue, s.Superstep, j.store, err)
		}
		m.Queues = append(m.Queues, Queue{Name: s.Queue, Superstep: s.Superstep, Ended: s.Ended, Blobs: all})
	}
	if n := len(j.written); n > 0 {
		for _, q := range j.written[n-1].Queues {
			if !slices.ContainsFunc(states, func(s State) bool { return s.Queue == q.Name }) {
				m.Queues = append(m.Queues, q)
			}
		}
	}
	slices.SortFunc(m.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	if err := j.publish(ctx, m); err != nil {
		if errors.Is(err, ErrTaken) || errors.Is(err, ErrGone) {
			for _, blobs := range own {
				j.discard(ctx, blobs)
			}
		}
		return nil, nil, fmt.Errorf("write checkpoint %d to %s: %w", m.Number, j.store, err)
	}
	j.written = append(j.written, m)
	j.written = j.written[max(0, len(j.written)-kept):]
	return m, j.sweep(ctx), nil
}

// publish writes a manifest. If its number is taken by the last checkpoint of an earlier attempt,
// which was written after this Journal was opened, it takes the next. If a later attempt has written
// that checkpoint, or has left its mark, it returns ErrTaken.
func (j *Journal) publish(ctx context.Context, m *Manifest) error {
	for {
		data, err := m.encode()
		if err == nil {
			err = publish(ctx, j.store, manifestName(m.Number), data)
		}
		if errors.Is(err, ErrGone) {
			return j.whyGone(ctx)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if there, err := readManifest(ctx, j.store, m.Number); err == nil && there.generation() > j.generation {
			return ErrTaken
		}
		m.Number = j.next
		j.next++
	}
}

// sweep removes the checkpoints that are not to be kept, and blobs that belong to none. It keeps
// what other processes of this run have written of later states.
func (j *Journal) sweep(ctx context.Context) error {
	keep, newest := make(map[string]bool), make(map[string]int)
	for _, m := range j.keeps() {
		keep[manifestName(m.Number)] = true
		for _, q := range m.Queues {
			newest[queueHash(q.Name)] = q.Superstep
			for _, b := range q.Blobs {
				keep[b.Name] = true
			}
		}
	}
	return j.remove(ctx, func(name string, n blobName) bool {
		if keep[name] {
			return true
		}
		step, known := newest[n.queue]
		return n.number == j.generation && (n.kind == runKind || n.kind != manifestKind && (!known || n.superstep > step))
	})
}

// Remove removes all checkpoints. Nothing may be written afterwards, by any process of the run.
func (j *Journal) Remove(ctx context.Context) error {
	return j.remove(ctx, func(string, blobName) bool { return false })
}

// remove removes the blobs of this run, and of earlier ones, that are not to be kept. Manifests are
// removed first, and older ones before newer ones, so that every manifest in the store has its blobs.
func (j *Journal) remove(ctx context.Context, keep func(name string, n blobName) bool) error {
	names, err := j.store.List(ctx)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		n, ok := parseName(name)
		later := n.kind == manifestKind && n.number >= j.next || n.kind != manifestKind && n.number > j.generation
		if !ok || later || keep(name, n) {
			continue
		}
		if err := j.store.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
