package comqueue

import "github.com/superstep-ml/superstep/engine"

// LoopsOf returns the loops that Exec binds to a queue, for tests that run a plan without the
// engine.
func LoopsOf(q *IterativeComQueue, nodes []engine.NodeID) (engine.OpenLoops, error) {
	l, err := newLayout(q.stages)
	if err != nil {
		return nil, err
	}
	return openGang(q, l, nodes, nil), nil
}
