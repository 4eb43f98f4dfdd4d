package task

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
)

// sinks are those of a plan, in node order, and how far each has come in this
// process. Worker 0 begins them, then commits or aborts; the others join those that
// several workers can write, and leave them when they are done.
type sinks struct {
	all    []boundSink
	joined bool // they are another worker's
}

// boundSink is a sink of the plan.
type boundSink struct {
	Sink
	node *plan.Node
	held bool // begun or joined, and neither committed, aborted nor left
	done bool // committed or resumed, and not settled
}

// newSinks finds what is bound to a plan.
func newSinks(p *plan.Plan, bind *Bindings) *sinks {
	s := &sinks{}
	for i := range p.Nodes {
		if sink := bind.Sinks[p.Nodes[i].ID]; sink != nil {
			s.all = append(s.all, boundSink{Sink: sink, node: &p.Nodes[i]})
		}
	}
	return s
}

// begin begins all sinks. Where one refuses, those before it are aborted.
func (s *sinks) begin() error {
	for i := range s.all {
		b := &s.all[i]
		if err := guard(b.Begin); err != nil {
			return also(b.error("begin", err), s.abort())
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
		sink, ok := b.Sink.(PartSink)
		if !ok {
			continue
		}
		if err := guard(sink.Join); err != nil {
			return also(b.error("begin", err), s.abort())
		}
		b.held = true
	}
	return nil
}

// written asks what this worker wrote.
func (s *sinks) written() ([]written, error) {
	var all []written
	for i := range s.all {
		b := &s.all[i]
		sink, ok := b.Sink.(PartSink)
		if !ok {
			continue
		}
		w := written{Node: b.node.ID}
		err := guard(func() (err error) { w.Data, err = sink.Written(); return err })
		if err != nil {
			return nil, b.error("tell what was written", err)
		}
		all = append(all, w)
	}
	return all, nil
}

// commit commits one sink after the other. Where one fails, it and those after it are
// aborted.
func (s *sinks) commit(outcomes []*outcome) error {
	for i := range s.all {
		b := &s.all[i]
		commit := b.Commit
		if sink, ok := b.Sink.(PartSink); ok && inParts(b.node.ID, outcomes) {
			commit = func() error { return sink.CommitParts(writtenTo(b.node.ID, outcomes)) }
			b.done = true // as far as it comes
		}
		if err := guard(commit); err != nil {
			return also(b.error("commit", err), s.abort())
		}
		b.held = false
	}
	return nil
}

// resume finishes the commit of one sink after the other, whose outcomes are those of
// a run in other processes. Where one cannot, those after it stay as they are, for
// whoever tries again.
func (s *sinks) resume(outcomes []*outcome) error {
	for i := range s.all {
		b := &s.all[i]
		sink, ok := b.Sink.(ResumeSink)
		if !ok {
			return b.error("finish the commit", errors.New("it cannot be told whether it committed before its process ended, and it cannot commit twice"))
		}
		var parts [][]byte
		if _, ok := b.Sink.(PartSink); ok {
			parts = writtenTo(b.node.ID, outcomes)
		}
		if err := guard(func() error { return sink.Resume(parts) }); err != nil {
			return b.error("finish the commit", err)
		}
		b.done = true
	}
	return nil
}

// settle tells the sinks that have committed that nobody will ask about it.
func (s *sinks) settle() error {
	var errs []error
	for i := range s.all {
		b := &s.all[i]
		sink, ok := b.Sink.(ResumeSink)
		if !ok || !b.done {
			continue
		}
		b.done = false
		if err := guard(sink.Settle); err != nil {
			errs = append(errs, b.error("settle", err))
		}
	}
	return errors.Join(errs...)
}

// inParts reports whether the workers said what they wrote to a sink, which those of a
// run in one part need not.
func inParts(node plan.NodeID, outcomes []*outcome) bool {
	return len(outcomes) > 1 || len(outcomes) == 1 && writtenTo(node, outcomes)[0] != nil
}

// writtenTo collects what all workers wrote to a sink, by worker.
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

// abort aborts what has begun, or leaves what was joined, and was not committed.
func (s *sinks) abort() error {
	var errs []error
	for i := range s.all {
		b := &s.all[i]
		if !b.held {
			continue
		}
		b.held = false
		if s.joined {
			if err := guard(b.Sink.(PartSink).Leave); err != nil {
				errs = append(errs, b.error("leave", err))
			}
		} else if err := guard(b.Abort); err != nil {
			errs = append(errs, b.error("remove what was written", err))
		}
	}
	return errors.Join(errs...)
}

// error says which sink failed at what.
func (b *boundSink) error(step string, err error) error {
	site := ""
	if b.node.Site != "" {
		site = " (" + b.node.Site + ")"
	}
	return fmt.Errorf("operator %s%s, %s: %w", operatorName(b.node), site, step, err)
}
