package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// A savepoint is a checkpoint that was copied to a place of its own, where no run removes it. A run
// that continues from it may differ from the run that wrote it in more than one that continues from
// its own checkpoints.

// Stages has the stages of a queue, in order.
type Stages struct {
	Queue  string   `json:"queue"`
	Stages []string `json:"stages"` // the kind of each and its name, such as `Compute "move"`
	// Named says which stages have stable names. The names of the others are those of functions, which the
	// compiler numbers anew if unrelated functions are added. Earlier programs have not written it.
	Named []bool `json:"named,omitempty"`
}

// named reports whether stage i has a stable name.
func (s *Stages) named(i int) bool { return i < len(s.Named) && s.Named[i] }

// kind returns the kind of stage i.
func (s *Stages) kind(i int) string {
	kind, _, _ := strings.Cut(s.Stages[i], ` "`)
	return kind
}

// find returns the number, from 1, of the stage that has a stable name and the given title; 0 if there is none.
func (s *Stages) find(title string) int {
	for i, t := range s.Stages {
		if t == title && s.named(i) {
			return i + 1
		}
	}
	return 0
}

// difference describes the first stage that is not as it was, or returns "". Stages in the same place are
// the same if their kinds are and, provided that both names are stable, their names.
func (s *Stages) difference(now *Stages) string {
	for i := range max(len(s.Stages), len(now.Stages)) {
		switch {
		case i == len(now.Stages):
			return fmt.Sprintf("stage %d was %s, and there are only %d stages now", i+1, s.Stages[i], i)
		case i == len(s.Stages):
			return fmt.Sprintf("stage %d is %s, and there were only %d stages", i+1, now.Stages[i], i)
		case s.kind(i) == now.kind(i) && (!s.named(i) || !now.named(i) || s.Stages[i] == now.Stages[i]):
			continue
		}
		text := fmt.Sprintf("stage %d was %s, and is %s now", i+1, s.Stages[i], now.Stages[i])
		if at := now.find(s.Stages[i]); s.named(i) && at > 0 {
			text += fmt.Sprintf("; %s is stage %d now", s.Stages[i], at)
		}
		if at := s.find(now.Stages[i]); now.named(i) && at > 0 {
			text += fmt.Sprintf("; %s was stage %d", now.Stages[i], at)
		}
		return text
	}
	return ""
}

// cleanUp is the time for the removal of what a copy that failed has written.
const cleanUp = 5 * time.Second

// Copy copies a checkpoint to another store, in which there must be none. If it fails, it removes what it has
// written.
func Copy(ctx context.Context, m *Manifest, from, to Store) error {
	at := func(err error) error {
		return fmt.Errorf("copy checkpoint %d from %s to %s: %w", m.Number, from, to, err)
	}
	present, err := to.List(ctx)
	if err != nil {
		return at(err)
	}
	for _, name := range present {
		if _, ours := parseName(name); ours {
			return at(fmt.Errorf("there is %s already: give each savepoint a place of its own", name))
		}
	}
	if written, err := copyBlobs(ctx, m, from, to); err != nil {
		return at(errors.Join(err, removeAll(ctx, to, written)))
	}
	return nil
}

// copyBlobs copies the blobs of a checkpoint and then writes its manifest. It returns the names of all that it
// has begun to write, in order.
func copyBlobs(ctx context.Context, m *Manifest, from, to Store) (written []string, err error) {
	for _, q := range m.Queues {
		for _, b := range q.Blobs {
			if ctx.Err() != nil { // directories do not obey it
				return written, context.Cause(ctx)
			}
			data, err := from.Get(ctx, b.Name, b.Size)
			if err == nil {
				err = b.verify(data)
			}
			if err == nil {
				written = append(written, b.Name)
				err = to.Put(ctx, b.Name, data)
			}
			if err != nil {
				return written, fmt.Errorf("%s: %w", b.Name, err)
			}
		}
	}
	data, err := m.encode()
	if err == nil {
		written = append(written, manifestName(m.Number))
		err = to.Put(ctx, manifestName(m.Number), data)
	}
	return written, err
}

// removeAll removes blobs, the last first, although ctx may have ended.
func removeAll(ctx context.Context, store Store, names []string) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cleanUp, fmt.Errorf("there was no answer within %v", cleanUp))
	defer cancel()
	for _, name := range slices.Backward(names) {
		if err := store.Delete(ctx, name); err != nil {
			return fmt.Errorf("what was written could not be removed: %w", err)
		}
	}
	return nil
}

