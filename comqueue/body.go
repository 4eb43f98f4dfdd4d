package comqueue

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// gang is the state of a queue in one process: its session, and objects that its subtasks
// share.
type gang struct {
	queue   *IterativeComQueue
	layout  *layout
	nodes   []engine.NodeID
	specs   []engine.StageSpec // descriptions of the queue's nodes in the plan
	session *shared.Session
	resumed *engine.Cut // state from which the queue continues; nil if it begins
	kept    bool        // the session has the rows, from an earlier gang of the same run

	// left says by shard that an earlier run has left its rows, which the session has then at the beginning.
	// retain keeps the rows of a port and shard for the next run; it is nil if nothing is kept.
	left   []bool
	retain func(port, shard int, rows engine.KeptRows)

	// rowFiles, if set, makes files for rows that outlive the process, and settled says which rows are there.
	rowFiles *mapped.Files
	settled  func(port, shard int, rows engine.KeptRows)

	lend func(port, shard int, rows engine.KeptRows) // lends rows to the run; nil if nobody wants them

	reports    *reports
	subtasks   int            // number of the queue's subtasks in all processes
	here       sharding.Range // the queue's subtasks in this process
	alive      atomic.Int32   // number of bodies that have not been closed
	handedOver atomic.Int32   // number of bodies that have handed over their state
	finished   atomic.Int32   // number of bodies that have finished

	saving   sync.Mutex
	replicas [][]shared.Fingerprint // of each subtask, when it is saved for the first time; under saving
	savers   int                    // number of subtasks that have been saved; under saving

	bodies []*body // of the subtasks in this process
	damage damage  // result of verifying the files of the bodies

	broadcasts []broadcast // by input
	checks     *checks     // nil if not requested
}

// broadcast holds the only copy of a broadcast input in this process.
type broadcast struct {
	once        sync.Once
	frame       *Frame
	fingerprint uint64 // the frame's fingerprint before the first superstep, for checks
	err         error
}

// openGang returns an engine.OpenLoops that makes the gang of a queue and its bodies.
func openGang(q *IterativeComQueue, l *layout, nodes []engine.NodeID, stages []engine.StageSpec) engine.OpenLoops {
	return func(s engine.GangSpec) ([]engine.Loop, error) {
		g := &gang{
			queue: q, layout: l, nodes: nodes, specs: stages, resumed: s.From, kept: s.RowsKept, retain: s.Retain, rowFiles: s.Files, settled: s.Settled, lend: s.Lend, subtasks: s.Subtasks, here: s.Here,
			reports: newReports(q.b.Shards(), s.Subtasks), broadcasts: make([]broadcast, len(q.inputs)),
			replicas: make([][]shared.Fingerprint, s.Here.Len()),
		}
		if err := g.openSession(s); err != nil {
			return nil, err
		}
		g.alive.Store(int32(g.here.Len()))
		if q.b.CheckBroadcasts() {
			g.checks = newChecks(q, g.subtasks)
			if q.b.TracesReplicas() {
				g.checks.traces = newTraces(stages, g.subtasks)
			}
		}
		loops := make([]engine.Loop, g.here.Len())
		for i := range loops {
			b := &body{gang: g, subtask: g.here.Lo + i, firstStep: 1, forests: map[int]bufferHolder{}, blocks: holdings{verifying: &g.damage.verifying}}
			if s.From != nil {
				b.firstStep = s.From.Step + 1
			}
			b.context.blocks = &b.blocks
			b.context.shard.Store(-1)
			loops[i] = b
			g.bodies = append(g.bodies, b)
		}
		return loops, nil
	}
}

// openSession opens the session of the queue, or finds that of the gang before. It restores the objects of
// the session if the queue continues, and puts the rows there that an earlier run has left.
func (g *gang) openSession(s engine.GangSpec) (err error) {
	if s.RowsKept {
		if g.session = s.Sessions.Find(s.Job, s.Queue); g.session == nil {
			return errors.New("the rows that it continues with are not in this process")
		}
	} else if g.session, err = s.Sessions.Open(s.Job, s.Queue, s.Subtasks); err == nil && s.From != nil {
		err = g.session.Regroup(g.owned(), g.queue.isInput)
	}
	if err == nil && s.Kept != nil {
		err = g.takeRows(s.Kept)
	}
	if err == nil && s.From != nil {
		if err = g.resume(s.From); err != nil {
			err = fmt.Errorf("continue after superstep %d: %w", s.From.Step, err)
		}
	}
	if err != nil && g.session != nil {
		err = errors.Join(err, g.session.Close())
	}
	return err
}

