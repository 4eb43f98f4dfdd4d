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
	now    time.Duration // time of the event being processed
	clock  silence.Clock // measures waits: for heartbeats, for workers to be ready, for slots
	still  standstill

	conns        map[int]*taskManager    // that are registered
	taskManagers map[string]*taskManager // not gone, by ID
	order        []*taskManager          // the same, by name
	gone         []*taskManager          // the last few, for people

	jobs  map[wire.JobID]*job
	live  []*job // that have not ended or still have workers, in order of submission
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

// Recover returns the effects for the jobs on record, which come before all others. If it is
// not called, the first Step returns them.
func (c *Core) Recover() []Effect { return c.flush() }

// Step processes an event and returns its effects, in order. Times never run backwards. The
// caller owns the effects. The core does not modify what they point to, and the caller must not
// either, except for the credential of a Deployment.
func (c *Core) Step(now time.Duration, event Event) []Effect {
	c.now = max(c.now, now)
	c.clock.Begin(c.now)
	c.checkStandstill()
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

// wall returns the wall clock at the event being processed.
func (c *Core) wall() time.Time { return c.epoch.Add(c.now) }

// tick checks all deadlines.
func (c *Core) tick() {
	c.clock.Tick(c.now)
	// The loops may change both lists: they remove lost task managers and ended jobs.
	for _, n := range slices.Clone(c.order) {
		c.watch(n)
	}
	for _, j := range slices.Clone(c.live) {
		c.failOverdue(j)
	}
}
