package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/wire"
)

// stopTimeout is how long work may go on that was told to end.
const stopTimeout = 10 * time.Second

// workerProcess is a process of workers: of one attempt of a job after the other.
type workerProcess struct {
	*process
	m        *taskManager
	store    *copies.Store
	attempts int
	k        *worker // of the current attempt
	in, out  time.Duration
	over     bool // it ends, and takes no further messages

	hear   func(*wire.FromWorker) // these three are called in the task manager
	exited func(exit)
	silent func()
}

func newWorkerProcess(m *taskManager) *workerProcess {
	m.w.number++
	c := &workerProcess{process: m.w.newProcess(m.machine, fmt.Sprintf("process %d on %s", m.w.number, m.name)), m: m, store: &copies.Store{}}
	c.k = &worker{c: c}
	c.died = append(c.died, func() {
		if c.k.group != nil {
			c.k.group.reset(c.k)
		}
		c.k.closed = true
	})
	return c
}

// tell sends a message through the pipe to the process.
func (c *workerProcess) tell(m *wire.ToWorker) {
	c.in = max(c.in, c.w.now+c.w.between(20*time.Microsecond, 300*time.Microsecond))
	c.w.after(c.in-c.w.now, func() {
		c.do(func() {
			if !c.over {
				c.k.hear(m)
			}
		})
	})
}

// post sends a message through the pipe to the task manager.
func (c *workerProcess) post(f *wire.FromWorker) { c.toManager(func() { c.hear(f) }) }

func (c *workerProcess) toManager(do func()) {
	c.out = max(c.out, c.w.now+c.w.between(20*time.Microsecond, 300*time.Microsecond))
	c.w.after(c.out-c.w.now, func() { c.m.do(do) })
}

// killed ends the process by a signal.
func (c *workerProcess) killed(signal string) { c.ends(exit{-1, signal}) }

func (c *workerProcess) ends(e exit) {
	if !c.dead {
		c.kill()
		c.toManager(func() { c.exited(e) })
	}
}

// freeze stops the process. Its task manager notices when it has been silent for too long.
func (c *workerProcess) freeze() {
	c.stop()
	at := c.w.now
	c.m.after(workerSilence, func() {
		if c.stopped && !c.dead && c.w.now-at >= workerSilence {
			c.silent()
		}
	})
}

// worker is a worker in one attempt of its job. It follows engine/worker_run.go.
type worker struct {
	c      *workerProcess
	d      *wire.Deployment // nil before it is deployed
	job    *work
	state  workerlife.State
	work   *fiber // what is being done; nil if nothing is
	turn   int    // number of the last piece of work
	closed bool

	prepare   *wire.Prepare
	start     *wire.Start
	commit    *wire.Commit
	cancelled *wire.Cancel
	answer    *wire.FromWorker
	failure   *wire.Failure
	unclean   bool

	group    *group
	inbox    map[gangKey][]gangMessage
	leftGang bool
	gave     bool // it has no slots, and has done what it had to
	origin   *wire.Origin
	from     map[string]*task.Cut // states from which queues continue
	exchange *exchange
	saver    *saver
	answers  map[int]*wire.Saved
}

// failed is the error of a piece of work whose kind is known.
type failed struct {
	kind  wire.FailureKind
	retry bool
	text  string
}

func (e *failed) Error() string { return e.text }

func peerFailed(format string, args ...any) error {
	return &failed{kind: wire.PeerFailure, text: fmt.Sprintf(format, args...)}
}

func clusterFault(err error) error {
	if err == nil || errors.Is(err, errDead) {
		return err
	}
	return &failed{kind: wire.ClusterFailure, text: err.Error()}
}

// fail records the failure of the worker. The first one counts.
func (k *worker) fail(err error) {
	f := &wire.Failure{Kind: wire.UserFailure, Message: err.Error(), Worker: -1, ExitCode: -1}
	var known *failed
	if errors.As(err, &known) {
		f.Kind, f.Retry = known.kind, known.retry
	}
	if k.failure == nil {
		k.failure = f
		return
	}
	k.unclean = k.unclean || f.Kind == wire.UserFailure
}

// hear handles a message of the task manager.
func (k *worker) hear(m *wire.ToWorker) {
	if k.d == nil && k.c.attempts > 0 && m.Deployment == nil && m.Exit == nil {
		return
	}
	if m.Save != nil {
		k.save(m.Save)
		return
	}
	if m.Unwritten != nil {
		k.unwritten(m.Unwritten)
		return
	}
	e := workerlife.EventOf(k.state, m, k.d)
	switch e {
	case workerlife.HearDeploy:
		k.c.attempts++
		k.d = m.Deployment
		k.job = k.c.w.byID[k.d.Job]
	case workerlife.HearPrepare:
		k.prepare = m.Prepare
	case workerlife.HearStart:
		k.start = m.Start
	case workerlife.HearCommit:
		k.commit = m.Commit
	case workerlife.HearCancel:
		k.cancelled = m.Cancel
		if !k.state.Ending() && k.state < workerlife.Committing {
			k.fail(peerFailed("cancelled: %s", m.Cancel.Reason))
		}
	}
	k.step(e)
}

