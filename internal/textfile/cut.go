package textfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sort"

	"golang.org/x/sync/errgroup"
)

// maxShards bounds the number of shards, because the size of the index is proportional to it.
const maxShards = 1 << 20

// Plan cuts the bodies of files, one after another, into S ranges of equal numbers of bytes.
// The ranges depend only on the number of bytes and S. A record belongs to the range in which
// its first byte lies.
type Plan struct {
	parts  []part
	ends   []int64 // ends[i] is the virtual offset after part i: the number of bytes in the bodies of parts 0 to i
	shards int
}

// newPlan returns the plan for a text. The bodies of its parts must have been set.
func newPlan(t *text, shards int) (*Plan, error) {
	if shards < 1 || shards > maxShards {
		return nil, fmt.Errorf("the number of shards must be between 1 and %d, not %d", maxShards, shards)
	}
	p := &Plan{parts: t.parts, shards: shards, ends: make([]int64, len(t.parts))}
	var total int64
	for i, part := range t.parts {
		total += part.size - part.body
		p.ends[i] = total
	}
	return p, nil
}

// Shards returns S.
func (p *Plan) Shards() int { return p.shards }

// Bytes returns the total number of bytes in the bodies.
func (p *Plan) Bytes() int64 { return p.ends[len(p.ends)-1] }

// bound returns the virtual offset at which range i begins.
func (p *Plan) bound(i int) int64 {
	hi, lo := bits.Mul64(uint64(i), uint64(p.Bytes()))
	q, _ := bits.Div64(hi, lo, uint64(p.shards))
	return int64(q)
}

// piece is the intersection of a range with a file. It has the bytes of the part at the offsets
// i with from <= i < to.
type piece struct {
	part     *part
	from, to int64
}

// atStart reports whether the piece begins at the body of its file.
func (c piece) atStart() bool { return c.from == c.part.body }

// atEnd reports whether the piece ends at the end of its file.
func (c piece) atEnd() bool { return c.to == c.part.size }

// pieces returns the pieces of range i that are not empty, in order.
func (p *Plan) pieces(i int) []piece {
	from, to := p.bound(i), p.bound(i+1)
	var out []piece
	for k := sort.Search(len(p.ends), func(k int) bool { return p.ends[k] > from }); from < to; k++ {
		part := &p.parts[k]
		begin := p.ends[k] - (part.size - part.body)
		end := min(to, p.ends[k])
		if end > from {
			out = append(out, piece{part, part.body + from - begin, part.body + end - begin})
			from = end
		}
	}
	return out
}

// Index has the state of the quoting automaton before every range. It is immutable and may be
// used by any number of goroutines.
type Index struct {
	before []state
}

// scan returns the transition of range i. Ranges may be scanned in any order and concurrently.
// The end of a file ends its last record, so a range that includes the end of a file leads to
// the same state from every state.
func (p *Plan) scan(ctx context.Context, a *automaton, i int) (Transition, error) {
	t := identity()
	for _, c := range p.pieces(i) {
		if c.atEnd() {
			// The next file begins in stateRecord, whatever this file contains.
			t = Transition{}
			continue
		}
		if c.atStart() {
			t = Transition{}
		}
		step, err := c.transition(ctx, a)
		if err != nil {
			return t, err
		}
		t = t.then(step)
	}
	return t, nil
}

// scanChunk is the number of bytes read at a time when a range is scanned.
const scanChunk = 256 << 10

// transition reads the piece and returns the transition of its bytes.
func (c piece) transition(ctx context.Context, a *automaton) (t Transition, err error) {
	t = identity()
	h, err := c.part.open()
	if err != nil {
		return t, err
	}
	defer func() { err = also(err, h.close()) }()
	buf := make([]byte, min(scanChunk, c.to-c.from))
	for at := c.from; at < c.to; {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		b := buf[:min(int64(len(buf)), c.to-at)]
		if _, err := h.ReadAt(b, at); err != nil {
			return t, c.part.readError(err)
		}
		t = t.then(a.transition(b))
		at += int64(len(b))
	}
	return t, nil
}

// readError adds the name of the file to an error. If the file ends too early, it has changed
// since it was verified.
func (p *part) readError(err error) error {
	switch {
	case errors.Is(err, ErrChanged): // the error already names the file
		return err
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return fmt.Errorf("input %s %w: it ends before its %d bytes were read", p.path, ErrChanged, p.size)
	}
	return fmt.Errorf("cannot read input %s: %w", p.path, err)
}

// compose returns the index. It composes the transitions ts of all ranges in order.
func compose(ts []Transition) *Index {
	x := &Index{before: make([]state, len(ts))}
	s := stateRecord
	for i, t := range ts {
		x.before[i] = s
		s = state(t[s])
	}
	return x
}

// index scans every range, with the given number of workers, and composes the transitions.
// Without quoting every newline ends a record, so index reads nothing and returns nil.
func (p *Plan) index(ctx context.Context, a *automaton, workers int) (*Index, error) {
	if !a.quoting {
		return nil, nil
	}
	ts := make([]Transition, p.shards)
	g, scanning := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	for i := 0; i < p.shards && scanning.Err() == nil; i++ {
		g.Go(func() (err error) {
			ts[i], err = p.scan(scanning, a, i)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return compose(ts), nil
}
