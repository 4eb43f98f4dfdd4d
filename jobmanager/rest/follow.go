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

// Event is something that happened to a job: exactly one field is set.
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

// events streams what happens to a job to its end, as server-sent events (WHATWG HTML, section
// 9.2): states and progress, never rows. The id of an event is the number of the last event of
// the job that the client need not get again, so that a stream that was cut can be continued.
// Status 204 tells a client that has had the end not to come back.
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

// interrupted replaces err by the end of the server if that is why a stream ended.
func (s *Server) interrupted(err error) error {
	if s.ending.Err() != nil {
		return &problem{code: http.StatusServiceUnavailable, text: "the job manager stops", hint: "ask again when it is back"}
	}
	return err
}

// resumeFrom reads which events a client wants.
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

// eventText returns an event as text, nil if it is not for this stream.
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

// sse writes an event whose data is one line.
func sse(id uint64, name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write an event in JSON: %w", err)
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, name, data), nil
}

// failureText returns the event that says why a stream ends early; it has no id.
func failureText(err error) []byte {
	p := asProblem(err)
	data, _ := json.Marshal(Error{Error: p.text, Hint: p.hint}) // two texts: cannot fail
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", eventFailure, data)
}

// logs streams what the workers of a job wrote. If not all of it can be sent, the
// connection breaks, so that nobody takes a part for the whole.
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
		return t.put(nil) // begins the answer if nothing was written
	case t.started():
		panic(http.ErrAbortHandler)
	}
	return s.interrupted(err)
}

// logRaw returns the text of one worker unchanged.
func logRaw(c *wire.LogChunk) []byte { return c.Text }

// logText begins each line with its worker.
func logText(c *wire.LogChunk) []byte {
	head := fmt.Appendf(nil, "worker %d on %s: ", c.Worker, c.TaskManager)
	if c.TaskManager == "" { // its record is lost
		head = fmt.Appendf(nil, "worker %d: ", c.Worker)
	}
	var out []byte
	for line := range bytes.Lines(c.Text) {
		out = append(append(out, head...), line...)
	}
	return out
}

func logJSON(c *wire.LogChunk) []byte {
	line, _ := json.Marshal(LogLines{Worker: c.Worker, TaskManager: c.TaskManager, Text: strings.ToValidUTF8(string(c.Text), "�")}) // of texts
	return append(line, '\n')
}