// Adopt writes a checkpoint with the states of the savepoint m in a store, for those queues of which the
// newest checkpoint has none. So whoever continues from the checkpoints of the run does not need the
// savepoint, whose place they name.
func (j *Journal) Adopt(ctx context.Context, from Store, m *Manifest, place string) error {
	var newest []Queue
	if n := len(j.written); n > 0 {
		newest = j.written[n-1].Queues
	}
	var states []State
	for _, q := range m.Queues {
		if !slices.ContainsFunc(newest, func(o Queue) bool { return o.Name == q.Name }) {
			states = append(states, State{Queue: q.Name, Superstep: q.Superstep, Ended: q.Ended, Pieces: piecesIn(ctx, from, q)})
		}
	}
	before := j.savepoint
	j.savepoint = place
	if _, _, err := j.Write(ctx, states); err != nil {
		j.savepoint = before
		return fmt.Errorf("copy the savepoint %d from %s: %w", m.Number, from, err)
	}
	return nil
}

// piecesIn yields the pieces of a state in a store, each as it is read and verified.
func piecesIn(ctx context.Context, store Store, q Queue) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, b := range q.Blobs {
			piece, err := readBlob(ctx, store, b)
			if err != nil {
				err = fmt.Errorf("%s: %w", b.Name, err)
			}
			if !yield(piece, err) || err != nil {
				return
			}
		}
	}
}

// LoadSavepoint returns the newest complete checkpoint in a store, for a run that may differ from
// the one that wrote it in its program, arguments and parallelism. It must have the same number of
// shards, the same seed, queues with the same stages, which Stages compares, and no input that has changed.
// Pieces are verified and returned as by Journal.Load. refused has an error for each newer checkpoint that is
// damaged, and differs
// says what is not as it was.
func LoadSavepoint(ctx context.Context, store Store, run Run, needed Needed) (c *Checkpoint, differs []string, refused []error, err error) {
	names, err := store.List(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	var found []int
	for _, name := range names {
		if n, ok := manifestNumber(name); ok {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Compare(b, a) })
	for _, number := range found {
		m, err := readManifest(ctx, store, number)
		if err == nil {
			if differs, err = run.fits(m); err != nil {
				return nil, nil, refused, fmt.Errorf("checkpoint %s in %s: this run cannot continue from it: %w", manifestName(number), store, err)
			}
			c = &Checkpoint{Manifest: *m}
			if c.Pieces, err = readPieces(ctx, store, m, needed, true); err == nil {
				return c, differs, refused, nil
			}
		}
		if ctx.Err() != nil {
			return nil, nil, nil, context.Cause(ctx)
		}
		err = fmt.Errorf("checkpoint %s in %s: %w", manifestName(number), store, err)
		var unread *ReadError
		if errors.As(err, &unread) {
			return nil, nil, refused, err
		}
		refused = append(refused, err)
	}
	if len(refused) > 0 {
		return nil, nil, refused, errors.Join(refused...)
	}
	return nil, nil, nil, fmt.Errorf("there is no savepoint in %s", store)
}

// fits returns what differs between the run and the one that wrote a checkpoint, or an error if the
// run cannot continue from it.
func (r Run) fits(m *Manifest) (differs []string, err error) {
	was := m.Run
	switch {
	case was.Shards != r.Shards:
		return nil, fmt.Errorf("its run had %d shards, and this run has %d", was.Shards, r.Shards)
	case was.Seed != r.Seed:
		return nil, fmt.Errorf("its run had the seed %d, and this run has %d", was.Seed, r.Seed)
	}
	for _, f := range r.Facts {
		if slices.ContainsFunc(was.Facts, func(o Fact) bool { return o.Name == f.Name && o != f }) {
			return nil, fmt.Errorf("an input has changed since (%s)", f.Name)
		}
	}
	for _, q := range m.Queues {
		before, known := stagesOf(was.Queues, q.Name)
		now, there := stagesOf(r.Queues, q.Name)
		if !there {
			return nil, fmt.Errorf("it has a state of queue %q, which this program does not have", q.Name)
		}
		if other := before.difference(&now); known && other != "" {
			return nil, fmt.Errorf("queue %q has other stages: %s", q.Name, other)
		}
	}
	for _, q := range r.Queues {
		if !slices.ContainsFunc(m.Queues, func(o Queue) bool { return o.Name == q.Queue }) {
			differs = append(differs, fmt.Sprintf("queue %q begins at superstep 1, as it had no state yet", q.Queue))
		}
	}
	if was.Job != r.Job {
		differs = append(differs, fmt.Sprintf("it is of job %q", was.Job))
	}
	if was.Program != r.Program {
		differs = append(differs, "it was written by another build of the program")
	}
	if names := argumentsDiffer(was.Arguments, r.Arguments); len(names) > 0 {
		differs = append(differs, "its run had other arguments: "+strings.Join(names, ", "))
	}
	if was.Graph != r.Graph && len(differs) == 0 {
		differs = append(differs, "the graph of its job differs")
	}
	return differs, nil
}

func stagesOf(all []Stages, queue string) (stages Stages, ok bool) {
	for _, s := range all {
		if s.Queue == queue {
			return s, true
		}
	}
	return Stages{}, false
}
