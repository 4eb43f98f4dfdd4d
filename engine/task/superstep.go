package task

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
)

// member is one subtask of a gang.
type member struct {
	*subtask
	gang   *gang
	body   Loop
	comm   *collective.Comm
	head   *link // for queue-init
	tail   *link // for queue-close, which emits
	stages []*boundStage

	// betweenStages and criterion are the links to which failures between stages are
	// attributed. Such failures have no shard. criterion gets failures of the criterion, and
	// betweenStages gets all other failures.
	betweenStages, criterion *link

	handedOver bool        // the member has handed over its state
	closed     atomic.Bool // the member has emitted the rows of the queue
	boundary   Boundary    // says after which supersteps the member waits for a verdict

	began    time.Time     // when the gang's first superstep began
	stageEnd time.Duration // time from began to the end of the last stage
	deciding time.Duration // time spent in the criterion
}

// boundStage is a stage on one subtask, with its cost.
type boundStage struct {
	Stage
	link  *link
	inner []*boundStage // the stages of an inner loop

	calls   int64
	busy    time.Duration // time spent in the stage, without waiting
	waiting time.Duration // time spent waiting for other members
	waited  time.Duration // last value of Waited
	bytes   int64
	program string
}

// settleWait moves the time that the stage waited in its last call from busy to waiting.
func (s *boundStage) settleWait(call time.Duration) {
	waited := s.Waited()
	idle := min(max(waited-s.waited, 0), call)
	s.waited = waited
	s.waiting += idle
	s.busy -= idle
}

// closeBody closes the loop, after the rows that the gang has lent are taken back.
func (m *member) closeBody() error {
	m.run.env.Retained.takeBack(m.gang.queue.Name)
	return m.body.Close()
}

// main is the body of the member's goroutine.
func (m *member) main() error {
	m.head.closer, m.opened = m.closeBody, 1 // the loop must be closed even if it is not opened
	if err := m.awaitSides(); err != nil {
		return err
	}
	err := m.call(m.head, func() error { return m.body.Open(m.head.context, (*memberInput)(m), m.comm) })
	if err != nil {
		return err
	}
	m.current.Store(m.head)
	if m.stages, err = m.bind(m.body.Stages(), true); err != nil {
		return m.failAt(m.head, err)
	}
	if err := m.sayTaken(); err != nil {
		return m.failAt(m.head, err)
	}
	m.gang.memberOpen()
	to, err := m.loop()
	if err != nil {
		return err
	}
	m.settle(m.stages)
	if to > 0 {
		return m.handOver(to)
	}
	return m.finish()
}

// bind checks stages and connects them with their nodes in the plan. If turns is true and
// Env.Turns is set, members take turns in stages that compute. They take no turns in inner
// loops that each member ends by its own While: a member that ended early would make the other
// members wait.
func (m *member) bind(stages []Stage, turns bool) ([]*boundStage, error) {
	bound := make([]*boundStage, len(stages))
	for i, s := range stages {
		if s.Node < 0 || int(s.Node) >= len(m.run.plan.Nodes) || m.run.plan.Nodes[s.Node].Queue != m.gang.queue.Name {
			return nil, fmt.Errorf("a stage of queue %q is bound to node %d, which is not one of the queue's", m.gang.queue.Name, s.Node)
		}
		b := &boundStage{Stage: s, link: &link{task: m.subtask, node: &m.run.plan.Nodes[s.Node], shardOf: shardOf(&s)}}
		switch {
		case (s.Run == nil) == (s.Repeat == nil):
			return nil, fmt.Errorf("stage %s of queue %q: want either a function or an inner loop", b.link.node.Title(), m.gang.queue.Name)
		case s.Repeat != nil && s.Repeat.Max < 1:
			return nil, fmt.Errorf("stage %s of queue %q: an inner loop of at most %d rounds; want at least 1", b.link.node.Title(), m.gang.queue.Name, s.Repeat.Max)
		case s.Repeat != nil:
			var err error
			if b.inner, err = m.bind(s.Repeat.Stages, turns && s.Repeat.While == nil); err != nil {
				return nil, err
			}
		}
		if run := s.Run; run != nil && turns && b.link.node.Stage == plan.Compute && m.run.env.Turns != nil {
			b.Run = func() error { return m.turn(run) }
		}
		bound[i] = b
	}
	return bound, nil
}

