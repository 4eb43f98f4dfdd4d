package client

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Times of a watchdog. They end no connection: a job manager that stands still for some seconds
// may go on, and gRPC breaks the connection after 25 s.
const (
	watchdogTick = time.Second
	askAfter     = 4 * time.Second // of silence
	answerIn     = 3 * time.Second
	suspension   = 5 * time.Second // delay of a tick that shows that this process did not run
)

// watchdog watches for a silent job manager while a job is followed. A job without news is silent
// too, so after a while the watchdog sends a request. It logs once if no answer comes, and once
// when one comes again.
type watchdog struct {
	ask  func(context.Context) error // a small request
	log  hclog.Logger
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	observed bool          // something arrived since the last tick
	ticked   time.Time     // last
	gap      time.Duration // last time for which this process did not run
	resumed  time.Time     // when gap ended
}

// newWatchdog begins a watchdog; end ends it.
func newWatchdog(ctx context.Context, log hclog.Logger, ask func(context.Context) error) *watchdog {
	ctx, stop := context.WithCancel(ctx)
	v := &watchdog{ask: ask, log: log, stop: stop, ticked: time.Now()}
	v.done.Go(func() { v.watch(ctx) })
	return v
}

// observe records that something from the job manager has arrived.
func (v *watchdog) observe() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.observed = true
}

// end ends the watchdog and waits for it.
func (v *watchdog) end() {
	v.stop()
	v.done.Wait()
}

// turn records a tick. It returns how much of the time since the last tick counts as silence,
// and whether the job manager was heard meanwhile.
func (v *watchdog) turn() (passed time.Duration, heard bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	passed = now.Sub(v.ticked)
	if passed >= suspension {
		v.gap, v.resumed = passed, now
	}
	heard, v.observed, v.ticked = v.observed, false, now
	return min(passed, 2*watchdogTick), heard
}

// suspended returns for how long this process did not run until now, or until a moment ago; 0
// if it ran.
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
		case waited >= answerIn && waited < 2*answerIn: // otherwise it was refused, or this process did not run
			if unanswered += waited + watchdogTick; !told {
				told = true
				v.log.Warn("the job manager has not answered for " + waited.Round(time.Second).String() + "; it may be stopped or overloaded, waiting for it")
			}
		}
	}
}

// question sends a request to the job manager, and returns how long the answer took. A refusal
// is an answer.
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

// ask asks the job manager for the overview and drops it.
func (c *Client) ask(ctx context.Context) error {
	_, err := c.Overview(ctx, &wire.OverviewRequest{Version: wire.Version})
	return err
}
