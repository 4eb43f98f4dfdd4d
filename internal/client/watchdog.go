package client

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Times of a watchdog. The watchdog ends no connection: a job manager that was stopped for some
// seconds may continue. gRPC closes a silent connection after 25 s.
const (
	watchdogTick = time.Second
	askAfter     = 4 * time.Second // silence after which the watchdog sends a request
	answerIn     = 3 * time.Second
	suspension   = 5 * time.Second // time between two ticks that shows that this process did not run
)

// watchdog detects a job manager that does not answer while a job is followed. There may also
// be no events because nothing happens to the job, so after askAfter the watchdog sends a
// request. It logs once if there is no answer, and once when there is an answer again.
type watchdog struct {
	ask  func(context.Context) error // sends a small request and waits for the answer
	log  hclog.Logger
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	observed bool          // an event arrived since the last tick
	ticked   time.Time     // time of the last tick
	gap      time.Duration // length of the last time in which this process did not run
	resumed  time.Time     // when gap ended
	asleep   time.Duration // sum of all times in which this process did not run
}

// newWatchdog starts a watchdog. The caller must call end.
func newWatchdog(ctx context.Context, log hclog.Logger, ask func(context.Context) error) *watchdog {
	ctx, stop := context.WithCancel(ctx)
	v := &watchdog{ask: ask, log: log, stop: stop, ticked: time.Now()}
	v.done.Go(func() { v.watch(ctx) })
	return v
}

// observe records that an event has arrived from the job manager.
func (v *watchdog) observe() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.observed = true
}

// end stops the watchdog and waits until its goroutine has ended.
func (v *watchdog) end() {
	v.stop()
	v.done.Wait()
}

// turn records a tick. It returns how much of the time since the last tick counts as silence,
// and whether an event arrived since then.
func (v *watchdog) turn() (passed time.Duration, heard bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	passed = now.Sub(v.ticked)
	if passed >= suspension {
		v.gap, v.resumed = passed, now
		v.asleep += passed
	}
	heard, v.observed, v.ticked = v.observed, false, now
	return min(passed, 2*watchdogTick), heard
}

// suspended returns the length of the time in which this process did not run, if that time ends
// now or ended less than suspension ago. Otherwise it returns 0.
func (v *watchdog) suspended() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(v.ticked); gap >= suspension+answerIn {
		return gap
	}
	if v.gap > 0 && now.Sub(v.resumed) < suspension {
		return v.gap
	}
	return 0
}

// slept returns for how long this process did not run, in all.
func (v *watchdog) slept() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if gap := time.Since(v.ticked); gap >= suspension+answerIn { // the next tick will add it
		return v.asleep + gap
	}
	return v.asleep
}

// absence is the time in which a job manager cannot be reached. Time in which this process did
// not run is not part of it, because the job manager may have been there.
type absence struct {
	*watchdog
	since  time.Time     // zero while the job manager can be reached
	before time.Duration // what slept had returned then
}

// begin begins an absence.
func (a *absence) begin() { a.since, a.before = time.Now(), a.slept() }

// lasted returns the length of the absence.
func (a *absence) lasted() time.Duration { return time.Since(a.since) - (a.slept() - a.before) }

func (v *watchdog) watch(ctx context.Context) {
	ticks := time.NewTicker(watchdogTick)
	defer ticks.Stop()
	var silent, unanswered time.Duration
	told := false
	answered := func() {
		if told {
			v.log.Info("the job manager answers again", "after", unanswered.Round(time.Second))
		}
		silent, unanswered, told = 0, 0, false
	}
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		passed, heard := v.turn()
		if heard {
			answered()
			continue
		}
		if silent += passed; silent < askAfter && !told {
			continue
		}
		waited, err := v.question(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			answered()
		case waited >= answerIn && waited < 2*answerIn: // outside this range, the request failed for another reason, or this process did not run
			if unanswered += waited + watchdogTick; !told {
				told = true
				v.log.Warn("the job manager has not answered for " + waited.Round(time.Second).String() + "; it may be stopped or overloaded, waiting for it")
			}
		}
	}
}

// question sends a request to the job manager, and returns the time until its answer. A refusal
// counts as an answer, and is no error.
func (v *watchdog) question(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	err := v.ask(bounded)
	if err != nil && !passing(err) && bounded.Err() == nil {
		err = nil
	}
	return time.Since(began), err
}

// ask asks the job manager for an Overview and drops it.
func (c *Client) ask(ctx context.Context) error {
	_, err := c.Overview(ctx, &wire.OverviewRequest{Version: wire.Version})
	return err
}
