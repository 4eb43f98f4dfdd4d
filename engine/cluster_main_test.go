package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// onCluster runs a job as a program on the cluster.
func onCluster(t *testing.T, f *fakeCluster, w programEnv, line string, opts ...MainOption) outcome {
	t.Helper()
	offerAll(t, squares)
	if w.exit == nil {
		w.exit = func(int) {}
	}
	got := runIn(t, squares, w, "--n 4 --shards 8 --cluster "+f.address+" "+line, opts...)
	got.stderr = seconds.ReplaceAllString(got.stderr, "0.0s")
	return got
}

// seconds matches the times of a display, which differ between runs.
var seconds = regexp.MustCompile(`\d+\.\ds`)

func TestMainOnCluster(t *testing.T) {
	f := newFakeCluster(t, func(p *player) {
		p.state(wire.JobWaiting, "3 slots are needed and 1 is free")
		p.state(wire.JobWaiting, "3 slots are needed and 2 are free")
		p.compile()
		p.state(wire.JobDeploying, "2 of 3 workers are ready")
		p.state(wire.JobRunning, "")
		p.progress(wire.Progress{Vertices: []wire.VertexProgress{{Rows: 4, ShardsDone: 8}}})
		p.print("hello\n")
		ranSquares(&player{f: p.f, stream: p.stream, spec: p.spec, number: p.number, attempt: 1, plan: p.plan})
	})
	var rows []number
	got := onCluster(t, f, programEnv{}, "", AfterRun(func(_ squaresArgs, r *Result) (err error) {
		rows, err = Rows[number](r, "squares")
		return err
	}))
	require.Equal(t, []number{{0}, {1}, {4}, {9}}, rows)
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Equal(t, "hello\n", got.stdout)
	require.Contains(t, got.stderr, `squares · 0.0s · waiting: 3 slots are needed and`)
	require.Contains(t, got.stderr, `squares: 3 operators in 1 vertex, parallelism 3, 8 shards, seed 0
  Numbers → Transform(square) → Collect(squares) ×3
`)
	require.Contains(t, got.stderr, "squares · 0.0s · deploying: 2 of 3 workers are ready · "+fakeJob+"\n")
	require.Regexp(t, `\ndone: 4 rows in 0\.0s\n$`, got.stderr)
}

func TestMainOnClusterGolden(t *testing.T) {
	got := onCluster(t, newFakeCluster(t, ranSquares), programEnv{}, "")
	require.Equal(t, outcome{exitOK, "", `squares · 0.0s · waiting for 3 slots · ` + fakeJob + `
squares: 3 operators in 1 vertex, parallelism 3, 8 shards, seed 0
  Numbers → Transform(square) → Collect(squares) ×3
squares · 0.0s · deploying: starting 3 slots on 1 task manager · ` + fakeJob + `
done: 4 rows in 0.0s
`}, got)
}

func TestMainOnClusterOfTheEnvironment(t *testing.T) {
	f := newFakeCluster(t, ranSquares)
	offerAll(t, squares)
	env := map[string]string{"SUPERSTEP_CLUSTER": f.address}
	w := programEnv{getenv: func(name string) string { return env[name] }}
	require.Equal(t, outcome{}, runIn(t, squares, w, "--n 4 --shards 8 --progress off"))
	require.Len(t, f.specs, 1)
	require.Equal(t, outcome{}, runIn(t, squares, w, "--n 4 --shards 8 --progress off --cluster local"))
	require.Equal(t, exitOK, runIn(t, squares, w, "--n 4 --shards 8 --explain").code)
	require.Len(t, f.specs, 1, "a local run and --explain must not submit a job")
}

func TestMainOnClusterOfAnotherProgram(t *testing.T) {
	f := newFakeCluster(t, ranSquares)
	offerAll(t, squares)
	f.overview.Uploads = false
	got := runIn(t, squares, programEnv{}, "words of the process", Cluster(f.address),
		CommandLine("superstep run squares", "--n", "4", "--shards", "8", "--progress", "off"))
	require.Equal(t, outcome{}, got)
	require.Len(t, f.specs, 1)
	got = runIn(t, squares, programEnv{}, "", CommandLine("superstep run squares", "--nn"))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "superstep run squares: error: unknown flag --nn")
}

