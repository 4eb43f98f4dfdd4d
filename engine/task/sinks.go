package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine/plan"
)

// sinks holds the sinks of a plan, in node order, with their state in this process. Worker 0
// begins the sinks, then commits or aborts them. The other workers join the JointSinks, and
// leave them at the end.
type sinks struct {
	all    []boundSink
	joined bool // worker 0 is another process
}

// boundSink is a sink of the plan.
type boundSink struct {
	Sink
	joint      JointSink // the same sink, if it is a JointSink
	node       *plan.Node
	held       bool // the sink has begun or was joined, and was not committed, aborted or left
	done       bool // the sink was committed and not settled
	visibility visibility
}

// visibility says whether the output of a sink is visible, as far as show knows.
type visibility int

const (
	sinkHidden visibility = iota
	sinkVisible
	sinkUncertain // a step that makes the output visible, or takes it back, failed
)

func bindSink(s Sink, node *plan.Node) boundSink {
	joint, _ := s.(JointSink)
	return boundSink{Sink: s, joint: joint, node: node}
}

// newSinks returns the sinks that are bound to a plan.
func newSinks(p *plan.Plan, bind *Bindings) *sinks {
	s := &sinks{}
	for i := range p.Nodes {
		if sink := bind.Sinks[p.Nodes[i].ID]; sink != nil {
			s.all = append(s.all, bindSink(sink, &p.Nodes[i]))
		}
	}
	return s
}

// begin begins all sinks. If one fails, the sinks before it are aborted.
func (s *sinks) begin() error {
	for i := range s.all {
		b := &s.all[i]
		if err := guard(b.Begin); err != nil {
			return joinError(b.error("begin", err), s.abort())
		}
		b.held = true
	}
	return nil
}

// join joins the sinks that worker 0 has begun.
func (s *sinks) join() error {
	s.joined = true
	for i := range s.all {
		b := &s.all[i]
		if b.joint == nil {
			continue
		}
		if err := guard(b.joint.Join); err != nil {
			return joinError(b.error("begin", err), s.abort())
		}
		b.held = true
	}
	return nil
}

// written returns the sinks' descriptions of what this worker wrote.
func (s *sinks) written() ([]written, error) {
	var all []written
	for i := range s.all {
		b := &s.all[i]
		if b.joint == nil {
			continue
		}
		w := written{Node: b.node.ID}
		err := guard(func() (err error) { w.Data, err = b.joint.Written(); return err })
		if err != nil {
			return nil, b.error("tell what was written", err)
		}
		all = append(all, w)
	}
	return all, nil
}

// commit makes the outputs of all sinks visible. If one fails, the outputs of all JointSinks are
// taken back, all sinks are aborted, and the error is a *CommitError. recorded says that the
// caller has recorded that the run commits.
func (s *sinks) commit(outcomes []*outcome, recorded bool) error {
	if err := s.show(outcomes, Completion{Recorded: recorded}); err != nil {
		failed := s.outputs()
		failed.Err = joinError(err, s.abort())
		return failed
	}
	return nil
}

// outputs returns a CommitError that says what is visible after a commit failed.
func (s *sinks) outputs() *CommitError {
	e := &CommitError{}
	for i := range s.all {
		switch b := &s.all[i]; b.visibility {
		case sinkVisible:
			e.Visible = append(e.Visible, b.title())
		case sinkUncertain:
			e.Unsure = append(e.Unsure, b.title())
		}
	}
	return e
}

// resume finishes the commit of a run of other processes, given their outcomes. If it fails, it
// takes back what became visible, and leaves the files that the next attempt needs.
func (s *sinks) resume(outcomes []*outcome) error {
	for i := range s.all {
		b := &s.all[i]
		if _, ok := b.Sink.(ResumeSink); !ok && b.joint == nil {
			return b.error("finish the commit", errors.New("it is not known whether it committed before its process ended, and it cannot commit twice"))
		}
	}
	err := s.show(outcomes, Completion{Recorded: true, Resumed: true})
	if err != nil {
		for i := range s.all {
			if b := &s.all[i]; b.joint != nil {
				err = joinError(err, guard(b.joint.Leave))
			}
		}
	}
	return err
}

