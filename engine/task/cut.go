package task

import (
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Cut is the state of a queue after a superstep, from which other subtasks can go on, as many
// as before or not. All subtasks of a queue are cut after the same superstep and its verdict,
// outside of inner loops, with no collective under way.
//
// It contains everything that the next gang gets except for rows. A process has the rows in the
// queue's session or reads them again. A cut is passed as bytes: nothing in it refers to memory
// of the gang that was cut.
type Cut struct {
	// Step is the superstep.
	Step int `msgpack:"step"`
	// Last says that no superstep follows: the criterion has stopped the queue, or it has
	// reached its maximum. The next gang then only finishes the queue.
	Last    bool `msgpack:"last"`
	Stopped bool `msgpack:"stopped"` // the criterion has stopped the queue

	// Parts are what the subtasks handed over, by subtask number.
	Parts []CutPart `msgpack:"parts"`

	// The report so far: the series, the superstep of each one's first value, and the time of
	// subtask 0.
	Series      []Series      `msgpack:"series"`
	First       []int         `msgpack:"first"`
	Steps       []StepReport  `msgpack:"steps"`
	Elapsed     time.Duration `msgpack:"elapsed"`
	Compute     time.Duration `msgpack:"compute"`
	Communicate time.Duration `msgpack:"communicate"`
}

// CutPart is what one subtask hands over.
type CutPart struct {
	// Objects are the objects that keys keep, as bytes of their codecs: those of each shard
	// that the subtask owns, for the shard's next owner, and from subtask 0 the replicated
	// ones.
	Objects []shared.Encoded `msgpack:"objects"`
	// Own is state that only the subtask of the same number can go on with, at the same
	// parallelism; nil for none.
	Own []byte `msgpack:"own"`
}

// Subtasks returns how many subtasks the queue had when it was cut.
func (c *Cut) Subtasks() int { return len(c.Parts) }

// cuts is the codec of Cut. It trusts no length that it reads.
var cuts = shared.Msgpack[*Cut]()

// Encode writes the cut for other processes. It preserves the bits of values.
func (c *Cut) Encode() ([]byte, error) {
	data, err := cuts.Append(nil, c)
	if err != nil {
		return nil, fmt.Errorf("encode the state of a queue after superstep %d: %w", c.Step, err)
	}
	return data, nil
}

// DecodeCut reads what Encode wrote. Objects are checked when they are restored.
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

// check refuses a Cut that no gang can have handed over.
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
