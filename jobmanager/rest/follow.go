package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Event is an event of a job. Exactly one field is set.
type Event struct {
	Job      *Job      `json:"job,omitempty" doc:"the job in its new state"`
	Progress *Progress `json:"progress,omitempty"`
}

// names of server-sent events.
const (
	eventState    = "state"
	eventProgress = "progress"
	eventFailure  = "failure" // the stream failed; the data is an Error
)

// events streams the events of a job until its end, as server-sent events (WHATWG HTML, section
// 9.2): states and progress, never rows. When a client has received an event, it need not
// receive again the job's events up to the number that is the event's id. So a client can
// continue a stream that broke. If a client that has received the final state reconnects, it
// gets status 204, on which it must not reconnect again.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	from, err := resumeFrom(r)
	if err != nil {
		return err
	}
	t, err := s.newStream(w, r, mediaEvents, ": the job has not ended\n\n")
	if err != nil {
		return err
	}
	err = func() error {
		defer t.end()
		req := wire.FollowRequest{Job: wire.JobID(r.PathValue("id")), From: from}
		err := s.config.Manager.Watch(t.ctx, &req, func(e *wire.Event) error {
			piece, err := eventText(e)
			if err != nil || piece == nil {
				return err
			}
			return t.put(piece)
		})
		if err != nil && t.started() && !t.gone(r) {
			return t.put(failureText(s.interrupted(err)))
		}
		return err
	}()
	switch {
	case t.started() || t.gone(r):
		return nil
	case err != nil:
		return s.interrupted(err)
	}
	s.grant(w)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// interrupted returns err or, if the stream ended because the server stops, an error that says
// so.
func (s *Server) interrupted(err error) error {
	if s.ending.Err() != nil {
		return &problem{code: http.StatusServiceUnavailable, text: "the job manager stops", hint: "ask again when it is back"}
	}
	return err
}

// resumeFrom returns the number of the first event that the client requests by its header
// Last-Event-ID.
func resumeFrom(r *http.Request) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return 0, nil
	}
	last, err := strconv.ParseUint(text, 10, 64)
	if err != nil || last == math.MaxUint64 {
		return 0, badRequest("send the id of the last event as it came", "Last-Event-ID %q is not the number of an event", clip(text))
	}
	return last + 1, nil
}

// eventText returns an event as the text of a server-sent event, or nil if the stream does not
// send events of this kind.
func eventText(e *wire.Event) ([]byte, error) {
	switch {
	case e.State != nil:
		j := jobOf(e.State)
		return sse(e.Number, eventState, Event{Job: &j})
	case e.Progress != nil:
		return sse(e.Number, eventProgress, Event{Progress: progressOf(e.Progress)})
	}
	return nil, nil
}

// sse returns the text of a server-sent event whose data is v in JSON, on one line.
func sse(id uint64, name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write an event in JSON: %w", err)
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, name, data), nil
}

// failureText returns the text of an event without an id that says why a stream ends early.
func failureText(err error) []byte {
	p := asProblem(err)
	data, _ := json.Marshal(Error{Error: p.text, Hint: p.hint}) // cannot fail for two strings
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", eventFailure, data)
}

// logs streams the output of the workers of a job. If it cannot send the whole output, it
// aborts the connection, so that no client takes a part of the output for the whole.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	req := wire.LogsRequest{Job: wire.JobID(r.PathValue("id")), Worker: number(r, "worker", -1), Follow: query.Get("follow") == "true"}
	media, write := mediaText, logText
	switch {
	case query.Get("form") == "json":
		media, write = mediaLines, logJSON
	case req.Worker >= 0:
		write = logRaw
	}
	t, err := s.newStream(w, r, media, "")
	if err != nil {
		return err
	}
	err = func() error {
		defer t.end()
		return s.config.Manager.Log(t.ctx, &req, func(c *wire.LogChunk) error { return t.put(write(c)) })
	}()
	switch {
	case t.gone(r):
		return nil
	case err == nil:
		return t.put(nil) // this begins the answer if nothing was written before
	case t.started():
		panic(http.ErrAbortHandler)
	}
	return s.interrupted(err)
}

// logRaw returns the text of one worker unchanged.
func logRaw(c *wire.LogChunk) []byte { return c.Text }

// logText returns the lines of a chunk, each preceded by its worker and task manager.
func logText(c *wire.LogChunk) []byte {
	head := fmt.Appendf(nil, "worker %d on %s: ", c.Worker, c.TaskManager)
	if c.TaskManager == "" { // it is not known where the worker ran
		head = fmt.Appendf(nil, "worker %d: ", c.Worker)
	}
	var out []byte
	for line := range bytes.Lines(c.Text) {
		out = append(append(out, head...), line...)
	}
	return out
}

func logJSON(c *wire.LogChunk) []byte {
	line, _ := json.Marshal(LogLines{Worker: c.Worker, TaskManager: c.TaskManager, Text: strings.ToValidUTF8(string(c.Text), "�")}) // cannot fail for strings
	return append(line, '\n')
}