func TestMainOnClusterLines(t *testing.T) {
	p := Progress{Job: "iris-kmeans", Elapsed: 3240 * time.Millisecond, State: "uploading", Detail: "3.0 MiB of 30.0 MiB"}
	require.Equal(t, "iris-kmeans · 3.2s · uploading 3.0 MiB of 30.0 MiB", renderState(p, 100))
	p.State, p.Detail, p.JobID = "waiting", "6 slots are needed and 2 are free", "20260102-iris"
	require.Equal(t, "iris-kmeans · 3.2s · waiting: 6 slots are needed and 2 are free · 20260102-iris", renderState(p, 100))
	require.Equal(t, "iris-kmeans · 3.…", renderState(p, 17))
	require.Equal(t, "0.0s · waiting", renderState(Progress{State: "waiting"}, 100))

	q := QueueProgress{Name: "kmeans", Superstep: 12, Max: 50, Values: []Value{{Name: "inertia", Value: 78.85}}, PerSecond: 4.12, Left: 9300 * time.Millisecond}
	require.Equal(t, "kmeans 12/50 inertia=78.85, 4.1/s, at most 9.3s left", renderQueue(q))
	q.PerSecond, q.Left = 0.25, 152*time.Second
	require.Equal(t, "kmeans 12/50 inertia=78.85, 0.25/s, at most 2m32s left", renderQueue(q))
	q.PerSecond, q.Max, q.Left = 1234, 0, 0
	require.Equal(t, "kmeans 12 inertia=78.85, 1.2k/s", renderQueue(q))
	q.Ended = true
	require.Equal(t, "kmeans 12 inertia=78.85", renderQueue(q))
}

func TestMainOnClusterJSON(t *testing.T) {
	f := newFakeCluster(t, ranSquares)
	got := onCluster(t, f, programEnv{}, "--progress json")
	require.Equal(t, exitOK, got.code)
	var states []string
	events := map[string]int{}
	for line := range strings.Lines(got.stderr) {
		var e struct{ Event, State, ID string }
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		events[e.Event]++
		if e.Event == "state" {
			if n := len(states); n == 0 || states[n-1] != e.State { // an event may also change only the detail
				states = append(states, e.State)
			}
			require.Equal(t, fakeJob, e.ID)
		}
	}
	require.Equal(t, []string{"waiting", "deploying", "running", "committing", "finished"}, states)
	require.Equal(t, 1, events["begin"])
	require.Equal(t, 1, events["done"])
}

func TestMainOnClusterLive(t *testing.T) {
	f := newFakeCluster(t, ranSquares)
	got := onCluster(t, f, programEnv{width: func() int { return 60 }}, "")
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.stderr, eraseLine+"squares · 0.0s · waiting for 3 slots · 20260102-150405-job-…")
	require.Contains(t, got.stderr, eraseLine+"squares: 3 operators in 1 vertex")
	require.True(t, strings.HasSuffix(got.stderr, eraseLine+"done: 4 rows in 0.0s\n"), "%q", got.stderr)
}

func TestMainOnClusterDetached(t *testing.T) {
	f := newFakeCluster(t, nil)
	got := onCluster(t, f, programEnv{}, "--detach", AfterRun(func(squaresArgs, *Result) error { panic("there is no result") }))
	require.Equal(t, outcome{exitOK, fakeJob + "\n", "prog: the cluster has the job; `superstep show " + fakeJob + "` shows its state, `superstep logs " + fakeJob + "` what it writes, `superstep cancel " + fakeJob + "` ends it\n"}, got)
	require.Equal(t, outcome{exitOK, fakeJob + "\n", ""}, onCluster(t, f, programEnv{}, "--detach --progress off"))
}

func TestMainOnClusterFailure(t *testing.T) {
	f := newFakeCluster(t, func(p *player) {
		p.run()
		p.fail(&wire.Failure{Message: "the input is gone", Worker: 0, TaskManager: "a", ExitCode: -1})
	})
	got := onCluster(t, f, programEnv{}, "--progress off")
	require.Equal(t, outcome{exitFailed, "", "prog: error: job \"squares\": the input is gone\n  in worker 0 on task manager a\n"}, got)
}

func TestMainOnClusterInterrupted(t *testing.T) {
	signals := make(chan os.Signal, 2)
	f := newFakeCluster(t, func(p *player) {
		p.run()
		signals <- os.Interrupt
		p.awaitCancel()
	})
	got := onCluster(t, f, programEnv{listen: hears(signals)}, "--progress off")
	require.Equal(t, outcome{exitFailed, "", "prog: cancelling " + fakeJob + "; press Ctrl-C again to leave at once, without waiting for its end\nprog: cancelled\n"}, got)
}

