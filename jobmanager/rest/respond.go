package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// problem is an error with an HTTP status and a hint about what to do.
type problem struct {
	code       int
	text, hint string
	known      bool // the cause has been logged already, and is not logged for each request
}

func (p *problem) Error() string { return p.text }

// Errors that every route can return.
var (
	errTooLarge = &problem{code: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("the request's body is larger than %d bytes", maxBody),
		hint: "programs and data do not travel by HTTP: submit a job with the superstep command, or name paths that the task managers see"}
	errBusy = &problem{code: http.StatusServiceUnavailable, text: "too many streams are open", hint: "close some, or ask again later"}
)

func badRequest(hint, format string, args ...any) *problem {
	return &problem{code: http.StatusBadRequest, text: fmt.Sprintf(format, args...), hint: hint}
}

// statuses maps gRPC codes of the job manager's errors to HTTP statuses. A code that is not in
// the map means a failure of the job manager itself.
var statuses = map[codes.Code]int{
	codes.NotFound:           http.StatusNotFound,
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.FailedPrecondition: http.StatusConflict,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.Canceled:           http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
}

// asProblem returns the problem that is the answer to a request that failed with err.
func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	code, ok := statuses[wire.Code(err)]
	if !ok {
		code = http.StatusInternalServerError
	}
	p = &problem{code: code, text: wire.Reason(err)}
	switch code {
	case http.StatusNotFound:
		p.hint = "GET " + base + "/jobs lists the jobs that are kept; the start of an ID is enough where it fits one only"
	case http.StatusServiceUnavailable:
		p.hint = "ask again in a moment"
	case http.StatusInternalServerError:
		p.hint = "the log of the job manager may say more"
	}
	return p
}

// fail answers a request with the error err.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	if p.code >= http.StatusInternalServerError && !p.known {
		s.log.Warn("an HTTP request failed", "method", r.Method, "path", clip(r.URL.Path), "status", p.code, "error", p.text)
	}
	switch p.code {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // the connection is closed, as the rest of the request's body is not read
	}
	_ = s.sendJSON(w, p.code, Error{Error: p.text, Hint: p.hint}) // if writing fails, the client has disconnected
}

// caught calls the handler f. If f panics, caught returns the panic as an error. It does not
// recover from http.ErrAbortHandler, by which f aborts the connection on purpose.
func (s *Server) caught(f func(http.ResponseWriter, *http.Request) error, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		s.log.Error("an HTTP handler panicked, which is a bug", "path", clip(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
		err = &problem{code: http.StatusInternalServerError, text: "the job manager has a bug here", hint: "its log has the stack: please report it"}
	}()
	return f(w, r)
}

// sendJSON answers with the value v in JSON.
func (s *Server) sendJSON(w http.ResponseWriter, code int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // browsers do not treat the answer as a page, because of the media type and the header nosniff
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the answer in JSON: %w", err)
	}
	s.send(w, code, mediaJSON, b.Bytes())
	return nil
}

// send answers with a body. The client must read it within WriteTimeout.
func (s *Server) send(w http.ResponseWriter, code int, media string, body []byte) {
	s.grant(w)
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // if writing fails, the client has disconnected
}

// grant sets the connection's write deadline to the current time plus WriteTimeout.
func (s *Server) grant(w http.ResponseWriter) {
	// The error is ignored: only the ResponseWriters of tests do not support deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.WriteTimeout))
}

// checkQuery returns an error if a query has parameters that the route does not have, as the
// route would ignore them.
func (r *route) checkQuery(req *http.Request) error {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return badRequest("encode it as application/x-www-form-urlencoded", "the query does not parse: %v", err)
	}
	for name, values := range query {
		i := slices.IndexFunc(r.query, func(p parameter) bool { return p.name == name })
		if i < 0 {
			return badRequest(r.known(), "unknown parameter %q", clip(name))
		}
		if len(values) > 1 && !r.query[i].many {
			return badRequest("give it once", "parameter %q is given %d times", name, len(values))
		}
		for _, v := range values {
			if err := r.query[i].check(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *route) known() string {
	if len(r.query) == 0 {
		return "this path takes none"
	}
	var names []string
	for _, p := range r.query {
		names = append(names, p.name)
	}
	return "this path knows " + strings.Join(names, ", ")
}

func (p *parameter) check(value string) error {
	if p.integer {
		if n, err := strconv.Atoi(value); err != nil || n < p.minimum {
			return badRequest(p.about, "parameter %s=%q: want a whole number from %d on", p.name, clip(value), p.minimum)
		}
		return nil
	}
	if !slices.Contains(p.values, value) {
		return badRequest(p.about, "parameter %s=%q: want one of %s", p.name, clip(value), strings.Join(p.values, ", "))
	}
	return nil
}

// number returns the value of the integer parameter name of a query that was checked, or absent
// if the query does not have the parameter.
func number(r *http.Request, name string, absent int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return absent
}

// clip returns the first 100 bytes of a text that a client sent.
func clip(text string) string {
	if len(text) > 100 {
		return strings.ToValidUTF8(text[:100], "") + "…"
	}
	return strings.ToValidUTF8(text, "�")
}
