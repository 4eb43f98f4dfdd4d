package taskmanager

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// A worker that ends because of other workers may keep its process (wire.Kept). The worker's slots are
// then free, and the process waits here until the next attempt of its job takes it. If nobody takes it
// in time, if its slots are needed, or on a command for the worker that kept it, the process is told to
// exit, and is killed after Config.Grace. If it falls silent or breaks the protocol, it is killed at once.

// pool has the kept processes of a task manager. Each has a goroutine that owns its child.
type pool struct {
	Config
	stops chan struct{}  // closed when all processes must be killed
	tasks sync.WaitGroup // goroutines of the processes

	mu      sync.Mutex
	waiting []*kept // those that can be taken, in the order in which they came
	changed func()  // called when waiting has become shorter; set before the first put
}

// kept is a process that waits. Only who has removed it from pool.waiting may send it an order, and
// sends exactly one. The fields below "---" are used only by the goroutine of run.
type kept struct {
	*child
	ref      wire.WorkerRef // the worker that kept the process
	artifact string         // hash of the executable
	slots    int            // number of slots that the worker had
	log      hclog.Logger
	order    chan keptOrder
	handed   chan bool // the answer to handOver: whether the child now belongs to the sender

	// ---
	ordered   bool   // the order was received
	withdrawn bool   // nobody has given an order, and nobody will
	told      bool   // the process got the command to exit
	killed    bool   // the process was killed
	exit      *ended // not nil once the process has ended
	read      bool   // whether all frames were read

	waited     time.Duration // time in turns since the process was kept
	sinceFrame time.Duration // time since the last frame
	sinceTold  time.Duration // time since the command to exit
	sinceExit  time.Duration // time since the process ended
}

// keptOrder says what becomes of a kept process.
type keptOrder int

const (
	handOver keptOrder = iota // another worker takes the child
	dismiss                   // the process must exit
	killNow                   // the process must be killed
)

func newPool(c Config) *pool {
	c.Silence = cmp.Or(c.Silence, defaultSilence)
	return &pool{Config: c, stops: make(chan struct{}), changed: func() {}}
}

// put adds the process of worker ref, which has said Kept. The pool owns the child from then on. A
// process that an earlier attempt of the job has left is dismissed.
func (p *pool) put(c *child, ref wire.WorkerRef, artifact string, slots int) {
	k := &kept{
		child: c, ref: ref, artifact: artifact, slots: slots,
		log:   p.Logger.With("kept from", ref.String(), "pid", c.process.PID()),
		order: make(chan keptOrder, 1), handed: make(chan bool, 1),
	}
	p.end(func(o *kept) bool { return o.ref.Job == ref.Job }, dismiss)
	p.mu.Lock()
	p.waiting = append(p.waiting, k)
	p.mu.Unlock()
	p.tasks.Go(func() { k.run(p) })
}

// take returns the child of a process that waits for the next attempt of a job and runs the given
// executable. The caller owns the child then. take returns nil if there is none.
func (p *pool) take(job wire.JobID, artifact string) *child {
	for {
		k := p.remove(func(k *kept) bool { return k.ref.Job == job && k.artifact == artifact })
		if k == nil {
			return nil
		}
		k.order <- handOver
		if <-k.handed {
			return k.child
		}
	}
}

// command carries out a command for a worker that has kept its process. It returns false if there is no
// such process, or if the command is not one to end. A Cancel with Keep changes nothing.
func (p *pool) command(c *wire.WorkerCommand) bool {
	its := func(k *kept) bool { return k.ref == c.WorkerRef }
	switch {
	case c.Kill != nil:
		return p.end(its, killNow)
	case c.Exit != nil, c.Cancel != nil && !c.Cancel.Keep:
		return p.end(its, dismiss)
	case c.Cancel != nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.waiting, its)
	}
	return false
}

// makeRoom dismisses processes that had slots, the oldest first, until those that are left had at most free slots.
func (p *pool) makeRoom(free int) {
	for p.slots() > free && p.end(func(k *kept) bool { return k.slots > 0 }, dismiss) {
	}
}

// slots returns how many slots the workers of the waiting processes had.
func (p *pool) slots() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.waiting {
		n += k.slots
	}
	return n
}

// refs returns the workers whose processes wait.
func (p *pool) refs() (all []wire.WorkerRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.waiting {
		all = append(all, k.ref)
	}
	return all
}

// killAll kills all processes that can be taken.
func (p *pool) killAll() {
	for p.end(func(*kept) bool { return true }, killNow) {
	}
}

// close kills all processes, those that are put later too. wait must be called after the last put.
func (p *pool) close() { close(p.stops) }

// wait waits until all processes of a closed pool have ended.
func (p *pool) wait() { p.tasks.Wait() }

// end gives an order to the oldest process that meets a condition. It returns false if there is none.
func (p *pool) end(which func(*kept) bool, o keptOrder) bool {
	k := p.remove(which)
	if k == nil {
		return false
	}
	k.order <- o
	return true
}

