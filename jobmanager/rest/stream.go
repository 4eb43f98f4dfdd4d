package rest

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// grace is how long a stream waits for its first piece or an error. Then it sends the headers
// of a successful answer without a piece.
const grace = 500 * time.Millisecond

// stream is an answer that consists of pieces, each of which is flushed. If a client does not
// read a piece within WriteTimeout, its connection is closed. A stream is safe for concurrent
// use.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	media string
	ctx   context.Context // context of the request; also done when the server ends its streams
	stop  context.CancelFunc
	beats sync.WaitGroup
	after func() bool

	mu    sync.Mutex
	begun bool
	err   error // error of the first write that failed
}

// newStream returns a new stream, or an error if MaxStreams are open. If media is "", the
// stream begins with its first piece, and the caller must set t.media before the first piece.
// Otherwise the stream begins after grace at the latest. If beat is also not "", the stream
// sends beat once in every Config.Heartbeat until end is called.
func (s *Server) newStream(w http.ResponseWriter, r *http.Request, media, beat string) (*stream, error) {
	select {
	case s.streams <- struct{}{}:
	default:
		return nil, errBusy
	}
	t := &stream{s: s, w: w, media: media}
	t.ctx, t.stop = context.WithCancel(r.Context())
	t.after = context.AfterFunc(s.ending, t.stop)
	// The request was read, so its read deadline is not needed any more. When the deadline had
	// passed, net/http would consider the client disconnected.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if media != "" {
		t.beats.Go(func() { t.beat(beat) })
	}
	return t, nil
}

// end ends the stream, so that another stream can be opened. After end, nothing is written.
func (t *stream) end() {
	t.after()
	t.stop()
	t.beats.Wait()
	<-t.s.streams
}

// beat sends text at regular intervals. The text shows the client that the server is alive, and
// a failed write shows that the client has disconnected.
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
		t.w.Header().Set("X-Accel-Buffering", "no") // without this header, proxies would buffer the stream
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

// started reports whether the answer has begun. If it has, its status is 200.
func (t *stream) started() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun
}

// gone reports whether the client has disconnected or does not read.
func (t *stream) gone(r *http.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil || r.Context().Err() != nil
}
