package comqueue

import "github.com/superstep-ml/superstep/engine"

// LoopOf is what Exec binds to a queue, for tests that run a plan by themselves.
func LoopOf(q *IterativeComQueue, nodes []engine.NodeID) (engine.Loop, error) {
	l, err := newLayout(q.stages)
	if err != nil {
		return engine.Loop{}, err
	}
	open := func(subtasks int) (engine.Gang, error) { return newGang(q, l, nodes, nil, subtasks) }
	return engine.Loop{MaxSupersteps: q.max, Open: open}, nil
}
