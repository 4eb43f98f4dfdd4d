package rest

import (
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// names returns the first submatches of pattern in text, which are names of metrics.
func names(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestMetricsAreThoseDocumented requires that the server has exactly the metrics in the table
// of the package's documentation.
func TestMetricsAreThoseDocumented(t *testing.T) {
	s := serve(t, newFake(t), nil)
	s.ask("GET /api/v1/jobs", "")
	text := s.ask("GET /metrics", "").body
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	_, table, found := strings.Cut(file.Doc.Text(), "# Metrics")
	require.True(t, found)
	documented := names(`(?m)^\t(superstep_\w+) `, table)
	require.NotEmpty(t, documented)
	require.Equal(t, documented, names(`(?m)^# TYPE (superstep_\w+) `, text))
	require.Contains(t, text, "go_goroutines ")
	require.Contains(t, text, "process_resident_memory_bytes ")
	for _, name := range names(`(?m)^# TYPE (superstep_\w+ counter)`, text) {
		require.Contains(t, name, "_total ")
	}
}

func TestMetricsAreTheManagersNumbers(t *testing.T) {
	s := serve(t, newFake(t), nil)
	s.ask("GET /api/v1/jobs", "")
	s.ask("GET /api/v1/jobs/nope", "")
	s.ask("BREW /api/v1/jobs", "")
	s.ask("GET /wp-login.php", "")
	s.ask("GET /api/v1/jobs", "", "Authorization: ")
	s.ask("GET /api/v1/jobs/run/events", "")
	text := s.ask("GET /metrics", "").body
	for _, line := range []string{
		`superstep_slots 4`, `superstep_slots_free 2`,
		`superstep_jobs{state="running"} 1`, `superstep_jobs{state="failed"} 2`, `superstep_jobs{state="waiting"} 0`,
		`superstep_jobs_ended_total{state="failed"} 5`, `superstep_jobs_ended_total{state="finished"} 0`,
		`superstep_task_managers{state="alive"} 3`, `superstep_task_managers{state="away"} 1`, `superstep_task_managers{state="lost"} 1`,
		`superstep_heartbeat_age_seconds{id="a",task_manager="tm"} 0.25`, `superstep_heartbeat_age_seconds{id="�",task_manager="�"} 0`,
		`superstep_slots_cordoned 1`,
		`superstep_task_manager_cordoned{id="a",task_manager="tm"} 0`, `superstep_task_manager_cordoned{id="c",task_manager="sick"} 1`, `superstep_task_manager_cordoned{id="",task_manager="absent�"} 1`,
		`superstep_task_manager_avoided{id="a",task_manager="tm"} 0`, `superstep_task_manager_avoided{id="c",task_manager="sick"} 1`,
		`superstep_supersteps_total 9`, `superstep_superstep_seconds_total{kind="compute"} 1.5`, `superstep_superstep_seconds_total{kind="communicate"} 0.25`,
		`superstep_rows_total 1000`, `superstep_exchange_rows_total 70`, `superstep_exchange_bytes_total 700`,
		`superstep_job_exchange_rows{edge="3",job="run"} 7`, `superstep_job_exchange_bytes{edge="3",job="run"} 77`,
		`superstep_result_bytes_total 12`, `superstep_artifact_bytes 34`, `superstep_artifact_limit_bytes 56`, `superstep_followers 3`, `superstep_disk_free_bytes 5`, `superstep_takes_jobs 0`,
		`superstep_checkpoints_total 21`, `superstep_checkpoint_failures_total 22`, `superstep_checkpoint_bytes_total 23`, `superstep_checkpoint_seconds_total 2.5`,
		`superstep_job_checkpoint_age_seconds{job="run"} 1.5`, `superstep_job_restarts_total 24`, `superstep_job_moves_total 26`, `superstep_attempts_lost_total{kind="lost"} 25`, `superstep_attempts_lost_total{kind="user"} 0`,
		`superstep_recovery_seconds_bucket{phase="agreed",le="0.05"} 0`, `superstep_recovery_seconds_bucket{phase="agreed",le="0.1"} 2`, `superstep_recovery_seconds_bucket{phase="agreed",le="0.25"} 2`,
		`superstep_recovery_seconds_bucket{phase="agreed",le="+Inf"} 3`, `superstep_recovery_seconds_sum{phase="agreed"} 400.2`, `superstep_recovery_seconds_count{phase="resumed"} 0`,
		`superstep_http_streams 0`,
		`superstep_http_requests_total{code="200",method="GET",route="/api/v1/jobs"} 1`,
		`superstep_http_requests_total{code="404",method="GET",route="/api/v1/jobs/{id}"} 1`,
		`superstep_http_requests_total{code="405",method="other",route="/api/v1/jobs"} 1`,
		`superstep_http_requests_total{code="404",method="GET",route="none"} 1`,
		`superstep_http_requests_total{code="401",method="GET",route="none"} 1`,
		`superstep_http_requests_total{code="200",method="GET",route="/api/v1/jobs/{id}/events"} 1`,
		`superstep_http_request_seconds_count{route="/api/v1/jobs"} 2`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
	require.NotContains(t, text, `superstep_http_request_seconds_count{route="/api/v1/jobs/{id}/events"}`)
	require.NotContains(t, text, "wp-login")
	require.NotContains(t, text, `id="b"`)
}

func TestOpenStreamsAreCounted(t *testing.T) {
	f := newFake(t)
	f.watch = quiet
	s := serve(t, f, func(c *Config) { c.Heartbeat = time.Hour })
	r, err := s.get(client(t), "/api/v1/jobs/run/events")
	require.NoError(t, err)
	defer r.Body.Close()
	require.Contains(t, s.ask("GET /metrics", "").body, "\nsuperstep_http_streams 1\n")
}