// acrossProcesses reports whether the queue has subtasks in other processes.
func (g *gang) acrossProcesses() bool { return g.here.Len() < g.subtasks }

// body runs the stages of one subtask of a queue.
type body struct {
	*gang
	subtask        int
	firstStep      int // superstep that the gang begins with
	context        ComContext
	comm           *collective.Comm
	forests        map[int]bufferHolder // for each ForEachShard stage, by its number in the queue: the buffers of its results, a *forest[T]
	boundNodes     int                  // number of nodes bound so far
	stages         []engine.Stage
	reportExchange reportExchange // reports sent between processes

	saved     bool  // the state has been saved, and what is saved was checked
	compared  bool  // replicated objects were compared with those of subtasks in other processes
	unsavable error // why the state cannot be saved, if subtasks in other processes have shown that

	files      *mapped.Files
	rowsOnDisk []*onDisk // rows of the subtask's shards that are in files
	blocks     holdings  // blocks that stages have computed from rows

	instances []*instance // instances of stages that are made for each subtask
}

// takeNode returns the plan's node of the next stage. Stages are bound in the order in which
// they were described.
func (b *body) takeNode() engine.NodeID {
	b.boundNodes++
	return b.nodes[b.boundNodes-1]
}

// Open implements engine.Loop: it loads the inputs and binds the stages.
func (b *body) Open(c *engine.Context, in engine.Input, comm *collective.Comm) error {
	b.comm = comm
	b.context.task, b.context.session, b.context.reports = c, c.Node.Queue, b.reports
	b.context.rounds.open(c.Seed, c.Node.Queue)
	b.files = mapped.NewFiles(c.Disk, c.SpillDir)
	b.blocks.files = b.files
	b.context.objects = b.session.Subtask(b.subtask)
	b.context.objects.Own(c.Range)
	if err := b.openInputs(c, in); err != nil {
		return fmt.Errorf("queue %q: %w", b.queue.name, err)
	}
	position := 0
	for _, s := range b.queue.stages {
		bound, err := s.bind(b, position)
		if err != nil {
			return err
		}
		b.stages = append(b.stages, bound...)
		position = b.layout.last(position, s) + 1
	}
	if err := b.rejoin(); err != nil {
		return err
	}
	b.stages = b.guarded(b.stages)
	if b.checks != nil && b.checks.traces != nil {
		b.follow(b.stages)
	}
	return nil
}

// openInputs puts the rows of all inputs under their keys. It reads the rows, or finds in the
// session the rows of the previous gang.
func (b *body) openInputs(c *engine.Context, in engine.Input) error {
	for port, input := range b.queue.inputs {
		if input.broadcast != nil {
			if err := b.openBroadcast(c, port, input); err != nil {
				return fmt.Errorf("broadcast data %q: %w", input.name(), err)
			}
		}
	}
	reader := inputReader{context: &b.context, files: cmp.Or(b.rowFiles, b.files)}
	var ports []int
	for port, input := range b.queue.inputs {
		if input.partitioned != nil {
			ports = append(ports, port)
		}
	}
	for i, port := range ports {
		input := b.queue.inputs[port]
		reader.later = slices.DeleteFunc(slices.Clone(ports[i+1:]), func(port int) bool { return b.queue.inputs[port].data.AfterQueue() })
		b.context.data = append(b.context.data, *input.partitioned)
		for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
			if err := b.openShard(c, in, &reader, port, shard); err != nil {
				return fmt.Errorf("partitioned data %q, shard %d: %w", input.name(), shard, err)
			}
		}
	}
	var onDisk []*onDisk
	for _, d := range b.context.data { // from here on no rows move to disk
		for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
			if f := d.Get(&b.context, shard); f.file != nil {
				onDisk = append(onDisk, f.file)
			}
		}
	}
	b.gang.damage.verifying.Lock()
	b.rowsOnDisk = onDisk
	b.gang.damage.verifying.Unlock()
	b.settle(c.Range)
	b.lendRows(c.Range)
	if len(b.rowsOnDisk) > 0 {
		debug.SetPanicOnFault(true) // prepareDiskRows may have set it for another goroutine only
	}
	return nil
}

