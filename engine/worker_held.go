package engine

import (
	"strings"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/internal/wire"
)

// held returns what the process has kept, encoded, or nil if that is nothing.
func (p *workerProcess) held() ([]byte, error) {
	copied := p.copies.Held()
	for _, h := range copied {
		if queue, ok := strings.CutPrefix(h.Queue, origin.ReportPrefix); ok {
			if err := p.retained.AddReport(queue, p.copies.Piece(h.State, 0)); err != nil {
				return nil, err
			}
		}
	}
	rows, err := p.retained.Held(wire.MaxHeld / 2) // the other half is for the states
	if err != nil {
		return nil, err
	}
	held := origin.Held{Rows: rows}
	if len(copied) > 0 {
		held.Copies = copies.AppendHeld(nil, copied)
	}
	if read := p.copies.Read(); len(read) > 0 {
		held.Read = copies.AppendHeld(nil, read)
	}
	return origin.Encode(held)
}

// continueRun tells the part of the plan what the workers have kept of earlier attempts, if they have
// kept anything. from says from which states queues continue.
func (j *workerJob) continueRun(held [][]byte, from *wire.Origin) error {
	if len(held) == 0 {
		return nil
	}
	rows := make([][]byte, len(held))
	for i, data := range held {
		h, err := origin.Decode(i, data)
		if err != nil {
			return clusterFault(err)
		}
		rows[i] = h.Rows
	}
	var ended []string
	if from != nil {
		for _, q := range from.Queues {
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
	j.copies.readFiles()
	held, err := j.worker.held()
	if err != nil {
		return nil, clusterFault(err)
	}
	return &wire.Ready{Address: j.plane.Address(), Fingerprint: j.builder.graph.Fingerprint(), Overlaps: j.builder.overlaps(), Held: held}, nil
}
