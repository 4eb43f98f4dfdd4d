package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// gang holds the subtasks of a queue that run in this process until the queue ends or is cut.
// Each subtask, called a member, runs the stages on a goroutine of its own. The members of all
// processes communicate by collectives, and agree on when to stop.
type gang struct {
	run          *run
	queue        *plan.Queue
	here         sharding.Range // the subtasks in this process
	multiProcess bool           // other processes have subtasks too
	group        Group

	vertex  *plan.Vertex // first vertex of the queue, at the gang's parallelism
	parts   queueParts
	members []*member

	keptRows []int64 // how many rows of an earlier run each member here has at the beginning

	resumed    *Cut // the cut from which the gang continues; nil if the queue begins
	generation int  // number of gangs that the queue had before this one
	first      int  // number of the gang's first superstep
	next       *gang

	// cutParts is the state that each member hands over if the queue is cut. cutMembers counts
	// the members that have handed over their state. endedMembers counts the members that have
	// ended. Member 0 sets nextParallelism, the parallelism of the next gang.
	cutParts                 []CutPart
	cutMembers, endedMembers atomic.Int32
	openMembers              atomic.Int32 // number of members that have read their inputs
	nextParallelism          int

	checkpoints Checkpointer // nil if the states of the queue are not saved
	saving      saving

	closedMembers atomic.Int32 // members that have emitted their rows

	// Only the goroutine of member 0 uses the following fields while it runs. Except for ended,
	// they cover the whole queue, including earlier gangs.
	steps       int
	done        bool // no superstep follows
	stopped     bool
	elapsed     time.Duration
	stepReports []StepReport   // cost of each superstep
	totals      StepReport     // sums over this gang's supersteps
	seriesIndex map[string]int // index in series of each name
	series      []Series
	firstSteps  []int   // superstep of each series' first value
	values      []Value // reported in the current superstep
}

// begin initialises the gang. If the gang continues from a Cut, it takes its state from there.
func (g *gang) begin() {
	g.first, g.seriesIndex, g.cutParts = 1, make(map[string]int), make([]CutPart, g.here.Len())
	if plan.ResumptionOf(g.run.plan.Nodes, g.queue.Name).Resumes != plan.FromTheBeginning {
		g.checkpoints = g.run.env.Checkpoints
	}
	n := g.here.Len()
	g.saving.parts, g.saving.took, g.saving.spent = make([]CutPart, n), make([]time.Duration, n), make([]time.Duration, n)
	from := g.resumed
	if from == nil {
		return
	}
	g.first, g.steps, g.done, g.stopped = from.Step+1, from.Step, from.Last, from.Stopped
	g.elapsed, g.stepReports = from.Elapsed, append(g.roomForSteps(), from.Steps...)
	for i, s := range from.Series {
		s.Values = append(g.roomForValues(), s.Values...)
		g.series, g.firstSteps = append(g.series, s), append(g.firstSteps, from.First[i])
		g.seriesIndex[s.Name] = i
	}
}

// roomForSteps and roomForValues allocate slices whose capacity suffices for the likely number
// of supersteps.
func (g *gang) roomForSteps() []StepReport { return make([]StepReport, 0, g.likely()) }
func (g *gang) roomForValues() []float64   { return make([]float64, 0, g.likely()) }
func (g *gang) likely() int                { return min(max(g.queue.MaxSupersteps, 64), 1<<12) }

// record stores a reported value.
func (g *gang) record(name string, step int, value float64) {
	if step < 1 {
		return
	}
	i, known := g.seriesIndex[name]
	if !known {
		i = g.addSeries(name, step)
	}
	s := &g.series[i]
	for len(s.Values) < step {
		s.Values = append(s.Values, math.NaN())
	}
	s.Values[step-1] = value
	for j := range g.values {
		if g.values[j].Name == name {
			g.values[j].Value = value
			return
		}
	}
	g.values = append(g.values, Value{Name: name, Value: value})
}

// addSeries adds a series whose first value is from superstep step, and returns its index.
// Series are ordered by the superstep of their first value. If the queue is in several
// processes, values of shards may arrive some supersteps late, which must not change the order.
func (g *gang) addSeries(name string, step int) int {
	i := len(g.firstSteps)
	for i > 0 && g.firstSteps[i-1] > step {
		i--
	}
	g.series = slices.Insert(g.series, i, Series{Name: name, Values: g.roomForValues()})
	g.firstSteps = slices.Insert(g.firstSteps, i, step)
	for k := i; k < len(g.series); k++ {
		g.seriesIndex[g.series[k].Name] = k
	}
	return i
}

// recordStep records the cost of a superstep. totals is the total cost of member 0 since the
// gang began.
func (g *gang) recordStep(totals StepReport) {
	if g.stepReports == nil {
		g.stepReports = g.roomForSteps()
	}
	g.stepReports = append(g.stepReports, StepReport{Elapsed: totals.Elapsed - g.totals.Elapsed, Bytes: totals.Bytes - g.totals.Bytes})
	g.totals = totals
}

// bytesMoved returns the number of bytes that stages, including those of inner loops, have
// moved so far.
func bytesMoved(stages []*boundStage) int64 {
	var sum int64
	for _, s := range stages {
		if s.Bytes != nil {
			sum += s.Bytes()
		}
		sum += bytesMoved(s.inner)
	}
	return sum
}

