package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestCordon requires that requests to cordon and uncordon reach the job manager unchanged, and
// compares the answers and the list of task managers.
func TestCordon(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, nil)
	got := s.ask("POST /api/v1/taskmanagers/host:1/cordon", `{"reason":"its fan is replaced"}`)
	require.JSONEq(t, `{"task_manager":"host:1","cordon":{"reason":"its fan is replaced","since":"2026-01-02T15:04:05Z"},"changed":true,"registered":2,"workers":1,"slots":4}`, got.body)
	got = s.ask("POST /api/v1/taskmanagers/tm/cordon", "")
	require.JSONEq(t, `{"task_manager":"tm","cordon":{"since":"2026-01-02T15:04:05Z"},"changed":true,"registered":2,"workers":1,"slots":4}`, got.body)
	got = s.ask("POST /api/v1/taskmanagers/tm/uncordon", "")
	require.JSONEq(t, `{"task_manager":"tm","changed":false,"registered":2,"workers":1,"slots":8}`, got.body)
	require.Equal(t, []wire.CordonRequest{{TaskManager: "host:1", Reason: "its fan is replaced"}, {TaskManager: "tm"}}, f.cordons)
	require.Equal(t, []wire.UncordonRequest{{TaskManager: "tm"}}, f.uncordons)

	for _, body := range []string{`{"reason":"` + strings.Repeat("x", wire.MaxReason+1) + `"}`, `{"reason":"\u001b[2J"}`, `{"why":"x"}`, `[]`, `null`} {
		require.Equal(t, http.StatusBadRequest, s.ask("POST /api/v1/taskmanagers/tm/cordon", body).code, body)
	}
	require.Len(t, f.cordons, 2)
	for _, name := range []string{"nope", "a%2Fb", "%2e%2e", "%00", strings.Repeat("x", 5000)} {
		got := s.ask("POST /api/v1/taskmanagers/"+name+"/cordon", "")
		require.Equal(t, http.StatusNotFound, got.code, name)
		require.Equal(t, "GET /api/v1/taskmanagers lists the task managers", got.problem(t).Hint)
	}
	require.Equal(t, "a/b", f.cordons[3].TaskManager, "an escaped slash must be part of the name")

	list := s.ask("GET /api/v1/taskmanagers", "").body
	require.Contains(t, list, `"cordon":{"reason":"repair","since":"2026-01-02T15:04:05Z"},"avoided":{"until":"2026-01-02T15:05:05Z","died":3}`)
	require.Contains(t, list, `"state":"absent"`)
	require.Equal(t, 2, strings.Count(list, `"cordon"`))
}
