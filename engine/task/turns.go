package task

import (
	"context"
	"sync"

	"github.com/superstep-ml/superstep/engine/plan"
)

// Turns makes the subtasks of a run take turns. Subtasks of a vertex work one after the other.
// Subtasks of a queue work one after the other before each superstep, within each stage that
// computes, and when they emit. If functions share variables, the effects then depend on the
// order of subtasks and not on timing. Workers of one process that run a plan together share
// one Turns.
//
// Turns cannot deadlock: rows are stored until they are read, and members of a queue call no
// collectives within a turn, so a subtask in its turn never waits for a later subtask.
type Turns struct {
	descending bool // from the last subtask to the first

	mu      sync.Mutex
	taken   map[place]int
	changed chan struct{} // closed and replaced when a turn ends
}

// place identifies a subtask. A subtask of a queue is identified by the queue's first vertex.
type place struct {
	vertex     plan.VertexID
	generation int // of the queue's gang
	subtask    int
}

// NewTurns returns turns in ascending or descending order of subtasks.
func NewTurns(descending bool) *Turns {
	return &Turns{descending: descending, taken: make(map[place]int), changed: make(chan struct{})}
}

// turn runs body in the subtask's turn, or at once if Env.Turns is nil. If body fails, the turn
// does not end, and the other subtasks wait until the run has ended.
func (t *subtask) turn(body func() error) error {
	turns := t.run.env.Turns
	if turns == nil {
		return body()
	}
	own := place{t.vertex.ID, t.generation, t.index}
	if err := turns.begin(t.context, own, t.vertex.Parallelism); err != nil {
		return err
	}
	if err := body(); err != nil {
		return err
	}
	turns.end(own)
	return nil
}

// begin waits until the previous subtask has taken one turn more than this one.
func (t *Turns) begin(ctx context.Context, own place, subtasks int) error {
	before := own
	before.subtask--
	if t.descending {
		before.subtask = own.subtask + 1
	}
	if before.subtask < 0 || before.subtask >= subtasks {
		return nil
	}
	for {
		t.mu.Lock()
		entered := t.taken[before] > t.taken[own]
		changed := t.changed
		t.mu.Unlock()
		if entered {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errStopped
		}
	}
}

// end ends the subtask's turn, so that the next subtask can begin.
func (t *Turns) end(own place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[own]++
	close(t.changed)
	t.changed = make(chan struct{})
}
