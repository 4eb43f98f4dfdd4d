package task

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Cut is the state of a queue after a superstep. From it another gang of subtasks can continue
// the queue, at the same or another parallelism. All subtasks of a queue are cut after the same
// superstep, when its verdict is known. No inner loop and no collective is then under way.
//
// A Cut contains everything that the next gang gets except for rows. The rows are in the
// queue's session in the process, or are read again. A Cut is passed as bytes, so nothing in it
// refers to memory of the gang that was cut.
type Cut struct {
	// Step is the last superstep that was done.
	Step int `msgpack:"step"`
	// Last says that no superstep follows: the criterion has stopped the queue, or the queue has
	// reached its maximum. The next gang then only finishes the queue.
	Last    bool `msgpack:"last"`
	Stopped bool `msgpack:"stopped"` // the criterion has stopped the queue

	// Parts[i] is what subtask i handed over.
	Parts []CutPart `msgpack:"parts"`

	// The report so far: the series, the superstep of the first value of each series, and the
	// costs and times of subtask 0.
	Series      []Series      `msgpack:"series"`
	First       []int         `msgpack:"first"`
	Steps       []StepReport  `msgpack:"steps"`
	Elapsed     time.Duration `msgpack:"elapsed"`
	Compute     time.Duration `msgpack:"compute"`
	Communicate time.Duration `msgpack:"communicate"`
}

// CutPart is what one subtask hands over.
type CutPart struct {
	// Objects are the session objects that are kept across a cut, encoded by their codecs. They
	// are the objects of the shards that the subtask owns, for the next owner of each shard. On
	// subtask 0 they include the replicated objects.
	Objects []shared.Encoded `msgpack:"objects"`
	// Own is state that only the subtask with the same number can use, and only at the same
	// parallelism. It is nil if there is none.
	Own []byte `msgpack:"own"`
}

// Subtasks returns how many subtasks the queue had when it was cut.
func (c *Cut) Subtasks() int { return len(c.Parts) }

// cuts is the codec of Cut. It checks every length that it reads.
var cuts = shared.Msgpack[*Cut]()

// Encode returns the cut as bytes for other processes. Floating-point values keep their bits.
func (c *Cut) Encode() ([]byte, error) {
	data, err := cuts.Append(nil, c)
	if err != nil {
		return nil, fmt.Errorf("encode the state of a queue after superstep %d: %w", c.Step, err)
	}
	return data, nil
}

// DecodeCut decodes what Encode returned. It does not check the objects, which are checked when
// they are restored.
func DecodeCut(data []byte) (*Cut, error) {
	c, err := cuts.Decode(data)
	if err == nil && c == nil {
		err = errors.New("there is nothing")
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("decode the state of a queue: %w", err)
	}
	return c, nil
}

// cutParts is the codec of CutPart.
var cutParts = shared.Msgpack[*CutPart]()

// Pieces yields the cut as bytes for other processes, in pieces that can be stored apart: first
// everything but the parts, then each part. A piece is valid until the next is yielded.
func (c *Cut) Pieces() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		head := *c
		head.Parts = nil
		piece, err := cuts.Append(nil, &head)
		for i := 0; err == nil && yield(piece, nil) && i < len(c.Parts); i++ {
			piece, err = cutParts.Append(piece[:0], &c.Parts[i])
		}
		if err != nil {
			yield(nil, fmt.Errorf("encode the state of a queue after superstep %d: %w", c.Step, err))
		}
	}
}

// CutOfPieces decodes what Pieces yielded. It checks the same as DecodeCut. Pieces that are nil,
// except for the first, become empty parts.
func CutOfPieces(pieces [][]byte) (*Cut, error) {
	if len(pieces) == 0 {
		return nil, errors.New("decode the state of a queue: there is nothing")
	}
	c, err := cuts.Decode(pieces[0])
	if err == nil && c == nil {
		err = errors.New("there is nothing")
	}
	for i := 1; i < len(pieces) && err == nil; i++ {
		part := &CutPart{}
		if pieces[i] == nil {
			c.Parts = append(c.Parts, *part)
			continue
		}
		if part, err = cutParts.Decode(pieces[i]); err == nil && part == nil {
			err = fmt.Errorf("part %d is nothing", i-1)
		}
		if err == nil {
			c.Parts = append(c.Parts, *part)
		}
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("decode the state of a queue: %w", err)
	}
	return c, nil
}

// check returns an error if no gang can have handed over such a Cut.
func (c *Cut) check() error {
	switch {
	case c.Step < 1:
		return fmt.Errorf("superstep %d", c.Step)
	case len(c.Parts) < 1 || len(c.Parts) > sharding.MaxShards:
		return fmt.Errorf("%d subtasks", len(c.Parts))
	case c.Stopped && !c.Last:
		return fmt.Errorf("superstep %d was stopped, and others follow", c.Step)
	case len(c.First) != len(c.Series):
		return fmt.Errorf("%d series, of which %d have begun", len(c.Series), len(c.First))
	case len(c.Steps) > c.Step:
		return fmt.Errorf("%d supersteps were timed, of %d", len(c.Steps), c.Step)
	}
	for i, s := range c.Series {
		if len(s.Values) > c.Step || c.First[i] < 1 || c.First[i] > len(s.Values) {
			return fmt.Errorf("%d values of %q from superstep %d on, after %d", len(s.Values), s.Name, c.First[i], c.Step)
		}
	}
	return nil
}
