package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workerCopies copies the states of queues to the memory of other workers of the attempt, and has
// those that earlier attempts have left there. If only one worker has slots, its states go to files instead,
// which outlive its process (copies.Files). Worker 0 chooses, when the sinks begin, which queues
// continue from memory, and all workers fetch what they need when the attempt starts.
type workerCopies struct {
	job      *workerJob
	exchange *copies.Exchange     // nil until the attempt starts
	budget   *task.Budget         // of the attempt; nil if its default is used
	from     map[string]*task.Cut // states from which queues continue

	context context.Context // ends when the copying does
	cancel  context.CancelFunc
	work    sync.WaitGroup // requests for states

	mu    sync.Mutex
	paces map[string]*copyPace
	saves memorySaves
}

// newCopies returns the copies of a worker, or nil if it makes none: because nobody wants them, or no
// attempt would follow. A worker without others that has no directory for files only keeps its states when it
// is asked for them.
func (j *workerJob) newCopies() *workerCopies {
	d := j.deployment
	if d.Mode != wire.RunMode || !d.Keep || d.Spec.Run.NumberOfCopies() == 0 {
		return nil
	}
	c := &workerCopies{job: j, from: make(map[string]*task.Cut), paces: make(map[string]*copyPace)}
	c.saves.running, c.saves.awaited = make(map[string]bool), make(map[string]bool)
	c.saves.asked, c.saves.ahead = make(map[string]bool), make(map[string]bool)
	c.saves.unsaved, c.saves.blocked = make(map[string]error), make(map[string]time.Time)
	c.context, c.cancel = context.WithCancel(context.Background())
	return c
}

// chooseCopies adds the queues that continue from memory to from, from which the other queues
// continue; nil means that they begin at superstep 1. It is called on worker 0.
func (c *workerCopies) chooseCopies(held [][]byte, from *wire.Origin) (*wire.Origin, error) {
	if c == nil {
		return from, nil
	}
	choices, err := origin.Choices(held)
	if err == nil {
		from = origin.Choose(choices, c.known, from)
		err = origin.FromFiles(held, from)
	}
	if err != nil {
		return nil, clusterFault(err)
	}
	return from, nil
}

// inMemory returns a function that reports whether a queue can continue from a state that the workers hold.
func (c *workerCopies) inMemory(held [][]byte) (func(queue string) bool, error) {
	if c == nil {
		return func(string) bool { return false }, nil
	}
	choices, err := origin.Choices(held)
	if err != nil {
		return nil, clusterFault(err)
	}
	return func(queue string) bool {
		return slices.ContainsFunc(choices, func(c copies.Choice) bool { return c.Queue == queue })
	}, nil
}

// files returns the files of the states of the job, or nil if the task manager has no directory for them.
func (c *workerCopies) files() *copies.Files {
	d := c.job.deployment
	if d.StateDir == "" {
		return nil
	}
	return &copies.Files{Dir: d.StateDir, Job: string(d.Job), Attempt: d.Attempt, Logger: c.job.logger.Named("copies")}
}

// readFiles reads the states that the process of an earlier attempt has left in files. It does that once in a
// process, as the states that the process keeps from then on are newer.
func (c *workerCopies) readFiles() {
	if c == nil || c.job.worker.filesRead {
		return
	}
	c.job.worker.filesRead = true
	if f := c.files(); f != nil {
		f.Read(c.job.worker.copies)
	}
}

// alone reports whether no other worker can hold copies of the states, so that they go to files.
func (c *workerCopies) alone() bool {
	return running(c.job.deployment) == 1 && c.job.deployment.StateDir != ""
}

// write returns the function that writes states to files, or nil if they are not written.
func (c *workerCopies) write() func(context.Context, copies.State) {
	if !c.alone() {
		return nil
	}
	f, store := c.files(), c.job.worker.copies
	return func(ctx context.Context, s copies.State) { f.Write(ctx, store, s) }
}

// known reports whether the job has a queue of this name.
func (c *workerCopies) known(queue string) bool {
	for _, q := range c.job.plan.Queues {
		if q.Name == queue {
			return true
		}
	}
	return false
}

