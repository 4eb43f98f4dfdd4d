package engine

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared"
)

// heldOfWorker is what a worker process has kept of earlier attempts. It is in wire.Ready.
type heldOfWorker struct {
	Rows   []byte `msgpack:"rows"`   // what task.Retained.Held returned
	Copies []byte `msgpack:"copies"` // of copies.Store.Held
}

// heldCodec is the codec of heldOfWorker. It checks every length that it reads.
var heldCodec = shared.Msgpack[heldOfWorker]()

// held returns what the process has kept, encoded, or nil if that is nothing.
func (p *workerProcess) held() ([]byte, error) {
	copied := p.copies.Held()
	for _, h := range copied {
		if queue, ok := strings.CutPrefix(h.Queue, reportPrefix); ok {
			if err := p.retained.AddReport(queue, p.copies.Piece(h.State, 0)); err != nil {
				return nil, err
			}
		}
	}
	rows, err := p.retained.Held()
	if err != nil {
		return nil, err
	}
	var states []byte
	if len(copied) > 0 {
		states = copies.AppendHeld(nil, copied)
	}
	return encodeHeld(rows, states)
}

// encodeHeld encodes what a process has kept. It leaves out rows, and then states, that would take more
// than the message may have: they are made again, and a longer message would fail the job.
func encodeHeld(rows, states []byte) ([]byte, error) {
	for _, h := range []heldOfWorker{{rows, states}, {nil, states}, {rows, nil}} {
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

// decodeHeld decodes what worker i has kept.
func decodeHeld(i int, data []byte) (h heldOfWorker, err error) {
	if len(data) == 0 {
		return h, nil
	}
	if h, err = heldCodec.Decode(data); err != nil {
		return h, fmt.Errorf("what worker %d has kept of earlier attempts: %w", i, err)
	}
	return h, nil
}

// continueRun tells the part of the plan what the workers have kept of earlier attempts, if they have
// kept anything. origin says from which states queues continue.
func (j *workerJob) continueRun(held [][]byte, origin *wire.Origin) error {
	if len(held) == 0 {
		return nil
	}
	rows := make([][]byte, len(held))
	for i, data := range held {
		h, err := decodeHeld(i, data)
		if err != nil {
			return clusterFault(err)
		}
		rows[i] = h.Rows
	}
	var ended []string
	if origin != nil {
		for _, q := range origin.Queues {
			if q.Ended {
				ended = append(ended, q.Name)
			}
		}
	}
	if err := j.part.Continue(rows, ended); err != nil {
		return clusterFault(err)
	}
	return nil
}

// readiness returns the message that the worker is ready.
func (j *workerJob) readiness() (*wire.Ready, error) {
	held, err := j.worker.held()
	if err != nil {
		return nil, clusterFault(err)
	}
	return &wire.Ready{Address: j.plane.Address(), Fingerprint: j.builder.graph.Fingerprint(), Overlaps: j.builder.overlaps(), Held: held}, nil
}
