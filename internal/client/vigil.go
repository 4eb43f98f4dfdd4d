package client

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Times of a vigil. They end no connection: a job manager that stands still for some seconds
// may go on, and gRPC breaks the connection after 25 s.
const (
	vigilTick  = time.Second
	askAfter   = 4 * time.Second // of silence
	answerIn   = 3 * time.Second
	standstill = 5 * time.Second // delay of a tick that shows that this process did not run
)

// vigil watches for a silent job manager while a job is followed. A job without news is silent
// too, so after a while the vigil sends a request. It logs once if no answer comes, and once
// when one comes again.
type vigil struct {
	ask  func(context.Context) error // a small request
	log  hclog.Logger
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	heard  bool          // something arrived since the last tick
	ticked time.Time     // last
	gap    time.Duration // last time for which this process did not run
	woke   time.Time     // when gap ended
}

// newVigil begins a vigil; end ends it.
func newVigil(ctx context.Context, log hclog.Logger, ask func(context.Context) error) *vigil {
	ctx, stop := context.WithCancel(ctx)
	v := &vigil{ask: ask, log: log, stop: stop, ticked: time.Now()}
	v.done.Go(func() { v.watch(ctx) })
	return v
}

// hear records that something of the job manager has arrived.
func (v *vigil) hear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = true
}

// end ends the vigil and waits for it.
func (v *vigil) end() {
	v.stop()
	v.done.Wait()
}

// turn records a tick. It returns how much of the time since the last tick counts as silence,
// and whether the job manager was heard meanwhile.
func (v *vigil) turn() (passed time.Duration, heard bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	passed = now.Sub(v.ticked)
	if passed >= standstill {
		v.gap, v.woke = passed, now
	}
	heard, v.heard, v.ticked = v.heard, false, now
	return min(passed, 2*vigilTick), heard
}

// stoodStill returns for how long this process did not run until now, or until a moment ago; 0
// if it ran.
func (v *vigil) stoodStill() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(v.ticked); gap >= standstill+answerIn {
		return gap
	}
	if v.gap > 0 && now.Sub(v.woke) < standstill {
		return v.gap
	}
	return 0
}

func (v *vigil) watch(ctx context.Context) {
	ticks := time.NewTicker(vigilTick)
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
			if unanswered += waited + vigilTick; !told {
				told = true
				v.log.Warn("the job manager has not answered for " + waited.Round(time.Second).String() + "; it may be stopped or overloaded, waiting for it")
			}
		}
	}
}

// question sends a request to the job manager, and returns how long the answer took. A refusal
// is an answer.
func (v *vigil) question(ctx context.Context) (time.Duration, error) {
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