// startCopies begins to copy states, and fetches those from which queues continue.
func (j *workerJob) startCopies(ctx context.Context, s *wire.Start) error {
	choices, err := origin.Choices(s.Held)
	if err == nil {
		choices, err = origin.Chosen(choices, s.Origin)
	}
	if err != nil {
		return clusterFault(err)
	}
	c, d := j.copies, j.deployment
	if c == nil {
		return nil
	}
	exchange, err := copies.New(copies.Config{
		Port: j.plane.Port(), Where: j.plane.Where, Worker: d.Worker, Workers: len(d.Slots), Sharing: running(d), Attempt: uint32(d.Attempt),
		Copies: d.Spec.Run.NumberOfCopies(), Store: j.worker.copies, From: choices, Write: c.write(), Room: c.room, Spent: c.spent, Logger: j.logger.Named("copies"),
	})
	if err != nil {
		return clusterFault(err)
	}
	c.mu.Lock() // a request for states may come at any time
	c.exchange = exchange
	c.mu.Unlock()
	if err := c.exchange.Inherit(ctx); err != nil {
		return &workerError{wire.PeerFailure, err} // a worker that has the states is gone
	}
	part := task.Part{Worker: d.Worker, Slots: slotRanges(d)}
	for _, choice := range choices {
		parts := part.NeededParts(j.plan, choice.Queue, choice.Of-1)
		needed := append([]bool{slices.Contains(parts, true)}, parts...)
		if !needed[0] {
			continue
		}
		pieces, err := c.exchange.Fetch(ctx, choice, needed)
		if err != nil {
			return &workerError{wire.PeerFailure, err} // a worker that has them is gone
		}
		cut, err := task.CutOfPieces(pieces)
		if err == nil && cut.Step != choice.Superstep {
			err = fmt.Errorf("its superstep is %d", cut.Step)
		}
		if err != nil {
			return clusterFault(fmt.Errorf("the state of %s that was kept in memory: %w", choice.State, err))
		}
		c.from[choice.Queue] = cut
	}
	return nil
}

// budgetOf makes the budget of the attempt, against which the copies count, with the given number of bytes.
func (c *workerCopies) budgetOf(memory int64) *task.Budget {
	if memory > 0 {
		c.budget = task.NewBudget("the run", memory, nil)
		c.budget.Beside(c.job.worker.copies.Memory)
	}
	return c.budget
}

// room reports whether the copies may take so many bytes more. A state that was asked for takes what it
// needs, as the attempt usually ends after it. Only worker 0 knows of that.
func (c *workerCopies) room(bytes int64) bool {
	if c.budget == nil || c.budget.RoomBeside(bytes) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saves.open > 0
}

// close ends the copying.
func (c *workerCopies) close() {
	if c == nil {
		return
	}
	c.cancel()
	c.work.Wait()
	if c.exchange != nil {
		c.exchange.Close()
	}
}

// unsaved returns the function that is called if the state of a queue cannot be saved. If states are
// only copied to other workers, and need not be, the run goes on. The other workers wait for the
// copies of this one, so that they copy no further states of the queue.
func (j *workerJob) unsaved(c *config) func(queue string, err error) error {
	if c.checkpoints.dir != "" || c.checkpoints.require {
		return c.checkpoints.unsaved
	}
	return func(queue string, err error) error {
		if c := j.copies; c != nil {
			c.mu.Lock()
			c.saves.unsaved[queue] = err
			c.saves.handed(queue, false, err)
			c.mu.Unlock()
		}
		if running(j.deployment) > 1 || j.deployment.StateDir != "" { // otherwise it would not be copied anyway
			j.logger.Warn("the state of a queue is not copied, so another attempt would begin it at superstep 1", "queue", queue, "error", err)
			j.progress.uncopied(queue, err)
		}
		return nil
	}
}

// decide says whether the state of a queue is copied after a superstep, and after how many supersteps
// to decide again.
func (c *workerCopies) decide(queue string, step int) (due bool, next int) {
	if c.exchange == nil {
		return false, 0
	}
	free := c.exchange.Settled(queue)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.saves.narrowed(now) {
		c.exchange.Narrow()
	}
	asked, known := c.saves.decide(now, queue, free)
	pace, d := c.pace(queue), c.job.deployment
	if free {
		pace.settled(c.exchange.Voided(queue))
	}
	wanted := running(d) > 1 || c.alone() || d.Spec.Run.RequireCheckpoints && pace.last.IsZero() // to learn whether it can be saved
	due, next = pace.decide(now, step, free && !known && wanted)
	pace.underWay = pace.underWay || due || asked
	c.saves.stepped(queue, due || asked)
	return due || asked, next
}

// pace returns the pace of a queue. mu is held.
func (c *workerCopies) pace(queue string) *copyPace {
	p := c.paces[queue]
	if p == nil {
		p = &copyPace{alone: c.alone(), again: c.job.deployment.Attempt > 1}
		c.paces[queue] = p
	}
	return p
}

