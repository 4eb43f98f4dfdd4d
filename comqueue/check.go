package comqueue

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// checks find two mistakes of user functions: rows that were modified although other subtasks,
// queues or operators share them, and replicated objects that differ among subtasks. The checks
// are made after the verdict of each superstep, if the job enables them.
type checks struct {
	broadcast map[string]bool // names of the broadcast inputs
	watched   [][]watched     // partitioned rows of each subtask

	// replicas are the fingerprints of the replicated objects at the beginning of a superstep,
	// by subtask and by parity of the superstep. No lock is needed: subtask 0 reads the
	// fingerprints of a parity after the verdict of the superstep, and no subtask writes that
	// parity again before subtask 0 arrives at the next verdict.
	replicas [][2][]shared.Fingerprint
	traces   *traces // nil if not requested
}

// watched is a frame that no function may modify.
type watched struct {
	name        string
	frame       *Frame
	fingerprint uint64
}

func newChecks(q *IterativeComQueue, subtasks int) *checks {
	c := &checks{
		broadcast: map[string]bool{},
		watched:   make([][]watched, subtasks),
		replicas:  make([][2][]shared.Fingerprint, subtasks),
	}
	for _, in := range q.inputs {
		if in.broadcast != nil {
			c.broadcast[in.name()] = true
		}
	}
	return c
}

// watch adds a frame of a subtask to the frames that are checked for modifications.
func (c *checks) watch(subtask int, name string, frame *Frame) error {
	fingerprint, err := frame.fingerprint()
	if err != nil {
		return err
	}
	c.watched[subtask] = append(c.watched[subtask], watched{name, frame, fingerprint})
	return nil
}

// begin takes the fingerprints of a subtask's replicated objects, on the subtask's goroutine.
// It leaves broadcast rows out, as the process has only one copy and checkBroadcasts finds its
// modifications.
func (c *checks) begin(subtask, step int, objects *shared.Objects) error {
	half := &c.replicas[subtask][step&1]
	prints, err := objects.Fingerprints((*half)[:0], c.isBroadcast)
	*half = prints
	return err
}

func (c *checks) isBroadcast(name string) bool { return c.broadcast[name] }

// check returns an error if shared rows were modified in a superstep, or if the subtasks did
// not hold the same replicated objects when the superstep began. All subtasks call it. The
// first subtask of each process checks the rows while the other subtasks wait, so that no
// function runs meanwhile.
func (b *body) check(step int) error {
	ctx := b.context.Context()
	if b.acrossProcesses() { // in one process all subtasks have waited for the verdict
		if err := b.comm.Barrier(ctx); err != nil {
			return err
		}
	}
	if b.subtask == b.here.Lo {
		err := b.checkRowsOfAll(step)
		if err == nil && !b.acrossProcesses() {
			err = b.checks.checkReplicas(step)
		}
		if err != nil {
			return fmt.Errorf("queue %q: %w", b.queue.name, err)
		}
	}
	if err := b.comm.Barrier(ctx); err != nil || !b.acrossProcesses() {
		return err
	}
	return b.compareReplicas(step)
}

// checkRowsOfAll calls checkRows and, if that fails, reports files that the disk has damaged or
// cannot read. A file whose rows a function has modified looks damaged too; a modifiedError is
// therefore returned without a look at the files.
func (b *body) checkRowsOfAll(step int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // so that a fault in a file of another subtask is a panic
	var found modifiedError
	failed := b.guard(func() error {
		if err = b.checkRows(step); errors.As(err, &found) {
			return nil
		}
		return err
	})
	if failed != nil {
		return failed
	}
	return err
}

// modifiedError says that a function has modified shared rows.
type modifiedError string

// Error implements error.
func (e modifiedError) Error() string { return string(e) }

func modified(format string, args ...any) error { return modifiedError(fmt.Sprintf(format, args...)) }

// checkRows returns an error if rows were modified. Other subtasks, queues and operators may
// share them.
func (g *gang) checkRows(step int) error {
	when := fmt.Sprintf("in superstep %d", step)
	if err := g.checkBroadcasts(when); err != nil {
		return err
	}
	for _, frames := range g.checks.watched {
		if err := checkFrames(frames, when); err != nil {
			return err
		}
	}
	return nil
}

// checkClosed returns an error if the close function modified rows, on one subtask.
func (b *body) checkClosed() error {
	const when = "when the queue closed"
	if err := b.checkBroadcasts(when); err != nil {
		return err
	}
	return checkFrames(b.checks.watched[b.subtask], when)
}

func (g *gang) checkBroadcasts(when string) error {
	for i, in := range g.queue.inputs {
		if in.broadcast == nil {
			continue
		}
		b := &g.broadcasts[i]
		switch print, err := b.frame.fingerprint(); {
		case err != nil:
			return fmt.Errorf("broadcast data %q %s: %w", in.name(), when, err)
		case print != b.fingerprint:
			return modified("the broadcast object %q was modified %s; it is shared by all subtasks of the process: copy it before changing it", in.name(), when)
		}
	}
	return nil
}