// shardOf returns a function that returns the shard of a stage.
func shardOf(s *Stage) func() int {
	if s.Shard != nil {
		return s.Shard
	}
	return noShard
}

func noShard() int { return -1 }

// settle stores the values of Bytes and Program of the stages, which is possible only while the
// body is open.
func (m *member) settle(stages []*boundStage) {
	for _, s := range stages {
		m.current.Store(s.link)
		if s.Bytes != nil {
			s.bytes = s.Bytes()
		}
		if s.Program != nil {
			s.program = s.Program()
		}
		m.settle(s.inner)
	}
}

// loop runs the supersteps. If the queue is cut, it returns the parallelism of the next gang.
// It allocates nothing, and reads the clock once per stage boundary. It synchronizes with the
// other members once per superstep, to get the verdict; this fails if the run has ended. Members
// in several processes synchronize only if they must; see verdict.
func (m *member) loop() (parallelism int, err error) {
	g := m.gang
	m.began = time.Now()
	m.boundary = Boundary{Several: g.multiProcess, Criterion: g.queue.HasCriterion, Cut: m.run.env.Regroup != nil, Saved: g.checkpoints != nil}
	m.current.Store(m.betweenStages)
	if m.index == 0 && g.resumed != nil && g.generation == 0 {
		g.publish(g.steps) // the supersteps that an earlier process has done
	}
	if g.done {
		return 0, nil
	}
	maxSteps := g.queue.MaxSupersteps
	if maxSteps == 0 {
		maxSteps = math.MaxInt
	}
	begin := m.body.Begin
	if m.run.env.Turns != nil { // Begin calls user functions, and no collectives
		begin = func(step int) error { return m.turn(func() error { return m.body.Begin(step) }) }
	}
	for step := g.first; ; step++ {
		if err := begin(step); err != nil {
			return 0, m.failAt(m.betweenStages, err)
		}
		if err := m.runStages(m.stages); err != nil {
			return 0, err
		}
		v, err := m.verdict(step, step == maxSteps)
		last := v.Stop || step == maxSteps
		if last && g.checkpoints != nil {
			v.Save = allPurposes
		}
		if err == nil {
			err = m.settleStep(step, last || v.Parallelism > 0, v.Save != 0)
		}
		if err != nil {
			return 0, m.failAt(m.current.Load(), err)
		}
		if v.Save != 0 {
			if err := m.save(step, v.Save, last, v.Stop); err != nil {
				return 0, err
			}
		}
		if last || v.Parallelism > 0 {
			if m.index == 0 {
				g.steps, g.done, g.stopped = step, last, v.Stop
				g.elapsed += m.stageEnd
			}
			return v.Parallelism, nil
		}
	}
}

// runStages runs stages once, in order. No stage begins after the end of the run.
// Checking the context costs one atomic load.
func (m *member) runStages(stages []*boundStage) error {
	for _, s := range stages {
		if m.context.Err() != nil {
			return m.failAt(s.link, errStopped)
		}
		m.current.Store(s.link)
		s.calls++
		if s.Repeat != nil {
			if err := m.repeat(s); err != nil {
				return err
			}
			continue
		}
		if err := s.Run(); err != nil {
			return m.failAt(s.link, err)
		}
		end := time.Since(m.began)
		s.busy += end - m.stageEnd
		if s.Waited != nil {
			s.settleWait(end - m.stageEnd)
		}
		m.stageEnd = end
	}
	return nil
}