// openBroadcast puts the frame of a broadcast input under its key. The subtasks of a process
// share one frame.
func (b *body) openBroadcast(c *engine.Context, port int, in input) error {
	one := &b.broadcasts[port]
	one.once.Do(func() {
		if b.kept {
			one.frame, one.err = requireFrame(in.broadcast.key.Lookup(&b.context))
		} else if one.err = holdJoined(c, port); one.err == nil {
			one.frame, one.err = newFrame(c.Allocator, in.schema(), arrowrows.Records(c.Side(port)))
		}
		if one.err == nil {
			one.err = in.columns().checkFrame(one.frame, nil)
		}
		if one.err == nil && b.checks != nil {
			one.fingerprint, one.err = one.frame.fingerprint()
		}
	})
	if one.err == nil {
		in.broadcast.key.Put(&b.context, one.frame)
	}
	return one.err
}

// holdJoined accounts for the copy that a frame makes of several batches. The batches also stay
// in memory, as the run owns them.
func holdJoined(c *engine.Context, port int) error {
	batches := c.Side(port)
	if len(batches) < 2 {
		return nil
	}
	var size int64
	for _, rows := range batches {
		size += batch.Size(arrowrows.Record(rows))
	}
	return c.HoldSide(port, size)
}

// openShard puts the rows of a shard into one frame.
func (b *body) openShard(c *engine.Context, in engine.Input, reader *inputReader, port, shard int) (err error) {
	input := b.queue.inputs[port]
	key := input.partitioned.key
	switch {
	case b.kept:
		if _, err = requireFrame(key.Lookup(&b.context, shard)); err != nil {
			return err
		}
	case b.left != nil && b.left[shard]:
		if err := b.openLeft(c, in, reader, port, shard); err != nil {
			return err
		}
	default:
		frame, err := readShard(c, in, reader, port, shard, input)
		if err != nil {
			return err
		}
		key.Put(&b.context, shard, frame) // from here on the session owns it
	}
	frame := key.Get(&b.context, shard)
	if err := input.columns().checkFrame(frame, &engine.RowsOf{Shard: shard, Input: len(b.context.data) - 1}); err != nil || b.checks == nil {
		return err
	}
	return b.checks.watch(b.subtask, input.name(), frame)
}

// titleOf returns the name of an input's rows in errors.
func titleOf(in input) string { return fmt.Sprintf("rows of %q", in.name()) }

// readShard joins the rows of a shard into one frame.
func readShard(c *engine.Context, in engine.Input, reader *inputReader, port, shard int, input input) (*Frame, error) {
	reader.open(in, port, shard)
	of := newStaged(c, titleOf(input))
	defer of.release()
	for {
		rows, err := in.Next(port, shard)
		if err == io.EOF { // not errors.Is: a wrapped io.EOF means truncated data
			return reader.rows(c, *input.partitioned, shard, input.schema(), of)
		}
		if err != nil {
			return nil, err
		}
		if rows.Len() == 0 {
			rows.Release()
			continue
		}
		if err := of.add(arrowrows.Record(rows)); err != nil {
			return nil, err
		}
	}
}

// Stages implements engine.Loop.
func (b *body) Stages() []engine.Stage { return b.stages }

// Begin implements engine.Loop.
func (b *body) Begin(step int) error {
	b.context.shard.Store(-1)
	if err := b.beforeSuperstep(step); err != nil {
		return err
	}
	b.context.step = step
	b.reports.begin(b.subtask, step)
	if b.checks != nil && b.checks.traces != nil {
		b.checks.traces.begin(b.subtask, step)
	}
	if step == b.firstStep {
		b.reportExchange.begin(step)
	}
	if b.checks == nil {
		return nil
	}
	return b.checks.begin(b.subtask, step, b.context.objects)
}

