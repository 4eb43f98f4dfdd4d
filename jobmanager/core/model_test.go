package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestAnything passes random events to the core, including events that no real component would
// send, and checks the invariants after each event. After that the simulated task managers and
// clients behave correctly, and every job must end.
func TestAnything(t *testing.T) {
	for i := range rounds {
		t.Run(fmt.Sprint("round ", i), func(t *testing.T) { rapid.Check(t, live) })
	}
}

func live(t *rapid.T) {
	w := newWorld(t)
	t.Repeat(map[string]func(*rapid.T){
		"":         func(t *rapid.T) { w.check(t) },
		"register": w.register,
		"cut":      w.cut,
		"leave":    w.leave,
		"announce": w.announce,
		"beat":     w.beat,
		"submit":   w.submit,
		"cancel":   w.cancel,
		"shell":    w.shell,
		"advance":  w.advance,
		"advance2": w.advance, // a second entry, so that advance is drawn more often
		"advance3": w.advance,
		"report":   w.report,
		"orphan":   w.orphan,
		"lose":     w.lose,
		"cordon":   w.cordon,
		"die":      w.die,
		"save":     w.save,
		"drain":    w.drain,
		"scale":    w.scale,
		"tick":     w.tick,
		"flush":    func(*rapid.T) { w.flush(t, len(w.queue)) },
		"crash":    w.crash,
	})
	w.settle(t)
}

// manager is a simulated task manager.
type manager struct {
	id      string
	inc     int
	conn    int // number of its connection; 0 if it has none
	running map[wire.WorkerRef]bool
	told    map[wire.WorkerRef]bool // workers that have got a command to end
	leaving *wire.Leaving           // what this process has announced; nil if nothing
}

type world struct {
	core     *Core
	config   Config
	base     time.Duration // time at which the core was made
	now      time.Duration
	queue    []Persist // records that are not on disk yet
	disk     map[wire.JobID]wire.JobInfo
	kept     map[wire.JobID]Resumable // what is on disk besides disk
	count    int                      // number of jobs that were ever submitted
	conns    int
	managers []*manager
	byConn   map[int]*manager // number of a current or former connection -> its task manager
	jobs     []wire.JobID
	seen     map[wire.JobID]wire.JobState // the states that followers have seen
	stored   map[wire.JobID]wire.JobState
	may      map[wire.JobID]bool // jobs whose worker 0 may commit
	refs     []wire.WorkerRef    // all workers that have ever been deployed
	owner    map[wire.WorkerRef]*manager
	slots    map[wire.WorkerRef]int
	said     map[wire.WorkerRef]map[workerEvent]bool
	heard    map[wire.WorkerRef]time.Duration // time of the last message from the worker's task manager
	gone     map[wire.WorkerRef]bool          // workers whose end their task managers have reported
	commits  map[wire.WorkerRef]bool          // workers that were deployed to finish a commit
	prepares map[wire.WorkerRef]bool          // workers 0 that were told to prepare the sinks
	resumed  map[wire.JobID]int               // number of workers deployed to finish the commit
	restart  map[wire.JobID]wire.Restart
	resolves map[wire.WorkerRef]bool        // workers that were deployed to resolve a graph
	computed map[wire.JobID]bool            // jobs that have been committing
	cordoned map[string]bool                // names of task managers
	leaves   map[*taskManager]time.Duration // task managers that leave, and the counted time at which their jobs must have left
	avoids   reference
	asked    []wire.WorkerCommand // requests for checkpoints that reached task managers or were lost
	requests int                  // number of the last request of a client
	awaited  map[int]bool         // requests of clients that are not answered
}

