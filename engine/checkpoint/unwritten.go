package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A process whose write of a part has failed tries again later. Meanwhile the process that has the Journal
// waits for the part, and cannot learn of the failure from the store, which may be the one that fails. So
// the failure is told by PartFailed.

// unwrittenParts are the failures that no Write of the Journal has returned yet. The zero value is ready
// for use.
type unwrittenParts struct {
	mu        sync.Mutex
	byProcess map[int]unwrittenPart // the last failure of each process
}

// unwrittenPart is the failure of one process to write its part of states.
type unwrittenPart struct {
	states []State
	why    string
}

// partError is the error of a process that could not write its part.
type partError struct {
	process int
	why     string
}

func (e *partError) Error() string { return fmt.Sprintf("worker %d: %s", e.process, e.why) }

// PartFailed says that another process could not write its part of one of the given states, of which only
// Queue and Superstep are used. A Write that waits for that part fails, or else the next one that does.
// PartFailed may be called from any goroutine.
func (j *Journal) PartFailed(process int, states []State, why string) {
	u := &j.unwritten
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byProcess == nil {
		u.byProcess = make(map[int]unwrittenPart)
	}
	u.byProcess[process] = unwrittenPart{slices.Clone(states), why}
}

// take returns an error if a process could not write its part of a state, or nil. What is known of the
// state is forgotten, so that a further call waits for what the processes write when they try again.
func (u *unwrittenParts) take(s State) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var first error
	for _, process := range slices.Sorted(maps.Keys(u.byProcess)) {
		part := u.byProcess[process]
		same := func(o State) bool { return o.Queue == s.Queue && o.Superstep == s.Superstep }
		if !slices.ContainsFunc(part.states, same) {
			continue
		}
		delete(u.byProcess, process)
		if first == nil {
			first = &partError{process, part.why}
		}
	}
	return first
}
