package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/jobmanager"
)

// TestRealJobManager submits a job to a real job manager through the server. The job waits for
// slots. A client follows it and cancels it.
func TestRealJobManager(t *testing.T) {
	token, err := security.ParseToken(tokenText)
	require.NoError(t, err)
	m, err := jobmanager.New(t.Context(), jobmanager.Config{Listen: "127.0.0.1:0", Dir: t.TempDir(), Token: token})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	server, err := New(Config{Listen: "127.0.0.1:0", Manager: m, Token: token})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s := &site{Server: server, t: t}
	doc := described(t, s)
	ask := func(method, route, path, body string) string {
		got := s.ask(method+" "+path, body)
		require.NoError(t, conforms(doc, method, route, got))
		require.Less(t, got.code, 300, got.body)
		return got.body
	}

	require.Contains(t, s.ask("POST /api/v1/jobs", `{"name":"kmeans","parallelism":200}`).problem(t).Error, "parallelism 200")
	var job Submitted
	require.NoError(t, json.Unmarshal([]byte(ask("POST", "/api/v1/jobs", "/api/v1/jobs", `{"name":"kmeans","args":{"K":3},"parallelism":2}`)), &job))
	path := "/api/v1/jobs/" + job.ID

	r, err := s.get(client(t), path+"/events")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)

	require.Contains(t, ask("GET", "/api/v1/jobs", "/api/v1/jobs?state=resolving&state=waiting", ""), job.ID)
	require.Contains(t, ask("GET", "/api/v1/jobs/{id}", path[:len(path)-1], ""), job.ID)
	require.Contains(t, s.ask("GET "+path+"/plan", "").problem(t).Error, "no plan")
	require.Empty(t, ask("GET", "/api/v1/jobs/{id}/logs", path+"/logs", ""))
	ask("GET", "/api/v1/overview", "/api/v1/overview", "")
	require.Equal(t, "[]\n", ask("GET", "/api/v1/taskmanagers", "/api/v1/taskmanagers", ""))
	ask("POST", "/api/v1/jobs/{id}/cancel", path+"/cancel", `{"reason":"seen enough"}`)

	events, _ := parseEvents(t, readAll(t, r.Body)) // this reads until the end of the job
	last := events[len(events)-1]
	require.Contains(t, last.data, `"state":"cancelled"`)
	require.Contains(t, last.data, "seen enough")
	require.Equal(t, http.StatusNoContent, s.ask("GET "+path+"/events", "", "Last-Event-ID: "+last.id).code)
	require.Contains(t, s.ask("GET /api/v1/jobs/nope", "").problem(t).Error, "there is no job")
	require.True(t, strings.Contains(s.ask("GET /metrics", "").body, "superstep_jobs_ended_total{state=\"cancelled\"} 1\n"))
}