// repeat runs an inner loop. The time that is counted for the loop itself is the time of its
// verdicts, for which all subtasks except subtask 0 wait.
func (m *member) repeat(s *boundStage) error {
	begin := s.Repeat.Begin
	if begin == nil {
		begin = func(int) {}
	}
	for round := 1; ; round++ {
		begin(round)
		if holds := s.Repeat.While; holds != nil {
			if again, err := holds(); err != nil || !again {
				begin(0)
				return m.leftLoop(s, err)
			}
		}
		if err := m.runStages(s.inner); err != nil {
			return err
		}
		if m.context.Err() != nil { // also if there are no inner stages
			return m.failAt(s.link, errStopped)
		}
		m.current.Store(s.link)
		stop := false
		if until := s.Repeat.Until; until != nil {
			var err error
			if m.index == 0 {
				if stop, err = until(); err != nil {
					return m.failAt(s.link, err)
				}
				end := time.Since(m.began)
				s.busy += end - m.stageEnd
				m.stageEnd = end
			}
			if stop, err = m.comm.BroadcastBool(m.context, 0, stop); err != nil {
				return m.failAt(s.link, err)
			}
			end := time.Since(m.began)
			s.waiting += end - m.stageEnd
			m.stageEnd = end
		}
		if stop || round == s.Repeat.Max {
			begin(0)
			return nil
		}
	}
}

// leftLoop ends an inner loop whose condition is false or failed.
func (m *member) leftLoop(s *boundStage, err error) error {
	if err != nil {
		m.current.Store(s.link)
		return m.failAt(s.link, err)
	}
	end := time.Since(m.began)
	s.busy += end - m.stageEnd
	m.stageEnd = end
	return nil
}

// verdict ends a superstep. Subtask 0 evaluates the criterion, if there is one, decides whether
// the queue is cut, and broadcasts the result.
//
// If all members are in one process, they always synchronize here: none continues before all
// have finished the stages. After relies on this, as it reads the results of other members. The
// synchronization costs about a microsecond.
//
// Between processes a synchronization costs as much as an AllReduce; Boundary says when it is needed.
func (m *member) verdict(step int, last bool) (v Verdict, err error) {
	g := m.gang
	m.current.Store(m.betweenStages)
	if m.index == 0 && g.queue.HasCriterion {
		if m.context.Err() != nil {
			return v, errStopped
		}
		m.current.Store(m.criterion)
		if v.Stop, err = m.body.Stop(step); err != nil {
			return v, err
		}
		m.current.Store(m.betweenStages)
		end := time.Since(m.began)
		m.deciding += end - m.stageEnd
		m.stageEnd = end
	}
	if !m.boundary.Meets(step, last) {
		if m.context.Err() != nil {
			return v, errStopped
		}
		return v, nil
	}
	if m.index == 0 {
		if v.Parallelism, err = g.regroup(step); err != nil {
			return v, err
		}
		if c := g.checkpoints; c != nil {
			v.Decide(c.Decide(g.queue.Name, step))
		}
	}
	word, err := m.comm.BroadcastInt64(m.context, 0, v.Word())
	if err != nil {
		return v, err
	}
	m.countWaiting()
	v = VerdictOf(word)
	m.boundary.Agreed(step, v)
	return v, nil
}

// countWaiting counts the time since the last stage as waiting for other members.
func (m *member) countWaiting() {
	end := time.Since(m.began)
	m.waiting += end - m.stageEnd
	m.stageEnd = end
}

// settleStep calls After, once the verdict is known, and records the cost of the superstep.
func (m *member) settleStep(step int, last, save bool) error {
	g := m.gang
	if err := m.body.After(step, last, save); err != nil {
		return err
	}
	if g.multiProcess {
		if last {
			// After this barrier no member calls a collective, so each may leave the group.
			if err := m.comm.Barrier(m.context); err != nil {
				return err
			}
		}
		m.countWaiting()
	}
	if m.index == 0 {
		g.recordStep(StepReport{Elapsed: m.stageEnd, Bytes: bytesMoved(m.stages)})
		g.publish(step)
	}
	return nil
}

// finish emits the queue's rows and ends its shards.
func (m *member) finish() error {
	if m.context.Err() != nil {
		return m.failAt(m.tail, errStopped)
	}
	shards := m.vertex.Ranges[m.index]
	out := &memberOutput{m: m, next: shards.Lo}
	err := m.turn(func() error {
		err := m.call(m.tail, func() error { return m.body.Finish(m.head.context, out) })
		if err != nil {
			return err
		}
		if m.err != nil {
			return m.err // the body ignored a failed Emit
		}
		if err := out.endUntil(shards.Hi); err != nil {
			return err
		}
		m.closed.Store(true)
		return nil
	})
	if err != nil {
		return err
	}
	return m.gang.memberClosed()
}
