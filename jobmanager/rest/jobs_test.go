package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestJobsAreListed(t *testing.T) {
	s := serve(t, newFake(t), nil)
	ids := func(query string) (ids []string) {
		var jobs []Job
		body := s.ask("GET /api/v1/jobs"+query, "").body
		require.NoError(t, json.Unmarshal([]byte(body), &jobs), body)
		for _, j := range jobs {
			require.Nil(t, j.Progress)
			ids = append(ids, j.ID)
		}
		return ids
	}
	require.Equal(t, []string{"run-1", "new-1", "bad-1", "bad-2"}, ids(""))
	require.Equal(t, []string{"bad-1", "bad-2"}, ids("?state=failed"))
	require.Equal(t, []string{"run-1", "bad-1"}, ids("?state=failed&state=running&limit=2"))
	require.Nil(t, ids("?state=cancelled"))
	require.Equal(t, "[]\n", s.ask("GET /api/v1/jobs?state=cancelled", "").body)
}

func TestJobAsADocument(t *testing.T) {
	s := serve(t, newFake(t), nil)
	require.JSONEq(t, `{"id":"run-1","name":"kmeans","state":"running","parallelism":2,"slots":2,"shards":8,"seed":18446744073709551615,"attempt":1,"fingerprint":"f",
		"submitted":"2026-01-02T15:04:05Z","started":"2026-01-02T15:04:05Z","workers":[{"task_manager":"tm","lo":0,"hi":2}],
		"progress":{"vertices":[{"rows":10,"shards_done":3}],"queues":[{"superstep":7,"ended":false,"compute_seconds":1.5,"communicate_seconds":0.5,
			"values":[{"name":"inertia","value":"NaN"},{"name":"moved","value":0.5}]}],"uncopied":[{"queue":"train","why":"it holds a channel"}]}}`, s.ask("GET /api/v1/jobs/run", "").body)
	require.JSONEq(t, `[{"id":0,"name":"ReadCSV -> scale","operators":["ReadCSV","scale"],"parallelism":2,"slot_group":"default","rows":10,"shards_done":3,"shards":8}]`,
		s.ask("GET /api/v1/jobs/run/vertices", "").body)
	require.JSONEq(t, `[{"name":"train","superstep":7,"max_supersteps":20,"has_criterion":true,"ended":false,"compute_seconds":1.5,"communicate_seconds":0.5,
		"values":[{"name":"inertia","value":"NaN"},{"name":"moved","value":0.5}]}]`, s.ask("GET /api/v1/jobs/run/supersteps", "").body)

	failure := func(id string) string {
		var j struct{ Failure json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(s.ask("GET /api/v1/jobs/"+id, "").body), &j))
		return string(j.Failure)
	}
	require.JSONEq(t, `{"kind":"user","message":"panic: boom","worker":0,"task_manager":"tm","exit_code":2,"last_lines":["goroutine 1"]}`, failure("bad-1"))
	require.JSONEq(t, `{"kind":"cluster","message":"disk full"}`, failure("bad-2"))
}

func TestPlanInItsForms(t *testing.T) {
	s := serve(t, newFake(t), nil)
	require.Equal(t, string(s.fake.jobs[0].Plan), s.ask("GET /api/v1/jobs/run/plan?form=json", "").body)
	require.Contains(t, s.ask("GET /api/v1/jobs/run/plan?form=text", "").body, "scale")
	require.Contains(t, s.ask("GET /api/v1/jobs/run/plan?form=dot", "").body, "digraph")
	require.Contains(t, s.ask("GET /api/v1/jobs/new/plan", "").problem(t).Error, "resolving")
}

func TestCancel(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, nil)
	require.Equal(t, 200, s.ask("POST /api/v1/jobs/run/cancel", "").code)
	require.Equal(t, 200, s.ask("POST /api/v1/jobs/run/cancel", `{"reason":"enough"}`).code)
	require.Equal(t, []wire.CancelRequest{{Job: "run", Reason: "asked for by HTTP"}, {Job: "run", Reason: "enough"}}, f.cancelled)
	for _, body := range []string{`{"reason":"` + strings.Repeat("x", maxReason+1) + `"}`, `{"why":"x"}`, `[]`, `null`, `{"reason":"a"} {"reason":"b"}`} {
		require.Equal(t, 400, s.ask("POST /api/v1/jobs/run/cancel", body).code, body)
	}
	require.Len(t, f.cancelled, 2)
}

