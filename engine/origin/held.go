// Package origin decides from which states the queues of an attempt continue. Every worker says what its
// process holds of earlier attempts. Worker 0 chooses, and the others find what it has chosen.
//
//	said, err := origin.Encode(origin.Held{…})               // in each worker, for wire.Ready
//	choices, err := origin.Choices(held)                     // in each worker, from what all have said
//	from := origin.Choose(choices, known, durable)           // in worker 0, for wire.Prepared
//	mine, err := origin.Chosen(choices, from)                // in each worker, from wire.Start
package origin

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared"
)

// Held is what a worker process has kept of earlier attempts. It is in wire.Ready.
type Held struct {
	Rows   []byte `msgpack:"rows"`   // what task.Retained.Held returned
	Copies []byte `msgpack:"copies"` // of copies.Store.Held
	// Read has those of Copies that were read from files, of copies.Store.Read.
	Read []byte `msgpack:"read,omitempty"`
}

// heldCodec is the codec of Held. It checks every length that it reads.
var heldCodec = shared.Msgpack[Held]()

// Encode encodes what a process has kept. It returns nil if that is nothing. It leaves out rows, and then
// states, that would take more than the message may have: they are made again, and a longer message
// would fail the job.
func Encode(held Held) ([]byte, error) {
	for _, h := range []Held{held, {Copies: held.Copies, Read: held.Read}, {Rows: held.Rows}} {
		if h.Rows == nil && h.Copies == nil {
			continue
		}
		data, err := heldCodec.Append(nil, h)
		if err != nil || len(data) <= wire.MaxHeld {
			return data, err
		}
	}
	return nil, nil
}

// Decode decodes what worker i has kept.
func Decode(i int, data []byte) (h Held, err error) {
	if len(data) == 0 {
		return h, nil
	}
	if h, err = heldCodec.Decode(data); err != nil {
		return h, fmt.Errorf("what worker %d has kept of earlier attempts: %w", i, err)
	}
	return h, nil
}

// Choices returns what copies.Choose chooses of what the workers hold. held[i] is what worker i has said.
func Choices(held [][]byte) ([]copies.Choice, error) {
	all := make([][]copies.Held, len(held))
	for i, data := range held {
		h, err := Decode(i, data)
		if err == nil && len(h.Copies) > 0 {
			all[i], err = copies.DecodeHeld(h.Copies)
		}
		if err != nil {
			return nil, err
		}
	}
	return copies.Choose(all), nil
}

// FromFiles notes in an origin, which Choose has returned, which states a worker has read from a file.
func FromFiles(held [][]byte, from *wire.Origin) error {
	for i, data := range held {
		h, err := Decode(i, data)
		if err != nil {
			return err
		}
		if from == nil || len(h.Read) == 0 {
			continue
		}
		read, err := copies.DecodeHeld(h.Read)
		if err != nil {
			return fmt.Errorf("what worker %d has read from files: %w", i, err)
		}
		for k := range from.Queues {
			q := &from.Queues[k]
			q.FromFile = q.FromFile || q.InMemory && slices.ContainsFunc(read, func(h copies.Held) bool {
				return h.Queue == q.Name && h.Superstep == q.Superstep && h.Ended == q.Ended
			})
		}
	}
	return nil
}
