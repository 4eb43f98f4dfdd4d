package core

import (
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Core is the state of the job manager. It is not safe for concurrent use.
type Core struct {
	config Config
	epoch  time.Time     // the wall clock at time zero
	now    time.Duration // of the event at hand
	clock  silence.Clock // by which it waits: for a task manager to be heard, for workers to be ready, for slots
	still  standstill

	conns        map[int]*taskManager    // that are registered
	taskManagers map[string]*taskManager // not gone, by ID
	order        []*taskManager          // the same, by name
	gone         []*taskManager          // the last few, for people

	jobs  map[wire.JobID]*job
	live  []*job // that have not ended or have workers yet, in order of submission
	ended []*job // in the order in which they ended

	rethink bool // slots or the queue have changed
	effects []Effect
}

// New returns a core with the jobs on record as its history.
func New(config Config) *Core {
	c := &Core{
		config:       config.withDefaults(),
		epoch:        config.Started,
		clock:        silence.NewClock(TickEvery),
		conns:        make(map[int]*taskManager),
		taskManagers: make(map[string]*taskManager),
		jobs:         make(map[wire.JobID]*job),
	}
	c.config.History, c.config.Resume, c.config.Doubts = nil, nil, nil
	c.recover(config)
	return c
}

// Recover returns what is to be done about the jobs on record before anything else;
// if it is not called, the first Step returns it.
func (c *Core) Recover() []Effect { return c.flush() }

// Step takes in an event and returns what is to be done about it, in order. Times
// never run backwards. The caller owns the effects; what they point to is not modified
// by the core any more and must not be by the caller, the credential of a Deployment
// excepted.
func (c *Core) Step(now time.Duration, event Event) []Effect {
	c.now = max(c.now, now)
	c.clock.Begin(c.now)
	c.awake()
	switch e := event.(type) {
	case Registered:
		c.register(e)
	case Heartbeat:
		c.heartbeat(e)
	case Reported:
		c.reported(e)
	case Left:
		c.left(e)
	case Disconnected:
		c.disconnected(e)
	case Submitted:
		c.submit(e)
	case Compiled:
		c.compiled(e)
	case CancelAsked:
		c.cancelAsked(e)
	case Persisted:
		c.persisted(e)
	case Tick:
		c.tick()
	}
	if c.rethink {
		c.schedule()
		c.rethink = false
	}
	return c.flush()
}

func (c *Core) flush() []Effect {
	effects := c.effects
	c.effects = nil
	return effects
}

func (c *Core) emit(e Effect) { c.effects = append(c.effects, e) }

// wall returns the wall clock of the event at hand.
func (c *Core) wall() time.Time { return c.epoch.Add(c.now) }

// tick looks at all that waits.
func (c *Core) tick() {
	c.clock.Tick(c.now)
	// Both lists change under the loops: a lost task manager leaves one, a job that ends
	// the other.
	for _, n := range slices.Clone(c.order) {
		c.watch(n)
	}
	for _, j := range slices.Clone(c.live) {
		c.hurry(j)
	}
}