// TestArgumentsReachTheJob requires that arguments have the same values in the job's struct as
// if encoding/json had decoded them.
func TestArgumentsReachTheJob(t *testing.T) {
	type inner struct {
		Rate float64
		When time.Duration
	}
	type args struct {
		Input   string
		Columns []string
		K       int
		Small   int8
		Seed    uint64
		Tol     float64
		Big     float64
		Flag    bool
		Data    map[string]float64
		In      *inner
		Every   []inner
		None    *inner
	}
	f := newFake(t)
	s := serve(t, f, nil)
	const text = `{"Input":"/data/ä.csv","Columns":["a","b"],"K":3,"Small":-7,"Seed":18446744073709551615,"Tol":1,"Big":1e300,"Flag":true,
		"Data":{"x":1,"y":-0.5,"z":2e3},"In":{"Rate":0.5,"When":5000000000},"Every":[{"Rate":2},{"When":-1}],"None":null}`
	got := s.ask("POST /api/v1/jobs", `{"name":"kmeans","args":`+text+`,"parallelism":6,"shards":64,"seed":9,"dir":"/data","wait_timeout":"1m30s",
		"batch_rows":100,"memory":1024,"if_exists":"replace","check_broadcasts":true,"log_level":"debug",
		"restart":"failure-rate","restart_attempts":4,"restart_delay":"2s","restart_window":"1m","checkpoint":"require","priority":-3}`)
	require.Equal(t, http.StatusCreated, got.code, got.body)
	require.Equal(t, "/api/v1/jobs/20260102-150405-new", got.header.Get("Location"))
	require.JSONEq(t, `{"id":"20260102-150405-new"}`, got.body)

	spec := f.submitted[0]
	var want, have args
	require.NoError(t, json.Unmarshal([]byte(text), &want))
	dec := msgpack.NewDecoder(strings.NewReader(string(spec.Args)))
	dec.DisallowUnknownFields(true)
	require.NoError(t, dec.Decode(&have))
	require.Equal(t, want, have)

	spec.Args = nil
	require.Equal(t, wire.JobSpec{Name: "kmeans", Parallelism: 6, Shards: 64, Seed: 9, Priority: -3, Dir: "/data", WaitTimeout: 90 * time.Second, Version: wire.Version,
		Restart: wire.Restart{Strategy: wire.RestartFailureRate, Attempts: 4, Delay: 2 * time.Second, Window: time.Minute},
		Run:     wire.RunOptions{BatchRows: 100, Memory: 1024, IfExists: "replace", CheckBroadcasts: true, LogLevel: "debug", RequireCheckpoints: true}}, spec)
}

func TestSubmissionsWithDefaults(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, nil)
	require.Equal(t, 201, s.ask("POST /api/v1/jobs", `{"name":"kmeans"}`, "Content-Type: application/json; charset=utf-8").code)
	require.Equal(t, wire.JobSpec{Name: "kmeans", Args: []byte{0x80}, Parallelism: 1, Shards: 128, Version: wire.Version, Run: wire.RunOptions{IfExists: "fail"}}, f.submitted[0])
}

// TestCheckpointIntervals requires that a submission gives the interval of checkpoints by time, by
// supersteps, or by the mean time between failures.
func TestCheckpointIntervals(t *testing.T) {
	for given, want := range map[string]wire.Checkpoints{
		``:                                       {},
		`,"checkpoint_every":"5s"`:               {Every: 5 * time.Second},
		`,"checkpoint_supersteps":7`:             {Supersteps: 7},
		`,"checkpoint_every":"auto"`:             {MTBF: wire.DefaultMTBF},
		`,"checkpoint_every":"auto","mtbf":"8h"`: {MTBF: 8 * time.Hour},
	} {
		f := newFake(t)
		s := serve(t, f, nil)
		got := s.ask("POST /api/v1/jobs", `{"name":"kmeans","checkpoint_dir":"/d"`+given+`}`)
		require.Equal(t, http.StatusCreated, got.code, got.body)
		want.Dir = "/d"
		require.Equal(t, &want, f.submitted[0].Run.Checkpoints)
	}
}