// beforeSuperstep is called before a superstep. Before the gang's first superstep it calls the
// functions of Init and, unless the queue continues, those of Begin. With CheckState it drops
// state that is not kept before each later superstep.
func (b *body) beforeSuperstep(step int) error {
	if step == b.firstStep {
		if err := b.guard(func() error { return b.open(b.resumed == nil) }); err != nil || step == 1 {
			return err
		}
	}
	if err := b.observe(step - 1); err != nil || step == b.firstStep || !b.queue.b.CheckState() {
		return err
	}
	return b.guard(b.forget)
}

// observe passes the replicated objects after a superstep to the run's observer, if any.
func (b *body) observe(step int) error {
	if b.subtask != 0 || !b.context.task.Observed() {
		return nil
	}
	broadcast := func(name string) bool { return b.checks != nil && b.checks.isBroadcast(name) }
	held, err := b.context.objects.Fingerprints(nil, broadcast)
	if err == nil {
		b.context.task.ObserveObjects(step, held)
	}
	return err
}

// Shard implements engine.Loop: it returns the shard being worked on, for errors.
func (b *body) Shard() int { return b.context.currentShard() }

// Stop implements engine.Loop.
func (b *body) Stop(int) (bool, error) {
	if b.queue.criterion == nil {
		return false, nil
	}
	return b.evalCondition(b.queue.criterion)
}

// evalCondition evaluates a condition of the queue.
func (b *body) evalCondition(condition func(*ComContext) (bool, error)) (yes bool, err error) {
	err = b.guard(func() error {
		yes, err = b.context.ask(condition)
		return err
	})
	return yes, err
}

// After implements engine.Loop: it makes the checks, exchanges reports between processes, and
// on subtask 0 folds the superstep's reports.
func (b *body) After(step int, last, save bool) error {
	if b.checks != nil {
		if err := b.check(step); err != nil {
			return err
		}
	}
	if b.acrossProcesses() {
		if err := b.post(step, last || save); err != nil {
			return err
		}
		if save && !b.compared { // all subtasks are told the same, also those whose process saves no further states
			b.compared = true
			if err := b.checkReplicasAcross(step); err != nil {
				return err
			}
		}
	}
	switch {
	case b.subtask != 0:
		return nil
	case b.acrossProcesses():
		return b.reportExchange.deliver(b.reports, b.context.task.Report)
	}
	return b.reports.flush(step, b.context.task.Report)
}

// Finish implements engine.Loop: it emits the queue's rows.
func (b *body) Finish(c *engine.Context, out engine.Output) error {
	if b.resumed != nil && b.resumed.Last { // no superstep was begun
		if err := b.guard(func() error { return b.open(false) }); err != nil {
			return err
		}
		b.context.step = b.resumed.Step
	}
	if err := b.giveRows(c, out); err != nil {
		return err
	}
	if b.checks != nil {
		if err := b.checkClosed(); err != nil {
			return fmt.Errorf("queue %q: %w", b.queue.name, err)
		}
	}
	b.finished.Add(1)
	return nil
}

func (b *body) giveRows(c *engine.Context, out engine.Output) error {
	b.reports.end(b.subtask)
	b.context.shard.Store(-1)
	if err := b.observe(b.context.step); err != nil {
		return err
	}
	if b.subtask != 0 && !b.queue.close.perShard {
		return b.verifyRows()
	}
	return b.closeRows(c, out)
}

// Close implements engine.Loop. The last subtask to be closed closes the session, unless
// another gang or another run continues with it. Closing the session releases what all subtasks hold.
func (b *body) Close() error {
	if c := b.context.task; c != nil {
		b.blocks.close(c)
		b.files.Close()
	}
	b.stages, b.forests, b.instances = nil, nil, nil // so that they are freed now, although the run keeps the body for its report
	if b.alive.Add(-1) > 0 || int(b.handedOver.Load()) == b.here.Len() {
		return nil
	}
	if b.retain != nil && int(b.finished.Load()) < b.here.Len() {
		return b.leaveRows()
	}
	return b.session.Close()
}
