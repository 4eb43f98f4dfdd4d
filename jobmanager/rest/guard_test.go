package rest

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/security"
)

var everyMethod = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"}

// TestGuards requires that a request without permission changes nothing and is refused with the
// same status, whatever its path and method are, and whether or not the path exists. The answer
// must not contain the token.
func TestGuards(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, func(c *Config) { c.AllowHosts = []string{"cluster.example"} })
	paths := []string{"/api", "/api/v1", "/api/v1/nope", "/nope"}
	open := map[string]bool{}
	for _, r := range s.routes {
		paths = append(paths, strings.NewReplacer("{id}", "run-1", "{taskmanager}", "tm").Replace(r.path))
		open[r.path] = r.open
	}
	for _, path := range paths {
		for _, method := range everyMethod {
			for _, header := range []string{"Host: evil.example", "Host: 127.0.0.1.evil.example:8081", "Host: 10.1.2.3", "Origin: http://evil.example", "Origin: null", "Origin: http://localhost:3000"} {
				got := s.ask(method+" "+path, "", header)
				require.Equal(t, http.StatusForbidden, got.code, "%s %s %s", method, path, header)
			}
			if !strings.HasPrefix(path, "/api/") && path != "/metrics" {
				continue
			}
			for _, header := range []string{"Authorization: ", "Authorization: Bearer ", "Authorization: Bearer wrong" + tokenText, "Authorization: Basic " + tokenText, "Authorization: " + tokenText} {
				got := s.ask(method+" "+path+"?token="+tokenText, "", header, "Cookie: token="+tokenText)
				require.Equal(t, http.StatusUnauthorized, got.code, "%s %s %s", method, path, header)
				require.NotEmpty(t, got.header.Get("WWW-Authenticate"))
				require.NotContains(t, got.body, tokenText)
			}
		}
	}
	require.Empty(t, f.submitted)
	require.Empty(t, f.cancelled)
	require.Empty(t, f.cordons)
	require.Empty(t, f.uncordons)

	for _, header := range []string{"Host: cluster.example", "Host: [::1]:9", "Origin: http://localhost:8081", "Origin: http://cluster.example"} {
		require.Equal(t, http.StatusOK, s.ask("GET /api/v1/jobs", "", header).code, header)
	}
	for path, is := range open {
		if is {
			require.Equal(t, http.StatusOK, s.ask("GET "+path, "", "Authorization: ").code, path)
		}
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	s := serve(t, newFake(t), nil)
	for _, r := range requests {
		h := s.ask(r.method+" "+r.path, r.body, r.header...).header
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), r.path)
		require.Equal(t, "no-store", h.Get("Cache-Control"), r.path)
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", r.path)
		require.Empty(t, h.Get("Access-Control-Allow-Origin"), r.path)
	}
}

func TestUnknownPaths(t *testing.T) {
	s := serve(t, newFake(t), nil)
	for _, path := range []string{"/nope", "/api", "/api/v1", "/api/v1/", "/api/v1/jobs/", "/api//v1/jobs", "/api/v1/../v1/jobs", "/api/v1/jobs/run-1/nope",
		"/api/v1/jobs/run-1/plan/", "/metrics/", "/healthz/", "//", "/api/v1/%6a%6fbs/../jobs", "/api/v2/jobs"} {
		got := s.ask("GET "+path, "")
		require.Equal(t, http.StatusNotFound, got.code, path)
		require.NotEmpty(t, got.problem(t).Hint, path)
	}
	// A job ID may be any text. An escaped slash in it must not lead to another route.
	for _, id := range []string{"nope", "a%2Fplan", "..%2f..", "%00", "%ff", strings.Repeat("x", 5000)} {
		got := s.ask("GET /api/v1/jobs/"+id, "")
		require.Equal(t, http.StatusNotFound, got.code, id)
		require.Contains(t, got.problem(t).Hint, "/api/v1/jobs", id)
	}
}

func TestReadiness(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, nil)
	require.Equal(t, http.StatusOK, s.ask("GET /readyz", "", "Authorization: ").code)
	f.down = errors.New("its disk is full")
	got := s.ask("GET /readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, got.code)
	require.Contains(t, got.problem(t).Error, "its disk is full")
	require.Equal(t, http.StatusOK, s.ask("GET /healthz", "").code)
	require.Equal(t, http.StatusInternalServerError, s.ask("GET /api/v1/overview", "").code)
}

func TestPanicsOfHandlers(t *testing.T) {
	s := serve(t, newFake(t), func(c *Config) { c.Settings = func() any { panic("kaput") } })
	got := s.ask("GET /api/v1/config", "")
	require.Equal(t, http.StatusInternalServerError, got.code)
	require.NotContains(t, got.problem(t).Error, "kaput")
}

func TestSettings(t *testing.T) {
	s := serve(t, newFake(t), func(c *Config) { c.Settings = func() any { return map[string]any{"slots": 4} } })
	require.JSONEq(t, `{"slots":4}`, s.ask("GET /api/v1/config", "").body)
	none := serve(t, newFake(t), nil)
	require.JSONEq(t, `{}`, none.ask("GET /api/v1/config", "").body)
	bad := serve(t, newFake(t), func(c *Config) { c.Settings = func() any { return func() {} } })
	require.Equal(t, http.StatusInternalServerError, bad.ask("GET /api/v1/config", "").code)
}

func TestConfigsThatCannotBe(t *testing.T) {
	token, err := security.NewToken()
	require.NoError(t, err)
	good := Config{Listen: "127.0.0.1:0", Manager: newFake(t), Token: token}
	for want, change := range map[string]func(c *Config){
		"no job manager":      func(c *Config) { c.Manager = nil },
		"no token":            func(c *Config) { c.Token = security.Token{} },
		"negative":            func(c *Config) { c.MaxStreams = -1 },
		"lets other":          func(c *Config) { c.Listen = "0.0.0.0:0" },
		"not host:port":       func(c *Config) { c.Listen = "nonsense" },
		"--tls-cert and":      func(c *Config) { c.TLS.CA = "/nowhere" },
		"another job manager": func(c *Config) { c.Listen = occupied(t) },
	} {
		c := good
		change(&c)
		s, err := New(c)
		require.ErrorContains(t, err, want)
		require.Nil(t, s)
	}
}
