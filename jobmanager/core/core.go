package core

import (
	"maps"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Core has the state of the job manager and makes its decisions. It is not safe for concurrent
// use.
type Core struct {
	config Config
	epoch  time.Time     // wall-clock time at time zero of the core's clock
	now    time.Duration // time of the event being processed
	clock  silence.Clock // measures all waits, such as for heartbeats and for slots
	still  standstill

	conns        map[int]*taskManager    // number of a connection -> task manager that is registered on it
	taskManagers map[string]*taskManager // task managers that are neither lost nor left, by ID
	order        []*taskManager          // the same task managers, sorted by name
	gone         []*taskManager          // the last few task managers that were lost or left, to be shown to users

	saveNumber int                    // number of the last request for a checkpoint
	cordons    map[string]wire.Cordon // name of task managers that get no new workers -> why
	avoid      avoidance

	jobs  map[wire.JobID]*job
	live  []*job // jobs that have not ended or still have workers, in order of submission
	ended []*job // jobs that have ended, in the order in which they ended

	entered time.Time // latest time of submission of a live job, or one before

	counters Counters

	balancing balancing
	rethink   bool // slots or waiting jobs have changed since the last call of schedule
	effects   []Effect
}

// New returns a core whose history is config.History.
func New(config Config) *Core {
	c := &Core{
		config:       config.withDefaults(),
		epoch:        config.Started,
		clock:        silence.NewClock(TickEvery),
		conns:        make(map[int]*taskManager),
		taskManagers: make(map[string]*taskManager),
		cordons:      make(map[string]wire.Cordon),
		jobs:         make(map[wire.JobID]*job),
		counters:     Counters{Lost: make(map[wire.FailureKind]uint64)},
		saveNumber:   firstSave(config.Started),
	}
	maps.Copy(c.cordons, config.Cordons)
	c.config.History, c.config.Resume, c.config.Doubts, c.config.Cordons = nil, nil, nil, nil
	c.recover(config)
	return c
}

// Recover returns the effects for the recorded jobs. They must be performed before all other
// effects. If Recover is not called, the first Step returns these effects.
func (c *Core) Recover() []Effect { return c.flush() }

// Step processes an event at time now and returns its effects, in the order in which they must
// be performed. If now is earlier than the time of the last event, Step uses the time of the
// last event. The caller owns the returned slice. Neither the core nor the caller may modify
// the data to which the effects point, except that the caller sets the credential of a
// Deployment.
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
	case LeaveAnnounced:
		c.leaveAnnounced(e)
	case Left:
		c.left(e)
	case Disconnected:
		c.disconnected(e)
	case ProcessEnded:
		c.processEnded(e)
	case Submitted:
		c.submit(e)
	case Compiled:
		c.compiled(e)
	case CancelAsked:
		c.cancelAsked(e)
	case Cordoned:
		c.cordoned(e)
	case Uncordoned:
		c.uncordoned(e)
	case SaveAsked:
		c.saveAsked(e)
	case Drained:
		c.drained(e)
	case Scaled:
		c.scaled(e)
	case Persisted:
		c.persisted(e)
	case Tick:
		c.tick()
	}
	if c.rethink {
		c.schedule()
		c.rethink = false
		c.unsettle()
	}
	return c.flush()
}

func (c *Core) flush() []Effect {
	effects := c.effects
	c.effects = nil
	return effects
}

func (c *Core) emit(e Effect) { c.effects = append(c.effects, e) }

// wall returns the wall-clock time of the event being processed.
func (c *Core) wall() time.Time { return c.epoch.Add(c.now) }

// tick advances the clock and checks all deadlines.
func (c *Core) tick() {
	c.clock.Tick(c.now)
	// The loops use copies, because watch and failOverdue may remove elements from both lists.
	for _, n := range slices.Clone(c.order) {
		c.watch(n)
	}
	for _, j := range slices.Clone(c.live) {
		c.failOverdue(j)
	}
	c.rebalance()
}