// remove removes and returns the oldest process that meets a condition, or nil if there is none.
func (p *pool) remove(which func(*kept) bool) *kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.waiting, which)
	if i < 0 {
		return nil
	}
	k := p.waiting[i]
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.changed()
	return k
}

// withdraw makes sure that nobody can take the process any more. It returns false if somebody has
// removed the process from the pool to give it an order.
func (k *kept) withdraw(p *pool) bool {
	k.withdrawn = k.withdrawn || p.remove(func(o *kept) bool { return o == k }) != nil
	return k.withdrawn
}

// run watches the process until another worker takes it or it has ended.
func (k *kept) run(p *pool) {
	begin := time.Now()
	turns := core.NewTurns(min(p.Silence, p.KeepFor), 0)
	ticks := time.NewTicker(turns.Period)
	defer ticks.Stop()
	k.log.Info("the process waits for the next attempt of its job", "for", p.KeepFor)
	stops := p.stops
	for k.exit == nil || !k.read || k.outEnd != nil {
		frames := k.frames
		if k.read {
			frames = nil
		}
		select {
		case o := <-k.order:
			if k.obey(o) {
				return
			}
		case <-stops:
			stops = nil
			k.kill("the task manager was stopped")
		case f := <-frames:
			k.hear(p, f)
		case err := <-k.unsent:
			k.kill(err.Error())
		case e := <-k.exits:
			k.exit = &e
			k.withdraw(p)
			k.pipes.boundDrain()
		case <-k.outEnd:
			k.outEnd = nil
		case <-ticks.C:
			k.tick(p, &turns, time.Since(begin))
		}
		if k.told || k.killed {
			k.withdraw(p)
		}
	}
	k.finish(p)
}

// obey carries out an order. It returns true if the child now belongs to another worker.
func (k *kept) obey(o keptOrder) bool {
	k.ordered = true
	switch o {
	case handOver:
		// Messages that the process has not read yet would take the room of those of its next worker.
		fit := k.exit == nil && !k.read && !k.told && !k.killed && len(k.outgo) == 0
		if k.handed <- fit; fit {
			return true
		}
		k.tell("it could not be taken over")
	case dismiss:
		k.tell("it is not needed any more")
	case killNow:
		k.kill("it is not needed any more")
	}
	return false
}

// tell tells the process to exit, for the given reason.
func (k *kept) tell(why string) {
	if k.told || k.killed || k.exit != nil {
		return
	}
	k.log.Info("the process is told to exit", "why", why)
	k.told = true
	select {
	case k.outgo <- &wire.ToWorker{Exit: &wire.Exit{}}:
	default:
		k.kill("it reads no messages")
	}
}

// kill kills the process, for the given reason.
func (k *kept) kill(why string) {
	if k.killed || k.exit != nil {
		return
	}
	k.log.Warn("killing the process", "why", why)
	k.killed = true
	if err := k.process.Kill(); err != nil {
		k.log.Error("cannot kill the process", "error", err)
	}
}

// hear processes a frame, or an error of reading frames. A process that waits may send only Beats.
func (k *kept) hear(p *pool, f frame) {
	k.sinceFrame = 0
	switch {
	case f.err != nil:
		k.read = true
		k.withdraw(p)
		if !k.told {
			k.kill(fmt.Sprintf("its messages ended: %v", f.err))
		}
	case f.Beat == nil && !k.told:
		k.kill("it sent a message although it waits for a deployment")
	}
}

// tick advances the time limits to now, and enforces them.
func (k *kept) tick(p *pool, turns *silence.Clock, now time.Duration) {
	passed := turns.Tick(now)
	k.waited += passed
	k.sinceFrame += passed
	switch {
	case k.exit != nil:
		if k.sinceExit += passed; k.sinceExit > drainTime && !k.read {
			k.pipes.stopReading()
		}
	case k.told:
		if k.sinceTold += passed; k.sinceTold >= p.Grace {
			k.kill("it did not exit as it was told")
		}
	case k.waited >= p.KeepFor:
		k.tell(fmt.Sprintf("nobody took it for %s", p.KeepFor))
	case k.sinceFrame >= p.Silence-turns.Period && k.unheard(p):
		k.kill(fmt.Sprintf("it was silent for %.1fs", k.sinceFrame.Seconds()))
	}
}

// unheard reports whether no frame of the process waits to be read. If it finds a frame, it processes
// the frame.
func (k *kept) unheard(p *pool) bool {
	select {
	case f := <-k.frames:
		k.hear(p, f)
		return false
	default:
		return k.read || !readable(k.pipes.from)
	}
}

// finish releases the resources of a process that has ended.
func (k *kept) finish(p *pool) {
	if !k.withdraw(p) && !k.ordered && <-k.order == handOver {
		k.handed <- false
	}
	k.close()
	k.log.Info("the process has ended", "code", k.exit.Code, "signal", k.exit.Signal, "last lines", k.out.lastLines())
}
