package rest

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/security"
)

// route is one route of the API. Both the server and the OpenAPI document are made from the
// table of routes.
type route struct {
	method, path string // method and path of a pattern of http.ServeMux
	id           string // operationId
	summary      string
	open         bool // requests need no token
	stream       bool // the answer is a stream, and HEAD is not supported
	query        []parameter
	header       []parameter
	body         any  // a value of the type of the request's body; nil if there is no body
	optional     bool // requests may have no body
	answers      []answer
	also         []any // values of further types, whose JSON occurs in answers that are text
	errors       []int // status codes of errors, in addition to those that all routes can return; the body is an Error
	serve        func(w http.ResponseWriter, r *http.Request) error
}

// parameter describes a parameter of a query.
type parameter struct {
	name, about string
	values      []string // allowed values; if nil, integer says what is allowed
	integer     bool
	minimum     int
	many        bool // a query may have it more than once
}

// answer describes the answer to a request that succeeds.
type answer struct {
	code  int
	media string // media type of the body; "" if there is no body
	about string
	of    any // a value of the type of the JSON body; nil if the body is text
}

const (
	mediaJSON   = "application/json"
	mediaLines  = "application/x-ndjson"
	mediaText   = "text/plain; charset=utf-8"
	mediaDOT    = "text/vnd.graphviz; charset=utf-8"
	mediaHTML   = "text/html; charset=utf-8"
	mediaCSV    = "text/csv; charset=utf-8"
	mediaArrow  = "application/vnd.apache.arrow.stream"
	mediaEvents = "text/event-stream"
)

// handler returns the handler of all routes, wrapped in other handlers. From the outermost to
// the innermost, these set headers for browsers, record metrics, check host and origin, check
// the token, and limit the size of bodies.
func (s *Server) handler() http.Handler {
	open, guarded := http.NewServeMux(), http.NewServeMux()
	guarded.Handle("/", s.action(noSuchPath))
	methods := make(map[string]map[string]http.Handler)
	public := make(map[string]bool)
	for _, r := range s.routes {
		if methods[r.path] == nil {
			methods[r.path] = make(map[string]http.Handler)
		}
		h := s.action(r.checked)
		methods[r.path][r.method] = h
		if r.method == http.MethodGet && !r.stream {
			methods[r.path][http.MethodHead] = h // net/http omits the body
		}
		public[r.path] = r.open
	}
	for path, of := range methods {
		mux := guarded
		if public[path] {
			mux = open
		}
		mux.Handle(exact(path), s.byMethod(of))
	}
	open.Handle("/", s.action(noSuchPath))
	open.Handle("/api", s.action(noSuchPath)) // without this route, ServeMux would redirect to /api/
	for _, prefix := range []string{"/api/", "/metrics"} {
		open.Handle(prefix, security.BearerToken(s.config.Token, s.limited(guarded)))
	}
	return s.guard(s.observe(security.HostGuard(s.config.AllowHosts, s.cleanOnly(open))))
}

// exact returns a pattern of http.ServeMux that matches only the given path.
func exact(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return path
}

// byMethod returns a handler that calls the handler in of for the request's method, and refuses
// other methods.
func (s *Server) byMethod(of map[string]http.Handler) http.Handler {
	allowed := slices.Sorted(maps.Keys(of))
	refuse := s.action(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &problem{code: http.StatusMethodNotAllowed, text: fmt.Sprintf("the method %s is not allowed for %s", clip(r.Method), clip(r.URL.Path)),
			hint: "it takes " + strings.Join(allowed, " and ")}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := of[r.Method]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		refuse.ServeHTTP(w, r)
	})
}

// cleanOnly refuses paths that ServeMux would redirect to their clean form, such as paths with
// "//" or "..".
func (s *Server) cleanOnly(next http.Handler) http.Handler {
	refuse := s.action(noSuchPath)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.EscapedPath(); p == "" || p[0] != '/' || path.Clean(p) != p {
			refuse.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limited refuses bodies of more than maxBody bytes. If the Content-Length is larger, none of
// the body is read; without a Content-Length, reading stops at the limit.
func (s *Server) limited(next http.Handler) http.Handler {
	refuse := s.action(func(http.ResponseWriter, *http.Request) error { return errTooLarge })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			refuse.ServeHTTP(w, r)
			return
		}
		// MaxBytesReader must get the innermost ResponseWriter, which is the server's own. Only
		// then does the server close the connection in such a way that the answer arrives
		// although the client is still sending.
		own := w
		for {
			u, ok := own.(interface{ Unwrap() http.ResponseWriter })
			if !ok {
				break
			}
			own = u.Unwrap()
		}
		r.Body = http.MaxBytesReader(own, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// guard returns a handler that sets headers by which browsers do not treat an answer as a page.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// action returns a handler that calls f. If f returns an error, the handler sends it as the
// answer. f may return an error only before it has written anything.
func (s *Server) action(f func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.caught(f, w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// checked checks the query of a request and then serves the route.
func (r *route) checked(w http.ResponseWriter, req *http.Request) error {
	if err := r.checkQuery(req); err != nil {
		return err
	}
	return r.serve(w, req)
}

func noSuchPath(_ http.ResponseWriter, r *http.Request) error {
	return &problem{code: http.StatusNotFound, text: fmt.Sprintf("there is nothing at %s", clip(r.URL.Path)), hint: "GET " + base + "/openapi.json lists what there is"}
}