// share hands over the state of a queue.
func (c *workerCopies) share(queue string, s *task.Saved) {
	if c.exchange == nil {
		return
	}
	first, pieces := s.Pieces()
	c.exchange.Share(copies.State{Queue: queue, Superstep: s.Step, Ended: s.Last, Of: 1 + s.Subtasks}, first, pieces)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace(queue).spent += s.Spent
	c.saves.handed(queue, s.Last, nil)
}

// closed shares the report of a queue that has ended, which worker 0 has. The next attempt needs it if it
// leaves the queue out.
func (c *workerCopies) closed(queue string, report []byte) {
	if c.exchange == nil {
		return
	}
	c.exchange.Share(origin.ReportOf(queue), 0, func(yield func([]byte, error) bool) {
		if report != nil {
			yield(report, nil)
		}
	})
}

// spent notes what the copies of a queue cost this worker.
func (c *workerCopies) spent(queue string, cost time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace(queue).spent += cost
}

const (
	// copyShare is the least ratio of the time between two copies to what a copy costs, as measured. Profiles of
	// runs of 2 to 10 s have shown 0.9 to 2.2 % of the processor time for copies, with the expensive first ones:
	// scheduling and parts of the kernel's work are not measured.
	copyShare = 100
	// firstShare is that ratio after the first copy of an attempt which follows another one. It doubles after
	// each copy, up to copyShare. So a job gets on although its attempts are lost before copies that are as far
	// apart as usual are made.
	firstShare = 5
	// copyMessages is about the processor time that all workers together need for the messages of a
	// copy, besides what copies.Config.Spent is told.
	copyMessages = 300 * time.Microsecond
	// copyMeeting is about how often subtasks in several processes meet to decide whether a state is
	// copied, if nothing else makes them meet. A meeting takes some hundred microseconds.
	copyMeeting = 20 * time.Millisecond
	// voidWait is the least time after a copy that came to nothing until the next. It doubles up to maxVoids
	// times, to about a minute.
	voidWait = time.Second
	maxVoids = 6
	// maxStride is the largest number of supersteps between two meetings, as later ones may take longer.
	maxStride = 256
)

// copyPace decides how often the state of a queue is copied. Copies cost at most a fiftieth of the
// time of the supersteps, but for the first ones of an attempt, and so do the meetings of subtasks that do
// not meet otherwise.
type copyPace struct {
	alone bool             // states go to files, and no messages are sent
	again bool             // an attempt was lost before
	spent time.Duration    // on the copy that is under way, or on the one that ended last
	costs [5]time.Duration // of the last copies, without the first
	n     int              // number of copies
	last  time.Time        // when a state was last to be copied; zero before the first

	at      time.Time // of the decision before
	step    int
	perStep time.Duration // time of a superstep, as measured between the last two decisions

	underWay bool // a copy was begun, and it is not known what has become of it
	voids    int  // number of copies, up to the last, that came to nothing, such as for lack of memory
}

// settled says that no copy is under way, and whether the last one has come to nothing.
func (p *copyPace) settled(void bool) {
	switch {
	case !p.underWay:
	case void:
		p.voids++
	default:
		p.voids = 0
	}
	p.underWay = false
}

// decide is called after a superstep. free says that no copy is under way.
func (p *copyPace) decide(now time.Time, step int, free bool) (due bool, next int) {
	if step > p.step && !p.at.IsZero() {
		p.perStep = now.Sub(p.at) / time.Duration(step-p.step)
	}
	p.at, p.step = now, step
	if free && p.spent > 0 {
		cost := p.spent
		if !p.alone {
			cost += copyMessages
		}
		if p.n == 0 { // it takes memory and connects, so it costs more than others
			p.costs[0] = cost / 5
		} else {
			p.costs[(p.n-1)%len(p.costs)] = cost
		}
		p.n, p.spent = p.n+1, 0
	}
	apart := copyShare * p.cost()
	if p.again {
		apart = min(apart, firstShare*p.cost()<<min(max(0, p.n-1), 10))
	}
	if p.voids > 0 {
		apart = max(apart, voidWait<<min(p.voids-1, maxVoids))
	}
	due = free && (p.last.IsZero() || now.Sub(p.last) >= apart)
	if due {
		p.last = now
	}
	if p.perStep <= 0 {
		return due, 1
	}
	return due, int(min(max(1, copyMeeting/p.perStep), maxStride))
}

// cost returns what the next copy is expected to cost: the median of the last ones. It is 0 before the first.
func (p *copyPace) cost() time.Duration {
	if p.n == 0 {
		return 0
	}
	costs := p.costs
	last := costs[:min(max(1, p.n-1), len(costs))]
	slices.Sort(last)
	return last[len(last)/2]
}