func newWorld(t *rapid.T) *world {
	config := Config{
		DeployTimeout: 20 * time.Second, KillAfter: 3 * time.Second, Keep: 5, Settle: time.Second, ScaleInterval: 2 * time.Second,
		Policy: Policy(rapid.IntRange(0, 1).Draw(t, "policy")),
	}
	w := &world{
		core: New(config), config: config, disk: map[wire.JobID]wire.JobInfo{}, kept: map[wire.JobID]Resumable{},
		byConn: map[int]*manager{},
		seen:   map[wire.JobID]wire.JobState{}, stored: map[wire.JobID]wire.JobState{}, may: map[wire.JobID]bool{},
		owner: map[wire.WorkerRef]*manager{}, slots: map[wire.WorkerRef]int{}, said: map[wire.WorkerRef]map[workerEvent]bool{},
		heard: map[wire.WorkerRef]time.Duration{}, gone: map[wire.WorkerRef]bool{}, commits: map[wire.WorkerRef]bool{}, prepares: map[wire.WorkerRef]bool{}, resumed: map[wire.JobID]int{}, restart: map[wire.JobID]wire.Restart{},
		resolves: map[wire.WorkerRef]bool{}, computed: map[wire.JobID]bool{},
		cordoned: map[string]bool{}, leaves: map[*taskManager]time.Duration{}, avoids: newReference(), awaited: map[int]bool{},
	}
	for i := range 3 {
		w.managers = append(w.managers, &manager{id: fmt.Sprint("m", i), running: map[wire.WorkerRef]bool{}, told: map[wire.WorkerRef]bool{}})
	}
	return w
}

// byID returns the task manager with the given ID.
func (w *world) byID(id string) *manager {
	return w.managers[slices.IndexFunc(w.managers, func(m *manager) bool { return m.id == id })]
}

func (w *world) some(t *rapid.T) *manager { return rapid.SampledFrom(w.managers).Draw(t, "manager") }

// step passes an event to the core, and checks and carries out each effect.
func (w *world) step(t require.TestingT, e Event) {
	w.hear(e)
	w.mourn(e)
	effects := w.core.Step(w.now-w.base, e)
	w.heed(e)
	w.perform(t, effects)
}

// perform checks and carries out effects.
func (w *world) perform(t require.TestingT, effects []Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case Send:
			w.deliver(t, e)
		case Disconnect:
			for _, m := range w.managers {
				if m.conn == e.Conn {
					m.conn = 0
				}
			}
		case Persist:
			_, known := w.stored[e.Job.ID]
			w.stored[e.Job.ID] = e.Job.State
			require.True(t, known || e.Spec != nil, "the first record must have the specification")
			require.Equal(t, e.Job.State.Ended(), e.Continuation == nil)
			require.Equal(t, e.Job.State == wire.JobCommitting && w.seen[e.Job.ID] != wire.JobCommitting, e.Barrier && !e.Retry)
			if e.Retry {
				w.placed(t, e)
			}
			w.queue = append(w.queue, e)
		case SaveAnswered:
			require.True(t, w.awaited[e.Request], "a request must be answered once")
			delete(w.awaited, e.Request)
		case Changed:
			w.changed(t, e.Job)
		case Forget:
			require.True(t, w.seen[e.ID].Ended())
			w.jobs = slices.DeleteFunc(w.jobs, func(id wire.JobID) bool { return id == e.ID })
			w.queue = slices.DeleteFunc(w.queue, func(p Persist) bool { return p.Job.ID == e.ID })
			delete(w.disk, e.ID)
			delete(w.kept, e.ID)
		}
	}
}

// hear records, from an event of a task manager, which of its workers run and which have ended.
func (w *world) hear(e Event) {
	var n *taskManager
	var running []wire.WorkerRef
	all := false // running has all workers of n
	switch e := e.(type) {
	case Registered:
		n = w.core.taskManagers[e.ID]
		if n != nil && (n.Incarnation != e.Incarnation || n.Slots != e.Slots || w.core.conns[e.Conn] != nil || w.core.unfit(&e.Register) != "") {
			n = nil // the registration is refused or is that of another process, so it renews no lease
		}
		running, all = e.Running, true
	case Heartbeat:
		n, running, all = w.core.conns[e.Conn], e.Running, true
	case Reported:
		if n = w.core.conns[e.Conn]; n != nil && n.workers[e.WorkerRef] != nil && e.Ended != nil {
			w.gone[e.WorkerRef] = true
		}
	case Left:
		n, all = w.core.conns[e.Conn], true
	}
	if n == nil {
		return
	}
	for ref, k := range n.workers {
		if k.pending != nil {
			continue
		}
		w.heard[ref] = w.now
		if all && !slices.Contains(running, ref) {
			w.gone[ref] = true
		}
	}
}