func TestMainOnClusterInterruptedTwice(t *testing.T) {
	signals, exited := make(chan os.Signal, 2), make(chan int, 1)
	f := newFakeCluster(t, func(p *player) {
		p.run()
		signals <- os.Interrupt
		<-p.f.cancelled
		signals <- os.Interrupt
		require.Equal(t, exitFailed, <-exited)
		p.state(wire.JobCancelled, "")
	})
	got := onCluster(t, f, programEnv{listen: hears(signals), exit: func(code int) { exited <- code }}, "--progress off")
	require.Equal(t, exitFailed, got.code)
}

func TestMainOnClusterUsage(t *testing.T) {
	offerAll(t, squares)
	for line, want := range map[string]string{
		"--detach":                                              "--detach leaves a job to a cluster: say which with --cluster host:port",
		"--cluster a:b:c":                                       `--cluster: "a:b:c" is no address of a job manager`,
		"--cluster x --wait-timeout -1s":                        "--wait-timeout is negative",
		"--restart fixed-delay":                                 "--restart and its settings are for jobs on a cluster: say which with --cluster host:port",
		"--restart-attempts 3":                                  "--restart and its settings are for jobs on a cluster",
		"--restart-delay 3s":                                    "--restart and its settings are for jobs on a cluster",
		"--restart-window 3s":                                   "--restart and its settings are for jobs on a cluster",
		"--cluster x --restart always":                          `--restart: "always" is no restart strategy: want exponential-delay, fixed-delay, failure-rate or none`,
		"--cluster x --restart-attempts=-1":                     "--restart-attempts is -1",
		"--cluster x --restart-delay=-1s":                       "--restart-delay is -1s",
		"--cluster x --restart-window=-1s":                      "--restart-window is -1s",
		"--cluster x --restart none --restart-delay 1s":         "--restart none has no attempts, delay or window",
		"--cluster x --restart fixed-delay --restart-window 1s": "--restart-window is for the strategies exponential-delay and failure-rate",
		"--cluster x --wait-timeout soon":                       "--wait-timeout: expected duration",
		"--cluster x --tls-cert a":                              "--tls-cert and --tls-key go together",
		"--cluster x --shards 3":                                "--shards is 3",
	} {
		got := runProgram(t, squares, line)
		require.Equal(t, exitUsage, got.code, line)
		require.Contains(t, got.stderr, want)
	}
	got := runProgram(t, squares, "--cluster 127.0.0.1:1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "prog: error: job \"squares\": no job manager answers at 127.0.0.1:1: start one with `superstep dev`")
	got = runProgram(t, squares, "--cluster cluster.example")
	require.Contains(t, got.stderr, "cluster.example:6123 is on another machine")
}

func TestMainOnClusterOfAnotherPlatform(t *testing.T) {
	f := newFakeCluster(t, ranSquares)
	f.overview.Platforms = []wire.Platform{{OS: "plan9", Arch: "mips"}}
	got := onCluster(t, f, programEnv{}, "--progress off")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "the cluster's task managers are plan9/mips and this program is ")
	require.Contains(t, got.stderr, "GOOS=plan9 GOARCH=mips CGO_ENABLED=0 go build -o worker ")
	require.Contains(t, got.stderr, "--worker-binary worker\n")

	script := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	got = onCluster(t, f, programEnv{}, "--progress off --worker-binary "+script)
	require.Contains(t, got.stderr, "--worker-binary: "+script+" is not a Go program")
	self, err := os.Executable()
	require.NoError(t, err)
	got = onCluster(t, f, programEnv{}, "--progress off --worker-binary "+self)
	require.Contains(t, got.stderr, ", but the cluster's task managers are plan9/mips")
	require.Empty(t, f.specs)
}

func TestAsk(t *testing.T) {
	for answers, want := range map[string]bool{"\n": true, "y\n": true, " YES \n": true, "n\n": false, "no": false, "": false, "maybe\nno\n": false, "what\ny\n": true} {
		var out strings.Builder
		require.Equal(t, want, askOn(strings.NewReader(answers), &out, "Build it?"), "%q", answers)
		require.True(t, strings.HasPrefix(out.String(), "Build it? [Y/n] "))
	}
}