// show takes all sinks through the steps of JointSink. Other sinks commit, one after the other,
// once the output of the JointSinks is visible. If anything fails, no output of the JointSinks
// is visible.
func (s *sinks) show(outcomes []*outcome, c Completion) error {
	step := "commit"
	if c.Resumed {
		step = "finish the commit"
	}
	touched, err := s.complete(outcomes, c, step)
	if err == nil {
		err = s.place(c, step)
	}
	if err != nil {
		for _, b := range touched {
			if back := guard(b.joint.TakeBack); back != nil {
				b.visibility = sinkUncertain
				err = joinError(err, b.error("take back what was made visible", back))
			}
		}
		return err
	}
	for _, b := range slices.Backward(touched) { // the sink whose Decide was called comes last
		b.held, b.done = false, true
		_ = guard(func() error { b.joint.Finish(); return nil })
	}
	return nil
}

// complete calls Complete on the JointSinks, and Decide on the first if it must be recorded that
// they become visible. It returns the sinks on which Complete was called.
func (s *sinks) complete(outcomes []*outcome, c Completion, step string) (touched []*boundSink, err error) {
	var set []string
	var first *boundSink
	for i := range s.all {
		b := &s.all[i]
		if c.Recorded || b.joint == nil {
			continue
		}
		if aside := b.joint.Aside(); aside != "" {
			set = append(set, aside)
			if first == nil {
				first = b
			}
		}
	}
	if len(set) > 1 {
		c.Set = set
	}
	for i := range s.all {
		b := &s.all[i]
		if b.joint == nil {
			continue
		}
		c.Written = nil
		if c.Resumed || inParts(b.node.ID, outcomes) {
			c.Written = writtenTo(b.node.ID, outcomes)
		}
		touched = append(touched, b)
		if err := guard(func() error { return b.joint.Complete(c) }); err != nil {
			return touched, b.error(step, err)
		}
	}
	if c.Set != nil {
		if err := guard(first.joint.Decide); err != nil {
			return touched, first.error(step, err)
		}
	}
	return touched, nil
}

// place makes the output of all sinks visible.
func (s *sinks) place(c Completion, step string) error {
	for i := range s.all {
		if b := &s.all[i]; b.joint != nil {
			if err := guard(b.joint.Place); err != nil {
				return b.error(step, err)
			}
		}
	}
	for i := range s.all {
		b := &s.all[i]
		if b.joint != nil {
			continue
		}
		commit := b.Commit
		if c.Resumed {
			commit = b.Sink.(ResumeSink).Resume
		}
		held, ok := b.Sink.(HeldSink)
		nothing := ok && held.Held()
		if err := guard(commit); err != nil {
			if !nothing {
				b.visibility = sinkUncertain
			}
			return b.error(step, err)
		}
		if b.held = false; !nothing {
			b.visibility = sinkVisible
		}
	}
	return nil
}

// settle calls Settle on the JointSinks that have committed, as nobody will resume the commit.
func (s *sinks) settle() error {
	var errs []error
	for i := range s.all {
		b := &s.all[i]
		if !b.done {
			continue
		}
		b.done = false
		if err := guard(b.joint.Settle); err != nil {
			errs = append(errs, b.error("settle", err))
		}
	}
	return errors.Join(errs...)
}

// inParts reports whether the outcomes describe what was written to a sink. In a run in one part
// they do not.
func inParts(node plan.NodeID, outcomes []*outcome) bool {
	return len(outcomes) > 1 || len(outcomes) == 1 && writtenTo(node, outcomes)[0] != nil
}

// writtenTo collects the descriptions of what all workers wrote to a sink, by worker.
func writtenTo(node plan.NodeID, outcomes []*outcome) [][]byte {
	all := make([][]byte, len(outcomes))
	for worker, o := range outcomes {
		for _, w := range o.Written {
			if w.Node == node {
				all[worker] = w.Data
			}
		}
	}
	return all
}

// abort aborts the sinks that have begun, or leaves the sinks that were joined, except sinks
// that have committed.
func (s *sinks) abort() error {
	var errs []error
	for i := range slices.Backward(s.all) { // the sink whose Decide was called comes last
		b := &s.all[i]
		if !b.held {
			continue
		}
		b.held = false
		if s.joined {
			if err := guard(b.joint.Leave); err != nil {
				errs = append(errs, b.error("leave", err))
			}
		} else if err := guard(b.Abort); err != nil {
			errs = append(errs, b.error("remove what was written", err))
		}
	}
	return errors.Join(errs...)
}

// error returns an error that names the sink and the step that failed.
func (b *boundSink) error(step string, err error) error {
	return fmt.Errorf("operator %s, %s: %w", b.title(), step, err)
}

// title returns the name of a sink with its source line.
func (b *boundSink) title() string {
	if b.node.Site == "" {
		return b.node.Title()
	}
	return b.node.Title() + " (" + b.node.Site + ")"
}
