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
	method, path string // a pattern of http.ServeMux
	id           string // operationId
	summary      string
	open         bool // needs no token
	stream       bool // the answer goes on for long, and HEAD makes no sense
	query        []parameter
	header       []parameter
	body         any  // a value of the type of the request's body, nil: none
	optional     bool // the body may be left out
	answers      []answer
	also         []any // values of further types that occur in the answer's text
	errors       []int // further codes, with an Error
	serve        func(w http.ResponseWriter, r *http.Request) error
}

// parameter is a parameter of a query.
type parameter struct {
	name, about string
	values      []string // allowed values; nil: see integer
	integer     bool
	minimum     int
	many        bool // may be given more than once
}

// answer describes the answer to a request that succeeds.
type answer struct {
	code  int
	media string // "" if there is no body
	about string
	of    any // a value of the type of a JSON body; nil: it is text
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

// handler wraps the routes in their guards, outermost first: headers for browsers, metrics,
// hosts and origins, the token, sizes.
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
			methods[r.path][http.MethodHead] = h // net/http leaves the body out
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
	open.Handle("/api", s.action(noSuchPath)) // otherwise ServeMux would redirect it
	for _, prefix := range []string{"/api/", "/metrics"} {
		open.Handle(prefix, security.BearerToken(s.config.Token, s.limited(guarded)))
	}
	return s.guard(s.observe(security.HostGuard(s.config.AllowHosts, s.cleanOnly(open))))
}

// exact makes a pattern of a path match the path alone.
func exact(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return path
}

// byMethod serves a path by the methods it has.
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

// cleanOnly refuses paths that ServeMux would answer with a redirection to a clean one.
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

// limited refuses a body that is too large. If its length is announced, none of it is read;
// else reading stops at the limit.
func (s *Server) limited(next http.Handler) http.Handler {
	refuse := s.action(func(http.ResponseWriter, *http.Request) error { return errTooLarge })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			refuse.ServeHTTP(w, r)
			return
		}
		// MaxBytesReader needs the server's own writer: then the connection ends gently, and
		// the answer arrives although the client is still sending.
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

// guard sets headers that keep browsers from treating an answer as a page.
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

// action makes a handler of a function that may return an error: an error that it returns
// before it has written anything is the answer.
func (s *Server) action(f func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.caught(f, w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// checked serves a route after it has checked the query.
func (r *route) checked(w http.ResponseWriter, req *http.Request) error {
	if err := r.checkQuery(req); err != nil {
		return err
	}
	return r.serve(w, req)
}

func noSuchPath(_ http.ResponseWriter, r *http.Request) error {
	return &problem{code: http.StatusNotFound, text: fmt.Sprintf("there is nothing at %s", clip(r.URL.Path)), hint: "GET " + base + "/openapi.json lists what there is"}
}
