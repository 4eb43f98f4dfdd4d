package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// sent is one server-sent event.
type sent struct{ id, name, data string }

// parseEvents parses the text of a stream by the rules for browsers: a blank line ends an
// event, and a line that begins with a colon is a comment.
func parseEvents(t testing.TB, text string) (events []sent, comments int) {
	require.True(t, text == "" || strings.HasSuffix(text, "\n\n"), text)
	for _, block := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e sent
		for _, line := range strings.Split(block, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "":
				comments++
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			default:
				t.Fatalf("unknown field %q", line)
			}
		}
		if e != (sent{}) {
			events = append(events, e)
		}
	}
	return events, comments
}

func outline(events []sent) (all []string) {
	for _, e := range events {
		all = append(all, e.id+" "+e.name)
	}
	return all
}

func TestEventsFromTheBeginning(t *testing.T) {
	s := serve(t, newFake(t), nil)
	doc := described(t, s)
	got := s.ask("GET /api/v1/jobs/run/events", "")
	require.Equal(t, mediaEvents, got.header.Get("Content-Type"))
	require.NotContains(t, got.body, "rows\":\"")
	require.NotContains(t, got.body, "secret")
	events, _ := parseEvents(t, got.body)
	require.Equal(t, []string{"1 state", "2 progress", "3 state", "4 state"}, outline(events))
	for _, e := range events {
		require.NoError(t, checkJSON(doc, e.name, map[string]any{"$ref": "#/components/schemas/Event"}, e.data))
	}
	var last Event
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(events[3].data, `"NaN"`, "0")), &last))
	require.Equal(t, "finished", last.Job.State)
	require.Contains(t, events[1].data, `{"name":"inertia","value":"NaN"}`)
}

// TestEventsResume requires that a client can continue a stream after the last ID that it has
// received, wherever the stream broke.
func TestEventsResume(t *testing.T) {
	s := serve(t, newFake(t), nil)
	whole, _ := parseEvents(t, s.ask("GET /api/v1/jobs/run/events", "").body)
	for cut := range whole {
		got := s.ask("GET /api/v1/jobs/run/events", "", "Last-Event-ID: "+whole[cut].id)
		if cut == len(whole)-1 {
			require.Equal(t, http.StatusNoContent, got.code)
			require.Empty(t, got.body)
			continue
		}
		rest, _ := parseEvents(t, got.body)
		require.Equal(t, outline(whole[cut+1:])[len(whole[cut+1:])-len(rest):], outline(rest))
		require.Equal(t, whole[len(whole)-1], rest[len(rest)-1])
		for _, e := range whole[cut+1:] { // no stored event may be missing
			if e.name == eventState {
				require.Contains(t, rest, e)
			}
		}
	}
	for _, bad := range []string{"x", "-1", "18446744073709551615", "18446744073709551616", "1.5"} {
		require.Equal(t, http.StatusBadRequest, s.ask("GET /api/v1/jobs/run/events", "", "Last-Event-ID: "+bad).code, bad)
	}
}

