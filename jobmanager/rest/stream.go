package rest

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// grace is how long a stream waits for its first piece, or for an error to answer with,
// before it begins with nothing.
const grace = 500 * time.Millisecond

// stream is an answer in pieces that are flushed one by one. Each has WriteTimeout to
// be read: a client that stops reading is cut. It is safe for concurrent use.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	media string
	ctx   context.Context // of the request; ends with the server's streams too
	stop  context.CancelFunc
	beats sync.WaitGroup
	after func() bool

	mu    sync.Mutex
	begun bool
	err   error // of the first write that failed
}

// newStream takes a place for a stream. A stream without a media type begins with its first
// piece, before which the type is set. Any other begins by itself after a moment; until end is
// called it sends beat, if that is not "", whenever nothing was sent for an interval.
func (s *Server) newStream(w http.ResponseWriter, r *http.Request, media, beat string) (*stream, error) {
	select {
	case s.streams <- struct{}{}:
	default:
		return nil, errBusy
	}
	t := &stream{s: s, w: w, media: media}
	t.ctx, t.stop = context.WithCancel(r.Context())
	t.after = context.AfterFunc(s.ending, t.stop)
	// The request is read, so its read deadline is of no use any more; if it passed, the client
	// would count as gone.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if media != "" {
		t.beats.Go(func() { t.beat(beat) })
	}
	return t, nil
}

// end gives the place back. Nothing is written after that.
func (t *stream) end() {
	t.after()
	t.stop()
	t.beats.Wait()
	<-t.s.streams
}

// beat shows a client that the stream is alive, and finds out if the client is gone.
func (t *stream) beat(text string) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-t.ctx.Done():
			return
		}
		t.mu.Lock()
		begun := t.begun
		t.mu.Unlock()
		if begun && text == "" {
			return
		}
		if t.put([]byte(text)) != nil {
			t.stop()
			return
		}
		timer.Reset(t.s.config.Heartbeat)
	}
}

// put writes a piece and flushes it.
func (t *stream) put(piece []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.s.grant(t.w)
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", t.media)
		t.w.Header().Set("X-Accel-Buffering", "no") // proxies would hold it back
		t.w.WriteHeader(http.StatusOK)
	}
	if len(piece) > 0 {
		if _, t.err = t.w.Write(piece); t.err != nil {
			return t.err
		}
	}
	t.err = http.NewResponseController(t.w).Flush()
	return t.err
}

// started reports whether the answer has begun, with the status of success.
func (t *stream) started() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun
}

// gone reports whether the client is gone.
func (t *stream) gone(r *http.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil || r.Context().Err() != nil
}
