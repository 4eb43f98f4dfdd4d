package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

func state(number uint64, s wire.JobState) *wire.Event {
	return &wire.Event{Number: number, State: &wire.JobInfo{ID: "j", State: s}}
}

func output(number uint64, text string) *wire.Event {
	return &wire.Event{Number: number, Output: &wire.Output{Text: []byte(text)}}
}

func progress(number uint64) *wire.Event {
	return &wire.Event{Number: number, Progress: &wire.Progress{}}
}

// script returns a handler that answers the n-th call of Follow with the n-th of parts.
func script(parts ...func(stream wire.ServerStream[wire.Event]) error) func(*wire.FollowRequest, wire.ServerStream[wire.Event]) error {
	n := 0
	return func(_ *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
		n++
		return parts[n-1](stream)
	}
}

func says(err error, events ...*wire.Event) func(stream wire.ServerStream[wire.Event]) error {
	return func(stream wire.ServerStream[wire.Event]) error {
		for _, e := range events {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
		return err
	}
}

// text returns a text that describes an event.
func text(e *wire.Event) string {
	switch {
	case e.State != nil:
		return fmt.Sprintf("%d %v", e.Number, e.State.State)
	case e.Output != nil:
		return fmt.Sprintf("%d %s", e.Number, e.Output.Text)
	}
	return fmt.Sprintf("%d progress", e.Number)
}

func TestFollowToEnd(t *testing.T) {
	away := wire.Error(codes.Unavailable, "restarting")
	m := &manager{follow: script(
		says(away, state(1, wire.JobWaiting), progress(1), output(2, "a")),
		says(away),
		says(nil, output(2, "a"), output(3, "b"), progress(3)), // the stream ends without an error and before the job
		says(nil, progress(3), state(4, wire.JobFinished)),
	)}
	at, _ := serve(t, m, "")
	var got []string
	info, err := dialed(t, at, nil).FollowToEnd(t.Context(), "j", true, func(e *wire.Event) error {
		got = append(got, text(e))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, wire.JobFinished, info.State)
	require.Equal(t, []string{"1 waiting", "1 progress", "2 a", "3 b", "3 progress", "3 progress", "4 finished"}, got)
	require.Equal(t, []wire.FollowRequest{
		{Job: "j", From: 1, Attach: true}, {Job: "j", From: 3, Attach: true}, {Job: "j", From: 3, Attach: true}, {Job: "j", From: 4, Attach: true},
	}, m.asked)
}

func TestFollowThroughARestart(t *testing.T) {
	first := &manager{}
	restarting := make(chan struct{})
	first.follow = func(_ *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
		if err := stream.Send(state(1, wire.JobRunning)); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	at, stop := serve(t, first, "")
	restarted := make(chan struct{})
	second := &manager{follow: script(says(nil, state(2, wire.JobFailed)))}
	go func() {
		defer close(restarted)
		<-restarting
		stop()
		serve(t, second, at)
	}()
	info, err := dialed(t, at, nil).FollowToEnd(t.Context(), "j", false, func(e *wire.Event) error {
		if e.Number == 1 {
			close(restarting)
		}
		return nil
	})
	<-restarted
	require.NoError(t, err)
	require.Equal(t, wire.JobFailed, info.State)
	require.Equal(t, uint64(2), second.asked[0].From)
}

func TestFollowLost(t *testing.T) {
	m := &manager{}
	m.follow = script(says(wire.Error(codes.Unavailable, "going down"), state(1, wire.JobRunning)))
	at, stop := serve(t, m, "")
	c := dialed(t, at, func(o *Options) { o.AwayTimeout = 100 * time.Millisecond })
	_, err := c.FollowToEnd(t.Context(), "j", true, func(*wire.Event) error { go stop(); return nil })
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, wire.JobID("j"), lost.Job)
	require.ErrorContains(t, err, "the job manager at "+at+" went away and did not come back within 100ms")
	require.ErrorContains(t, err, "`superstep show j`")
	stop()
}

func TestFollowErrors(t *testing.T) {
	m := &manager{}
	at, _ := serve(t, m, "")
	c := dialed(t, at, nil)

	m.follow = script(says(wire.Error(codes.NotFound, "there is no job j")))
	_, err := c.FollowToEnd(t.Context(), "j", true, nil)
	require.EqualError(t, err, "there is no job j")

	broken := errors.New("the disk is full")
	m.follow = script(says(nil, output(1, "a"), output(2, "b")))
	_, err = c.FollowToEnd(t.Context(), "j", true, func(*wire.Event) error { return broken })
	require.Equal(t, broken, err)

	m.follow = func(_ *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	_, err = c.FollowToEnd(ctx, "j", true, nil)
	require.Equal(t, broken, err)
}