// quiet is a Watch of a job without events; it returns at the end of ctx.
func quiet(ctx context.Context, _ uint64, _ func(*wire.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestHeartbeatsWhileNothingHappens(t *testing.T) {
	f := newFake(t)
	f.watch = quiet
	s := serve(t, f, func(c *Config) {
		c.Heartbeat = time.Millisecond
		c.ReadTimeout = 600 * time.Millisecond
		c.WriteTimeout = 600 * time.Millisecond
	})
	r, err := s.get(client(t), "/api/v1/jobs/run/events")
	for tries := 1; err != nil && tries < 50; tries++ { // on a busy machine the server may read the request too late
		r, err = s.get(client(t), "/api/v1/jobs/run/events")
	}
	require.NoError(t, err)
	defer r.Body.Close()
	lines, began := bufio.NewReader(r.Body), time.Now()
	for time.Since(began) < 2*time.Second { // this is longer than all timeouts of a request
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.True(t, line == "\n" || strings.HasPrefix(line, ":"), line)
	}
}

// TestCloseEndsStreams requires that when the server closes, its streams end with a message
// that says so.
func TestCloseEndsStreams(t *testing.T) {
	f := newFake(t)
	f.watch = quiet
	following := make(chan struct{})
	f.log = func(ctx context.Context, _ *wire.LogsRequest, send func(*wire.LogChunk) error) error {
		if err := send(&wire.LogChunk{Text: []byte("line\n")}); err != nil {
			return err
		}
		close(following)
		<-ctx.Done()
		return ctx.Err()
	}
	s := serve(t, f, func(c *Config) { c.Heartbeat = time.Millisecond })
	events, err := s.get(client(t), "/api/v1/jobs/run/events")
	require.NoError(t, err)
	logs, err := s.get(client(t), "/api/v1/jobs/run/logs?follow=true")
	require.NoError(t, err)
	<-following
	require.NoError(t, s.Close())
	text := readAll(t, events.Body)
	all, _ := parseEvents(t, text)
	require.Equal(t, []string{" failure"}, outline(all))
	require.Contains(t, all[0].data, "the job manager stops")
	_, err = io.ReadAll(logs.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a client must be able to detect an incomplete log")
	logs.Body.Close()
	require.Empty(t, s.streams)
}

// TestClientGoesAway requires that the call of Watch for a client ends when the client
// disconnects.
func TestClientGoesAway(t *testing.T) {
	f := newFake(t)
	over := make(chan error)
	f.watch = func(ctx context.Context, from uint64, send func(*wire.Event) error) error {
		err := quiet(ctx, from, send)
		over <- err
		return err
	}
	s := serve(t, f, func(c *Config) { c.Heartbeat = time.Hour })
	r, err := s.get(client(t), "/api/v1/jobs/run/events")
	require.NoError(t, err)
	r.Body.Close()
	require.ErrorIs(t, <-over, context.Canceled)
}

// TestClientStopsReading requires that the connection of a client that stops reading is closed,
// both for events and for logs.
func TestClientStopsReading(t *testing.T) {
	f := newFake(t)
	over := make(chan error, 2)
	f.log = func(_ context.Context, _ *wire.LogsRequest, send func(*wire.LogChunk) error) error {
		for {
			if err := send(&wire.LogChunk{Text: []byte(strings.Repeat("x", 64<<10) + "\n")}); err != nil {
				over <- err
				return err
			}
		}
	}
	f.watch = func(_ context.Context, _ uint64, send func(*wire.Event) error) error {
		for n := uint64(1); ; n++ {
			if err := send(&wire.Event{Number: n, State: &wire.JobInfo{Detail: strings.Repeat("x", 64<<10)}}); err != nil {
				over <- err
				return err
			}
		}
	}
	s := serve(t, f, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond })
	for _, what := range []string{"logs", "events"} {
		_, err := io.WriteString(s.dial(), s.header("GET", "/api/v1/jobs/run-1/"+what, ""))
		require.NoError(t, err)
		require.ErrorIs(t, <-over, os.ErrDeadlineExceeded, what)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	f := newFake(t)
	f.watch = quiet
	s := serve(t, f, func(c *Config) { c.MaxStreams = 1; c.Heartbeat = time.Hour })
	r, err := s.get(client(t), "/api/v1/jobs/run/events")
	require.NoError(t, err)
	defer r.Body.Close()
	for _, what := range []string{"events", "logs"} {
		got := s.ask("GET /api/v1/jobs/run/"+what, "")
		require.Equal(t, http.StatusServiceUnavailable, got.code)
		require.NotEmpty(t, got.header.Get("Retry-After"))
		require.Contains(t, got.problem(t).Error, "streams")
	}
	require.Equal(t, http.StatusOK, s.ask("GET /api/v1/jobs", "").code)
}

// TestEventsThatAreLost requires that an error after the first event is sent as an event, and
// that an earlier error is the answer to the request.
func TestEventsThatAreLost(t *testing.T) {
	f := newFake(t)
	lost := wire.Error(codes.DataLoss, "2 of 4 events are there")
	f.watch = func(context.Context, uint64, func(*wire.Event) error) error { return lost }
	s := serve(t, f, nil)
	got := s.ask("GET /api/v1/jobs/run/events", "")
	require.Equal(t, http.StatusInternalServerError, got.code)
	require.Equal(t, "2 of 4 events are there", got.problem(t).Error)

	f.watch = func(_ context.Context, _ uint64, send func(*wire.Event) error) error {
		return errors.Join(send(&wire.Event{Number: 1, State: &f.jobs[0]}), lost)
	}
	events, _ := parseEvents(t, s.ask("GET /api/v1/jobs/run/events", "").body)
	require.Equal(t, []string{"1 state", " failure"}, outline(events))
	require.Contains(t, events[1].data, "2 of 4 events are there")
}

func TestLogs(t *testing.T) {
	s := serve(t, newFake(t), nil)
	require.Equal(t, "worker 0 on tm: one\nworker 0 on tm: two\xff\nworker 1 on tm: one\nworker 1 on tm: two\xff\n", s.ask("GET /api/v1/jobs/run/logs", "").body)
	require.Equal(t, "one\ntwo\xff\n", s.ask("GET /api/v1/jobs/run/logs?worker=1", "").body)
	require.Empty(t, s.ask("GET /api/v1/jobs/run/logs?worker=7", "").body)
	doc := described(t, s)
	lines := strings.SplitAfter(s.ask("GET /api/v1/jobs/run/logs?form=json", "").body, "\n")
	require.Len(t, lines, 3)
	for i, line := range lines[:2] {
		require.NoError(t, checkJSON(doc, "log", map[string]any{"$ref": "#/components/schemas/LogLines"}, line))
		var l LogLines
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		require.Equal(t, LogLines{Worker: i, TaskManager: "tm", Text: "one\ntwo�\n"}, l)
	}
}