func TestSubmissionsThatAreRefused(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, nil)
	for body, want := range map[string]string{
		`{}`:                                      "no name",
		``:                                        "type",
		`x`:                                       "JSON object",
		`null`:                                    "JSON object",
		`[{"name":"kmeans"}]`:                     "JSON object",
		`{"name":"k"`:                             "fits",
		`{"name":"k"} x`:                          "goes on",
		`{"name":"k","graph":{}}`:                 "graph",
		`{"name":"k","args":[]}`:                  "args",
		`{"name":"k","args":{"x":1e999}}`:         "too large",
		`{"name":"k","seed":-1}`:                  "seed",
		`{"name":"k","dir":"data"}`:               "absolute",
		`{"name":"k","wait_timeout":"soon"}`:      "wait_timeout",
		`{"name":"k","wait_timeout":"-1s"}`:       "wait_timeout",
		`{"name":"k","restart":"always"}`:         "restart",
		`{"name":"k","restart_delay":"-1s"}`:      "restart_delay",
		`{"name":"k","restart_window":"long"}`:    "restart_window",
		`{"name":"k","restart_attempts":1.5}`:     "restart_attempts",
		`{"name":"k","checkpoint_every":"often"}`: "checkpoint_every",
		`{"name":"k","checkpoint_every":"auto"}`:  "no directory",
		`{"name":"k","checkpoint_dir":"/d","mtbf":"1h"}`:                                         "checkpoint_every is not auto",
		`{"name":"k","checkpoint_dir":"/d","checkpoint_every":"auto","mtbf":"0s"}`:               "mtbf is 0s",
		`{"name":"k","checkpoint_dir":"/d","checkpoint_every":"auto","mtbf":"-1h"}`:              `mtbf "-1h"`,
		`{"name":"k","checkpoint_dir":"/d","checkpoint_every":"auto","checkpoint_supersteps":3}`: "chosen",
		`{"name":"k","checkpoint":"always"}`:                                                     `unknown checkpoint "always"`,
		`{"name":"k","if_exists":"append"}`:                                                      "if_exists",
		`{"name":"k","log_level":"loud"}`:                                                        "log_level",
		`{"name":"k","args":{"x":` + nested(65):                                                  "levels deep",
		`{"name":"k","args":{"x":` + nested(5000):                                                "levels deep",
	} {
		got := s.ask("POST /api/v1/jobs", body)
		require.Contains(t, []int{400, 415}, got.code, body)
		p := got.problem(t)
		require.Contains(t, p.Error, want)
		require.NotEmpty(t, p.Hint, body)
	}
	require.Empty(t, f.submitted)
	require.Equal(t, 201, s.ask("POST /api/v1/jobs", `{"name":"k","args":{"x":`+nested(64)).code)
}

// nested returns a JSON list with n levels, followed by the closing braces of two objects.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) + "}}" }

