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

// LostError says that the job manager went away while a job was followed, and did
// not come back in time. The job may go on without its client.
type LostError struct {
	Address string
	Job     wire.JobID
	After   time.Duration
	Err     error // the last attempt's
}

// Error names the job and says how to look for it.
func (e *LostError) Error() string {
	return fmt.Sprintf("the job manager at %s went away and did not come back within %v (%v); once it is back, `superstep show %s` says what became of the job",
		e.Address, e.After, e.Err, e.Job)
}

// Unwrap returns the error of the last attempt.
func (e *LostError) Unwrap() error { return e.Err }

// FollowToEnd calls handle, which may be nil, with everything that happens to a job, and
// returns the job as in its last event. attach says that the job belongs to this client. If the
// job manager is away, FollowToEnd waits for it up to Options.AwayTimeout, and then asks for
// the events since; handle gets every kept event once. An error of handle ends following and is
// returned unchanged. If the job manager does not answer, Options.Logger gets a message after
// some seconds.
func (c *Client) FollowToEnd(ctx context.Context, job wire.JobID, attach bool, handle func(*wire.Event) error) (*wire.JobInfo, error) {
	v := newWatchdog(ctx, c.options.Logger.With("address", c.address, "job", job), c.ask)
	defer v.end()
	f := &follower{client: c, job: job, attach: attach, handle: handle, watchdog: v}
	var away time.Time // since when the job manager is away; zero: it is there
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		before := f.heard
		err := f.follow(ctx)
		if f.heard != before {
			away, pause = time.Time{}, firstPause
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
		case away.IsZero():
			away = time.Now()
			if gap := v.suspended(); gap > 0 {
				c.options.Logger.Warn(fmt.Sprintf("this process did not run for %.0fs and has lost its connection to the job manager, trying again", gap.Seconds()), "address", c.address, "job", job)
				break
			}
			c.options.Logger.Warn("the job manager is away, trying again", "address", c.address, "job", job, "error", err)
		case time.Since(away) > c.options.AwayTimeout:
			return nil, &LostError{Address: c.address, Job: job, After: c.options.AwayTimeout, Err: c.Explain(err)}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Pauses between attempts to reach a job manager that is away.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// follower is the state of following a job over several streams.
type follower struct {
	client   *Client
	job      wire.JobID
	attach   bool
	handle   func(*wire.Event) error
	watchdog *watchdog
	last     uint64        // number of the last event
	heard    int           // events of any kind
	ended    *wire.JobInfo // the job in its final state
	refused  error         // of handle
}

// errCut says that the stream ended before the job did.
var errCut = errors.New("the stream ended before the job did")

// follow reads one stream to its end.
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
			continue // handled before the stream broke
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

// passing reports whether another try may succeed after an error.
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