func checkFrames(frames []watched, when string) error {
	for _, w := range frames {
		switch print, err := w.frame.fingerprint(); {
		case err != nil:
			return fmt.Errorf("partitioned data %q %s: %w", w.name, when, err)
		case print != w.fingerprint && w.frame.OnDisk():
			return modified("rows of %q were modified %s, or the disk that they are on has lost some; other operators may share them: copy them before changing them", w.name, when)
		case print != w.fingerprint:
			return modified("rows of %q were modified %s; other operators may share them: copy them before changing them", w.name, when)
		}
	}
	return nil
}

// checkReplicas returns an error if the replicated objects of a subtask differed from those of
// subtask 0 when the superstep began.
func (c *checks) checkReplicas(step int) error {
	held := make([][]shared.Fingerprint, len(c.replicas))
	for subtask := range held {
		held[subtask] = c.replicas[subtask][step&1]
	}
	e := replicasDiffer(held, step)
	if e == nil {
		return nil
	}
	if c.traces != nil {
		e.Stage = c.traces.firstDifference(c.traces.hashes(0, step-1, e.Key), c.traces.hashes(e.Subtask, step-1, e.Key))
	}
	return e
}

// replicasDiffer returns an error that names the lowest subtask that differs from subtask 0,
// and the first object that differs there. It returns nil if no subtask differs.
func replicasDiffer(held [][]shared.Fingerprint, step int) *engine.ReplicaError {
	for subtask := 1; subtask < len(held); subtask++ {
		if d, ok := firstDifference(held[0], held[subtask]); ok {
			return &engine.ReplicaError{Key: d.name, Subtask: subtask, Superstep: step, What: d.describe(subtask)}
		}
	}
	return nil
}

// compareReplicas does the same as checkReplicas, for subtasks in several processes. All
// subtasks call it. It returns the error on the lowest subtask that differs from subtask 0.
func (b *body) compareReplicas(step int) error {
	e, err := b.replicasDiffer(replicas{Subtask: b.subtask, Held: b.checks.replicas[b.subtask][step&1]}, step)
	if e == nil {
		return err
	}
	if b.checks.traces != nil {
		if e.Stage, err = b.compareTraces(step-1, e.Subtask, e.Key); err != nil {
			return err
		}
	}
	if e.Subtask == b.subtask {
		return fmt.Errorf("queue %q: %w", b.queue.name, e)
	}
	return nil
}

// replicasDiffer is like the function of that name, for subtasks in several processes. held has the
// fingerprints of this subtask. All subtasks call it, and get the same result. If a subtask has no
// fingerprints, nothing is compared.
func (b *body) replicasDiffer(held replicas, step int) (*engine.ReplicaError, error) {
	mine := []replicas{held}
	all, _, err := collective.AllReduceObject(b.comm, &collective.ObjectReduction[[]replicas]{
		Name: "replicated objects", Codec: shared.Msgpack[[]replicas](), Value: &mine, Context: b.context.Context(),
		Merge: func(left, right []replicas) []replicas { return append(left, right...) },
	})
	if err != nil {
		return nil, err
	}
	everywhere := make([][]shared.Fingerprint, b.subtasks)
	for _, r := range all {
		if r.Subtask < 0 || r.Subtask >= len(everywhere) {
			return nil, fmt.Errorf("queue %q: fingerprints of subtask %d, of %d", b.queue.name, r.Subtask, len(everywhere))
		}
		if r.None {
			return nil, nil
		}
		everywhere[r.Subtask] = r.Held
	}
	return replicasDiffer(everywhere, step), nil
}

// replicas are the fingerprints of the objects of one subtask.
type replicas struct {
	Subtask int
	Held    []shared.Fingerprint
	None    bool // a codec has failed, so that there are no fingerprints
}

// difference is a replicated object that is not the same on two subtasks.
type difference struct {
	name              string
	absent, absentOn0 bool // the object is absent from the subtask, or from subtask 0
}

// describe returns how the subtask differs from subtask 0.
func (d difference) describe(subtask int) string {
	switch {
	case d.absent:
		return fmt.Sprintf("the replicated object %q is on subtask 0 but not on subtask %d", d.name, subtask)
	case d.absentOn0:
		return fmt.Sprintf("the replicated object %q is on subtask %d but not on subtask 0", d.name, subtask)
	}
	return fmt.Sprintf("the replicated object %q differs between subtask 0 and subtask %d", d.name, subtask)
}

// firstDifference returns the first difference between two lists that are sorted by name. It
// returns false if there is none.
func firstDifference(first, other []shared.Fingerprint) (difference, bool) {
	for i := range max(len(first), len(other)) {
		switch {
		case i == len(other) || (i < len(first) && first[i].Name < other[i].Name):
			return difference{name: first[i].Name, absent: true}, true
		case i == len(first) || other[i].Name < first[i].Name:
			return difference{name: other[i].Name, absentOn0: true}, true
		case first[i].Hash != other[i].Hash:
			return difference{name: first[i].Name}, true
		}
	}
	return difference{}, false
}