// step makes the transition for an event, and does what it says.
func (k *worker) step(e workerlife.Event) {
	before, move := k.state, k.state.Step(e)
	k.state = move.To
	w := k.c.w
	switch move.Do {
	case workerlife.DoRefuse:
		w.violated("worker %s got a message that is not for it while it was %s", k.name(), before)
	case workerlife.DoBuild:
		k.begin(k.build)
	case workerlife.DoPrepare:
		k.begin(k.prepareSinks)
	case workerlife.DoRun:
		k.begin(k.run)
	case workerlife.DoCommit:
		k.begin(k.makeVisible)
	case workerlife.DoAnswer:
		k.c.post(k.answer)
		k.answer = nil
	}
	if k.state == before {
		return
	}
	switch k.state {
	case workerlife.Stopping:
		k.work.cancel(errStopped)
		k.late(stopTimeout + time.Second)
	case workerlife.Aborting:
		k.leaveGroup()
		k.begin(k.abort)
		k.late(stopTimeout)
	case workerlife.Ended:
		k.end()
	}
}

var errStopped = &failed{kind: wire.PeerFailure, text: "the worker was told to end"}

func (k *worker) name() string {
	if k.d == nil {
		return "without a deployment"
	}
	return k.d.WorkerRef.String()
}

// begin begins a piece of work.
func (k *worker) begin(do func(f *fiber) (*wire.FromWorker, error)) {
	k.turn++
	turn := k.turn
	k.work = k.c.start(func(f *fiber) {
		answer, err := do(f)
		if f.cause == errDead {
			return
		}
		k.c.after(0, func() {
			if k.turn == turn {
				k.workEnded(answer, err)
			}
		})
	})
}

// workEnded handles the end of a piece of work.
func (k *worker) workEnded(answer *wire.FromWorker, err error) {
	k.work, k.answer = nil, answer
	switch {
	case err != nil:
		k.c.w.say("worker %s: %v", k.name(), err)
		k.fail(err)
		k.step(workerlife.WorkFailed)
	case answer != nil && answer.Resolved != nil:
		k.step(workerlife.WorkResolved)
	default:
		k.step(workerlife.WorkDone)
	}
}

// late ends the worker if its work does not end in time.
func (k *worker) late(d time.Duration) {
	turn := k.turn
	k.c.after(d, func() {
		if k.turn == turn && k.work != nil {
			k.unclean = true
			k.fail(&failed{kind: wire.UserFailure, text: "abandoned: the work did not end when the worker was told to"})
			k.step(workerlife.WorkLate)
		}
	})
}

// end sends the last message of the worker. Its process is kept, or exits.
func (k *worker) end() {
	keeps := k.d != nil && workerlife.End{
		Deployment: k.d, Cancelled: k.cancelled, Failure: k.failure,
		Committed: k.answer != nil && k.answer.Committed != nil, Unclean: k.work != nil || k.unclean,
	}.Keeps()
	switch {
	case k.answer != nil && k.answer.Committed != nil:
		k.c.post(k.answer)
	case k.failure != nil:
		f := *k.failure
		k.c.post(&wire.FromWorker{Failed: &f})
	case k.answer != nil:
		k.c.post(k.answer)
	}
	k.release()
	if keeps {
		k.c.w.say("worker %s keeps its process", k.name())
		k.c.k = &worker{c: k.c}
		k.c.post(&wire.FromWorker{Kept: &wire.Kept{}})
		return
	}
	code := 0
	if k.failure != nil {
		code = 1
	}
	k.c.over = true
	k.c.after(k.c.w.between(0, 5*time.Millisecond), func() { k.c.w.after(0, func() { k.c.ends(exit{code: code}) }) })
}

// release releases what the worker has.
func (k *worker) release() {
	k.leaveGroup()
	k.closed = true
	if k.saver != nil {
		k.saver.close()
	}
	k.exchange = nil
}

// leaveGroup closes the connections to the other workers.
func (k *worker) leaveGroup() {
	switch {
	case k.group == nil:
	case k.gave && !k.c.dead: // the others do without it
		k.group.left[k.d.Worker] = true
	default:
		k.group.reset(k)
	}
}