// memberOpen is called when a member has read its inputs.
func (g *gang) memberOpen() {
	if int(g.openMembers.Add(1)) == g.here.Len() && g.generation == 0 && g.run.env.Opened != nil {
		g.run.env.Opened(g.queue.Name, g.first)
	}
}

// publish reports a superstep as progress.
func (g *gang) publish(step int) {
	if f := g.run.env.Progress; f != nil {
		compute, communicate := g.timeSpent()
		f(Progress{Queue: g.queue.Name, Step: step, Values: g.values, Compute: compute, Communicate: communicate})
	}
	g.values = g.values[:0]
}

// timeSpent returns the times that member 0 has spent so far in stages that compute and in stages
// that communicate. They include the times of earlier gangs. It must be called on the goroutine
// of member 0, or after that goroutine has ended.
func (g *gang) timeSpent() (compute, communicate time.Duration) {
	compute, communicate = spentIn(g.members[0].stages)
	if g.resumed != nil {
		compute, communicate = compute+g.resumed.Compute, communicate+g.resumed.Communicate
	}
	return compute, communicate
}

func spentIn(stages []*boundStage) (compute, communicate time.Duration) {
	for _, s := range stages {
		if s.link.node.Stage.Exchanges() {
			communicate += s.busy + s.waiting
		} else {
			compute += s.busy
			communicate += s.waiting // for the verdict of an inner loop
		}
		within, among := spentIn(s.inner)
		compute, communicate = compute+within, communicate+among
	}
	return compute, communicate
}

// report returns the report of the queue, over this gang and the gangs after it.
func (g *gang) report() QueueReport {
	all := g.generations()
	last := all[len(all)-1]
	r := QueueReport{
		Name: g.queue.Name, Supersteps: last.steps, Stopped: last.stopped, Series: last.series, Elapsed: last.elapsed, Steps: last.stepReports,
	}
	for _, g := range all {
		r.addStages(g.stages())
	}
	for i := range r.Series {
		s := &r.Series[i]
		for len(s.Values) < last.steps {
			s.Values = append(s.Values, math.NaN())
		}
	}
	return r
}

// memberClosed is called when a member has emitted its rows. The last member of this process calls
// Env.Closed.
func (g *gang) memberClosed() error {
	closed := g.run.env.Closed
	if int(g.closedMembers.Add(1)) < g.here.Len() || closed == nil {
		return nil
	}
	var report []byte
	if g.here.Lo == 0 {
		for _, first := range g.run.gangs {
			if first.queue != g.queue {
				continue
			}
			var err error
			if report, err = queueReports.Append(nil, first.report()); err != nil {
				return fmt.Errorf("encode the report of queue %q: %w", g.queue.Name, err)
			}
		}
	}
	closed(g.queue.Name, report)
	return nil
}

// queueReports is the codec of QueueReport. It checks every length that it reads.
var queueReports = shared.Msgpack[QueueReport]()

// stages returns the reports of the gang's stages, in plan order.
func (g *gang) stages() (stages []StageReport) {
	at := make(map[plan.NodeID]int) // index in stages of each node
	for _, m := range g.members {
		eachStage(m.stages, func(s *boundStage) {
			i, known := at[s.Node]
			if !known {
				i = len(stages)
				at[s.Node] = i
				stages = append(stages, StageReport{Node: s.Node, Name: s.link.node.Title()})
			}
			sum := &stages[i]
			sum.Calls += s.calls
			sum.Busy += s.busy
			sum.Bytes += s.bytes
			if sum.Program == "" {
				sum.Program = s.program
			}
		})
	}
	return stages
}

// eachStage calls f for each stage, including the stages of inner loops, in plan order.
func eachStage(stages []*boundStage, f func(*boundStage)) {
	for _, s := range stages {
		f(s)
		eachStage(s.inner, f)
	}
}

// closeUnstarted closes the Loops of a gang that will not run, and aborts its group.
func (g *gang) closeUnstarted() error {
	var errs []error
	for _, m := range g.members {
		errs = append(errs, guard(m.closeBody))
	}
	if g.group != nil {
		g.group.Abort(peerFailed(g.here.Lo, errStopped))
	}
	return errors.Join(errs...)
}

// abortOn arranges that the group's collectives are aborted when the run ends. stop cancels
// this arrangement. If the abort has begun, stop waits until it has finished.
func (g *gang) abortOn(ctx context.Context) (stop func()) {
	aborted := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(aborted)
		g.group.Abort(peerFailed(g.here.Lo, context.Cause(ctx)))
	})
	return func() {
		if !forget() {
			<-aborted
		}
	}
}

// peerFailed returns the cause with which a rank aborts its group after the failure err in this
// process. In other processes FollowsPeer is true of this cause, so that they do not report it
// as a failure of their own. In this process the cause wraps err, so that the run can recognise
// its own failure.
func peerFailed(rank int, err error) error {
	if ended, ok := err.(*endedBy); ok {
		err = ended.failure
	}
	if FollowsPeer(err) {
		return err
	}
	return &collective.PeerError{Rank: rank, Reporter: rank, Reason: "ended: " + err.Error(), Kind: err}
}