func TestNumbersOfArguments(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "-1": int64(-1), "9223372036854775807": int64(math.MaxInt64), "9223372036854775808": uint64(1 << 63), "18446744073709551615": uint64(math.MaxUint64),
		"18446744073709551616": 18446744073709551616.0, "1.0": int64(1), "1e3": int64(1000), "0.1": 0.1, "1e300": 1e300, "9007199254740993.0": int64(1 << 53),
		"-0": math.Copysign(0, -1), "-0.0": math.Copysign(0, -1), "-9223372036854775808": int64(math.MinInt64),
	} {
		got, err := plainNumber(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}

// FuzzSubmit requires that the answer to any body is a job or an error, and that accepted
// arguments are the MessagePack encoding of the same values.
func FuzzSubmit(f *testing.F) {
	for _, seed := range []string{`{"name":"kmeans","args":{"K":3,"Tol":1e-4,"Columns":["a"],"X":{"y":null,"z":true}}}`, `{}`, `{"name":"a","args":{"":-0.0}}`, `[`, "{\"name\":\"\xff\"}"} {
		f.Add(seed)
	}
	fake := newFake(f)
	s := serve(f, fake, nil)
	f.Fuzz(func(t *testing.T, body string) {
		fake.submitted = nil
		site := &site{Server: s.Server, t: t, fake: fake}
		got := site.ask("POST /api/v1/jobs", body)
		if got.code != http.StatusCreated {
			require.Less(t, got.code, 500, got.body)
			got.problem(t)
			return
		}
		var in struct{ Args map[string]any }
		require.NoError(t, json.Unmarshal([]byte(body), &in))
		var out map[string]any
		require.NoError(t, msgpack.Unmarshal(fake.submitted[0].Args, &out))
		require.Equal(t, fmt.Sprint(canonical(t, in.Args)), fmt.Sprint(canonical(t, out)))
	})
}

// canonical converts numbers to float64, as encoding/json does.
func canonical(t *testing.T, v map[string]any) (out map[string]any) {
	if v == nil {
		v = map[string]any{}
	}
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func manyJobs(t testing.TB, n int) *fake {
	f := newFake(t)
	f.jobs = nil
	for i := range n {
		f.jobs = append(f.jobs, wire.JobInfo{ID: wire.JobID(fmt.Sprintf("20260102-150405-kmeans-%04d", i)), Name: "kmeans", State: wire.JobFinished, Detail: "finished",
			Parallelism: 8, Slots: 8, Shards: 128, Attempt: 1, Fingerprint: strings.Repeat("f", 64), Submitted: born, Started: born, Ended: born,
			Workers: make([]wire.Placed, 4)})
	}
	return f
}

// BenchmarkList1000 reads a list of 1,000 jobs over a connection.
func BenchmarkList1000(b *testing.B) {
	s := serve(b, manyJobs(b, 1000), nil)
	client := client(b)
	size := 0
	for b.Loop() {
		r, err := s.get(client, "/api/v1/jobs")
		require.NoError(b, err)
		size = len(readAll(b, r.Body))
	}
	b.SetBytes(int64(size))
}

// TestReadinessIsTheJobManagers requires that the answer of /readyz says whether the job
// manager is ready, and not only whether it runs.
func TestReadinessIsTheJobManagers(t *testing.T) {
	f := newFake(t)
	s := serve(t, f, nil)
	require.Equal(t, 200, s.ask("GET /readyz", "").code)
	f.mu.Lock()
	f.unready = errors.New("its disk has 3 MiB free")
	f.mu.Unlock()
	got := s.ask("GET /readyz", "")
	require.Equal(t, 503, got.code)
	require.Equal(t, "the job manager is not ready: its disk has 3 MiB free", got.problem(t).Error)
	require.Equal(t, 200, s.ask("GET /healthz", "").code, "/healthz must succeed although the job manager is not ready")
}

// TestCheckpointsOfAJob requires that the document has all that is known of a job's checkpoints,
// and an empty list where a job has written none.
func TestCheckpointsOfAJob(t *testing.T) {
	s := serve(t, newFake(t), nil)
	require.JSONEq(t, `{"dir":"s3://b/p","written":12,"failed":3,"bytes":1200,"seconds":4.5,
		"newest":[{"number":12,"written":"2026-01-02T15:04:05Z","seconds":0.25,"bytes":150,"more":2,
			"queues":[{"name":"init","superstep":4,"ended":true},{"name":"train","superstep":7,"ended":false}]}],
		"failing":{"since":"2026-01-02T15:04:05Z","count":2,"error":"no space left"}}`, s.ask("GET /api/v1/jobs/run/checkpoints", "").body)
	require.JSONEq(t, `{"dir":"/shared","written":0,"failed":0,"bytes":0,"seconds":0,"newest":[]}`, s.ask("GET /api/v1/jobs/bad-1/checkpoints", "").body)
	none := s.ask("GET /api/v1/jobs/new/checkpoints", "").problem(t)
	require.Equal(t, Error{Error: "job new-1 has no checkpoints", Hint: "submit the job with checkpoint_dir"}, none)
}
