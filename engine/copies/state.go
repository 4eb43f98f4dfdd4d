package copies

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Bounds of states.
const (
	MaxPieces    = 1 + sharding.MaxShards // pieces of a state: the head, and one of each subtask
	MaxPiece     = math.MaxInt32          // bytes of a piece
	maxQueue     = math.MaxUint16         // bytes of the name of a queue
	maxSuperstep = math.MaxInt32
)

// State identifies the state of a queue after a superstep, in a number of pieces. Pieces with the
// same number of the same state are interchangeable, whichever attempt of the job has made them.
type State struct {
	Queue     string
	Superstep int  // last superstep that was done; supersteps count from 1
	Ended     bool // no superstep follows
	Of        int  // number of pieces
}

// String returns a text such as `queue "means" after superstep 5`.
func (s State) String() string {
	return fmt.Sprintf("queue %q after superstep %d", s.Queue, s.Superstep)
}

// compare compares the ages of two states of a queue. It is positive if s is newer than t. A state
// after which no superstep follows is newer than any other.
func (s State) compare(t State) int {
	if s.Ended != t.Ended {
		if s.Ended {
			return 1
		}
		return -1
	}
	return cmp.Compare(s.Superstep, t.Superstep)
}

// check returns an error unless s is the state of a queue.
func (s State) check() error {
	switch {
	case len(s.Queue) > maxQueue:
		return fmt.Errorf("the name of a queue has %d bytes, more than %d", len(s.Queue), maxQueue)
	case s.Superstep < 1 || s.Superstep > maxSuperstep:
		return fmt.Errorf("there is no superstep %d of queue %q", s.Superstep, s.Queue)
	case s.Of < 1 || s.Of > MaxPieces:
		return fmt.Errorf("%s: a state of %d pieces, where there are 1 to %d", s, s.Of, MaxPieces)
	}
	return nil
}

// checkPiece returns an error unless s is the state of a queue and has a piece with the given number
// and size in bytes.
func (s State) checkPiece(number, size int) error {
	if err := s.check(); err != nil {
		return err
	}
	switch {
	case number < 0 || number >= s.Of:
		return fmt.Errorf("%s: there is no piece %d of %d", s, number, s.Of)
	case size > MaxPiece:
		return fmt.Errorf("%s: piece %d has %d bytes, more than %d: only durable checkpoints can keep it", s, number, size, MaxPiece)
	}
	return nil
}

// Held says which pieces of a state a process holds, in ascending order of their numbers.
type Held struct {
	State
	Pieces []int
}

const flagEnded = 1

// AppendHeld appends the encoding of held to b. Numbers are unsigned varints: the number of
// elements, and of each the queue with its length, the superstep, 1 if the queue has ended or 0, the
// number of all pieces, the number of the held ones, and for each held piece how many pieces between
// it and the one before are not held.
func AppendHeld(b []byte, held []Held) []byte {
	put := func(v int) { b = binary.AppendUvarint(b, uint64(v)) }
	put(len(held))
	for _, h := range held {
		put(len(h.Queue))
		b = append(b, h.Queue...)
		put(h.Superstep)
		ended := 0
		if h.Ended {
			ended = flagEnded
		}
		put(ended)
		put(h.Of)
		put(len(h.Pieces))
		next := 0
		for _, number := range h.Pieces {
			put(number - next)
			next = number + 1
		}
	}
	return b
}

// DecodeHeld decodes the encoding of AppendHeld, which must be all of b. It takes memory in
// proportion to the length of b.
func DecodeHeld(b []byte) ([]Held, error) {
	d := decoder{rest: b}
	const least = 5 // bytes of an element
	held := make([]Held, 0, d.number(len(b)/least))
	for range cap(held) {
		held = append(held, d.held())
		if d.err != nil {
			break
		}
	}
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%d bytes too many", len(d.rest))
	}
	if d.err != nil {
		return nil, fmt.Errorf("decode which states a process holds: %w", d.err)
	}
	return held, nil
}

// decoder reads numbers and texts. After an error, it returns zeros.
type decoder struct {
	rest []byte
	err  error
}

// number reads a number that is at most most.
func (d *decoder) number(most int) int {
	v, n := binary.Uvarint(d.rest)
	switch {
	case d.err != nil:
		return 0
	case n <= 0:
		d.err = errors.New("it ends in the middle of a number")
		return 0
	case v > uint64(most):
		d.err = fmt.Errorf("the number %d, where at most %d is possible", v, most)
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

// text reads a text and its length.
func (d *decoder) text(most int) string {
	n := d.number(most)
	if n > len(d.rest) {
		d.err = fmt.Errorf("it ends in the middle of a text of %d bytes", n)
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// held reads one element.
func (d *decoder) held() (h Held) {
	h.Queue = d.text(maxQueue)
	h.Superstep = d.number(maxSuperstep)
	h.Ended = d.number(flagEnded) == flagEnded
	h.Of = d.number(MaxPieces)
	n := d.number(min(h.Of, len(d.rest)))
	h.Pieces = make([]int, 0, n)
	for next := 0; len(h.Pieces) < n && d.err == nil; next++ {
		next += d.number(max(0, h.Of-1-next))
		h.Pieces = append(h.Pieces, next)
	}
	if d.err == nil {
		d.err = h.check()
	}
	if d.err == nil && n > 0 {
		d.err = h.checkPiece(h.Pieces[n-1], 0)
	}
	return h
}
