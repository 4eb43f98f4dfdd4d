package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// LostError says that the job manager could not be reached for AwayTimeout while a job was
// followed. The job may still run.
type LostError struct {
	Address string
	Job     wire.JobID
	After   time.Duration
	Err     error // error of the last try to reach it
}

// Error returns a text that names the job and says how to find out its state.
func (e *LostError) Error() string {
	return fmt.Sprintf("the job manager at %s went away and did not come back within %v (%v); once it is back, `superstep show %s` says what became of the job",
		e.Address, e.After, e.Err, e.Job)
}

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// FollowToEnd calls handle, which may be nil, with every event of a job, and returns the job as
// it is in its last event. attach says that the job is attached to this client. If the job
// manager cannot be reached, FollowToEnd tries to reach it again for Options.AwayTimeout, and
// then asks for the events since the last event that it received. So handle gets every stored
// event once. If handle returns an error, FollowToEnd returns it unchanged. If the job manager
// does not answer, Options.Logger gets a message after some seconds.
func (c *Client) FollowToEnd(ctx context.Context, job wire.JobID, attach bool, handle func(*wire.Event) error) (*wire.JobInfo, error) {
	v := newWatchdog(ctx, c.options.Logger.With("address", c.address, "job", job), c.ask)
	defer v.end()
	f := &follower{client: c, job: job, attach: attach, handle: handle, watchdog: v}
	away := absence{watchdog: v}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		before := f.heard
		err := f.follow(ctx)
		if f.heard != before {
			away.since, pause = time.Time{}, firstPause
		}
		switch {
		case f.ended != nil:
			return f.ended, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case f.refused != nil:
			return nil, f.refused
		case !passing(err):
			return nil, c.Explain(err)
		case away.since.IsZero():
			away.begin()
			if gap := v.suspended(); gap > 0 {
				c.options.Logger.Warn(fmt.Sprintf("this process did not run for %.0fs and has lost its connection to the job manager, trying again", gap.Seconds()), "address", c.address, "job", job)
				break
			}
			c.options.Logger.Warn("the job manager is away, trying again", "address", c.address, "job", job, "error", err)
		case away.lasted() > c.options.AwayTimeout:
			return nil, &LostError{Address: c.address, Job: job, After: c.options.AwayTimeout, Err: c.Explain(err)}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// The shortest and the longest pause between tries to reach a job manager.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// follower is the state of FollowToEnd, which may need several streams.
type follower struct {
	client   *Client
	job      wire.JobID
	attach   bool
	handle   func(*wire.Event) error
	watchdog *watchdog
	last     uint64        // number of the last event
	heard    int           // number of received events of any kind
	ended    *wire.JobInfo // the job in its final state; nil before
	refused  error         // error of handle
}

// errCut is the error of a stream that ended before the job did.
var errCut = errors.New("the stream ended before the job did")

// follow opens one stream and handles its events until it ends.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.client.Follow(ctx, &wire.FollowRequest{Job: f.job, From: f.last + 1, Attach: f.attach})
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errCut
		}
		if err != nil {
			return err
		}
		f.heard++
		f.watchdog.observe()
		if e.Progress == nil && e.Number != 0 && e.Number <= f.last {
			continue // the event was handled before the last stream broke
		}
		f.last = max(f.last, e.Number)
		if f.handle != nil {
			if f.refused = f.handle(e); f.refused != nil {
				return f.refused
			}
		}
		if e.State != nil && e.State.State.Ended() {
			f.ended = e.State
			return nil
		}
	}
}

// passing reports whether err may be temporary, so that another try may succeed.
func passing(err error) bool {
	if errors.Is(err, errCut) {
		return true
	}
	switch wire.Code(err) {
	case codes.Unavailable, codes.Aborted:
		return true
	}
	return false
}
