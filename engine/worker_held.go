package engine

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared"
)

// heldOfWorker is what a worker process has kept of earlier attempts. It is in wire.Ready.
type heldOfWorker struct {
	Rows []byte `msgpack:"rows"` // what task.Retained.Held returned
}

// heldCodec is the codec of heldOfWorker. It checks every length that it reads.
var heldCodec = shared.Msgpack[heldOfWorker]()

// held returns what the process has kept, encoded, or nil if that is nothing.
func (p *workerProcess) held() ([]byte, error) {
	rows, err := p.retained.Held()
	if err != nil || rows == nil {
		return nil, err
	}
	return heldCodec.Append(nil, heldOfWorker{Rows: rows})
}

// continueRun tells the part of the plan what the workers have kept of earlier attempts, if they have
// kept anything.
func (j *workerJob) continueRun(held [][]byte) error {
	if len(held) == 0 {
		return nil
	}
	rows := make([][]byte, len(held))
	for i, data := range held {
		if len(data) == 0 {
			continue
		}
		h, err := heldCodec.Decode(data)
		if err != nil {
			return clusterFault(fmt.Errorf("what worker %d has kept of earlier attempts: %w", i, err))
		}
		rows[i] = h.Rows
	}
	if err := j.part.Continue(rows); err != nil {
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
