package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/wire"
)

// run runs the command line args with the environment env. It returns the exit code and the
// outputs of the command.
func run(t *testing.T, env map[string]string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	lookup := func(key string) (string, bool) { v, ok := env[key]; return v, ok }
	code = Main(t.Context(), "superstep", "About.", new(Cluster), args, &Streams{Out: &o, Err: &e, Lookup: lookup})
	return code, o.String(), e.String()
}

func TestWrongCommandLines(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte("taskmanager:\n  slot: 3\n"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "expected one of"},
		{[]string{"lst"}, `unexpected argument lst`},
		{[]string{"list", "--state", "done"}, `unknown job state "done"; the states are resolving, waiting`},
		{[]string{"list", "--config", filepath.Join(dir, "none")}, "does not exist"},
		{[]string{"list", "--config"}, "want a file"},
		{[]string{"list", "--config", config}, `config.yaml:2: there is no setting "taskmanager.slot"; did you mean "taskmanager.slots"?`},
		{[]string{"dev", "--taskmanagers", "0"}, "want at least one of both"},
		{[]string{"dev", "--listen", "0.0.0.0:6123"}, "dev is for this machine alone"},
		{[]string{"dev", "--memory", "lots"}, `"lots" is no size`},
		{[]string{"jobmanager", "--placement", "best"}, "pack"},
		{[]string{"taskmanager", "--listen", "0.0.0.0"}, "--insecure"},
		{[]string{"taskmanager", "--jobmanager", "http://x"}, "--jobmanager"},
		{[]string{"taskmanager", "--drain-within=-1s"}, "--drain-within is -1s: want a time, or 0s to leave at once"},
		{[]string{"run", "kmeens"}, "did you mean kmeans?"},
		{[]string{"completion", "tcsh"}, "tcsh"},
		{[]string{"cordon"}, `expected "<taskmanager>"`},
		{[]string{"cordon", "a", "b"}, "unexpected argument b"},
		{[]string{"cordon", "a", "--reason", "two\nlines"}, "--reason: want one line"},
		{[]string{"uncordon", "a", "--reason", "done"}, "unknown flag --reason"},
		{[]string{"export", "m.json", "--output", "a.onnx", "--output", "b.onnx"}, "--output is given twice"},
		{[]string{"inspect", "m.json", "-o", "json", "--output=text"}, "--output is given twice"},
		{[]string{"list", "--config", config, "--config", "none.yaml"}, "--config is given twice"},
	} {
		code, out, errOut := run(t, nil, c.args...)
		require.Equal(t, exitUsage, code, "%q: %s%s", c.args, out, errOut)
		require.Contains(t, errOut, c.want, c.args)
	}
}

func TestUnreachable(t *testing.T) {
	for _, command := range []string{"list", "nodes"} {
		code, _, errOut := run(t, nil, command, "--cluster", "127.0.0.1:1", "--token-file", filepath.Join(t.TempDir(), "none"))
		require.Equal(t, exitFailed, code)
		require.Contains(t, errOut, "none")

		elsewhere := []string{command, "--cluster", "jobs.invalid:1", "--token-file", filepath.Join(t.TempDir(), "none")}
		code, _, errOut = run(t, nil, elsewhere...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, errOut, "--insecure")
		_, _, errOut = run(t, nil, append(elsewhere, "--insecure")...)
		require.Contains(t, errOut, "none", "the command must get as far as reading the token, whose file does not exist")
	}
}

func TestConfigShow(t *testing.T) {
	code, out, errOut := run(t, map[string]string{"SUPERSTEP_TASKMANAGER_SLOTS": "7", "HOME": "/home/u"}, "config", "show")
	require.Zero(t, code, errOut)
	require.Regexp(t, `(?m)^taskmanager\.slots +7 +environment SUPERSTEP_TASKMANAGER_SLOTS$`, out)
	require.Regexp(t, `(?m)^jobmanager\.dir +/home/u/\.local/state/superstep/jobmanager +default$`, out)
	code, out, _ = run(t, nil, "config", "show", "-o", "json")
	require.Zero(t, code)
	require.Contains(t, out, `"key": "jobmanager.listen"`)

	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("taskmanager:\n  slots: 8\n"), 0o600))
	code, out, errOut = run(t, nil, "config", "show", "--config", file)
	require.Zero(t, code, errOut)
	require.Contains(t, out, " "+file+":2\n")
}

func TestCompletion(t *testing.T) {
	_, script, _ := run(t, nil, "completion", "bash")
	require.Contains(t, script, `"taskmanager") path="taskmanager" ;;`)
	require.Regexp(t, `(?m)^    "cancel"\) COMPREPLY=\(\$\(compgen -W "[^"]*--cluster[^"]*" `, script)
	require.Contains(t, script, `"tls init"`)
	require.Regexp(t, `(?m)^    "completion"\) COMPREPLY=\(\$\(compgen -W "[^"]*bash fish zsh`, script)
	_, script, _ = run(t, nil, "completion", "zsh")
	require.True(t, strings.HasPrefix(script, "autoload"))
	_, script, _ = run(t, nil, "completion", "fish")
	require.Contains(t, script, `complete -c superstep -n "__superstep_at ''" -a taskmanagers`)
	// The commands "show" and "config show" have different flags: only "show" has --cluster.
	require.Contains(t, script, "-n \"__superstep_at 'show'\" -l cluster\n")
	require.Contains(t, script, "-n \"__superstep_at 'config show'\" -l output\n")
	require.NotContains(t, script, "-n \"__superstep_at 'config show'\" -l cluster\n")
	require.Contains(t, script, "-n \"__superstep_at 'config'\" -f\n", "config has subcommands, so no file name can follow it")
	require.NotContains(t, script, "-n \"__superstep_at 'run'\" -f\n", "the file name of a program can follow run")
}

// TestCompletionInShells requires that bash and fish, if they are installed, offer the flags of
// "config show" after they have loaded the completion script.
func TestCompletionInShells(t *testing.T) {
	for shell, ask := range map[string]string{
		"bash": `COMP_WORDS=(superstep config show --); COMP_CWORD=3; _superstep; printf '%s\n' "${COMPREPLY[@]}"`,
		"fish": `complete -C "superstep config show --"`,
	} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: only TestCompletion tests its script", shell)
			continue
		}
		_, script, _ := run(t, nil, "completion", shell)
		cmd := proctest.CommandContext(t.Context(), path, "-c", script+ask)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, []string{"--config", "--help", "--output"}, strings.Fields(string(out)), shell)
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := run(t, nil, "version")
	require.Zero(t, code)
	require.Equal(t, fmt.Sprintf("superstep %s, protocol %d\n", wire.Build(), wire.Version), out)
}

// now is the current time in tests that print tables.
var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func TestJobTables(t *testing.T) {
	jobs := []wire.JobInfo{
		{ID: "j2", Name: "evil\x1b[2J\nname", State: wire.JobWaiting, Detail: "waiting for 6 slots\nand more", Submitted: now.Add(-90 * time.Second)},
		{ID: "j1", Name: "kmeans", State: wire.JobFinished, Slots: 6, Submitted: now.Add(-50 * time.Hour), Started: now.Add(-49 * time.Hour), Ended: now.Add(-49*time.Hour + 1500*time.Millisecond)},
	}
	var out bytes.Buffer
	require.NoError(t, writeJobs(&out, jobs, now))
	require.Equal(t, `JOB  NAME           STATE     SLOTS  SUBMITTED  RAN   DETAIL
j2   evil?[2J name  waiting   -      1m30s ago  -     waiting for 6 slots
j1   kmeans         finished  6      2d2h ago   1.5s
`, out.String())
	out.Reset()
	require.NoError(t, writeJobs(&out, nil, now))
	require.Equal(t, "no jobs\n", out.String())
}

func TestOneJob(t *testing.T) {
	g := &plan.Graph{Job: "j", Shards: 8, Nodes: []plan.Node{{Op: "Range", Schema: []plan.Column{{Name: "x", Type: "int64"}}}, {ID: 1, Op: "Print", Sink: true, Inputs: []plan.Input{{}}}}}
	p, err := plan.Compile(g, 2)
	require.NoError(t, err)
	data, err := p.JSON()
	require.NoError(t, err)
	j := &wire.JobInfo{
		ID: "j1", Name: "j", State: wire.JobFailed, Parallelism: 2, Shards: 8, Submitted: now,
		Failure: &wire.Failure{Message: "operator Map: no", Worker: 1, TaskManager: "tm1", LastLines: []string{"last\x07 words"}},
		Workers: []wire.Placed{{TaskManager: "tm0", Slots: wire.SlotRange{Hi: 1}, Address: "a:1"}, {TaskManager: "tm1", Slots: wire.SlotRange{Lo: 1, Hi: 2}}},
		Plan:    data, Progress: &wire.Progress{Vertices: []wire.VertexProgress{{Rows: 12, ShardsDone: 3}}, Uncopied: []wire.Uncopied{{Queue: "q", Why: "no\x07 codec"}}},
	}
	p, err = planOf(j)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, writeJob(&out, j, p, now))
	for _, want := range []string{"operator Map: no (worker 1 on task manager tm1)", "| last? words", "1       tm1           1–1", "Range → Print", "12    3 of 8", `the state of queue "q" is not copied, so another attempt would begin it at superstep 1: no? codec`} {
		require.Contains(t, out.String(), want)
	}
	for _, form := range []string{"text", "json", "dot"} {
		out.Reset()
		require.NoError(t, writePlan(&out, p, form))
		require.Contains(t, out.String(), "Range")
	}
	require.ErrorContains(t, writePlan(&out, nil, "text"), "no plan yet")
	_, err = planOf(&wire.JobInfo{ID: "j", Plan: []byte("{")})
	require.ErrorContains(t, err, "the plan of job j")
}

// TestAttempts requires that the attempts of a restarted job are shown with their causes.
func TestAttempts(t *testing.T) {
	j := &wire.JobInfo{
		ID: "j1", State: wire.JobRunning, Attempt: 4, Restarts: 2, Started: now.Add(3 * time.Second),
		Lost: []wire.LostAttempt{
			{Number: 2, Began: now, Ran: now, Ended: now.Add(time.Second), Cause: "panic: boom\ngoroutine 1"},
			{Number: 3, Began: now.Add(time.Second), Ran: now.Add(1300 * time.Millisecond), Ended: now.Add(2 * time.Second), Cause: "task manager b\x07 was silent"},
		},
	}
	var out bytes.Buffer
	require.NoError(t, writeAttempts(&out, j))
	at := func(s int) string { return now.Add(time.Duration(s) * time.Second).Format(time.RFC3339) }
	require.Equal(t, []string{
		"ATTEMPT BEGAN RAN AFTER ENDED WHY IT ENDED",
		"2 " + at(0) + " - " + at(1) + " panic: boom",
		"3 " + at(1) + " 0.3s " + at(2) + " task manager b? was silent",
		"4 " + at(3) + " 1.0s - running",
	}, words(out.String()))
	j.State, j.Started = wire.JobWaiting, now
	out.Reset()
	require.NoError(t, writeAttempts(&out, j))
	lines := words(out.String())
	require.Equal(t, "4 - - - waiting", lines[len(lines)-1])
	out.Reset()
	require.NoError(t, writeJob(&out, j, nil, now))
	require.Contains(t, out.String(), "panic: boom")
	require.NotContains(t, out.String(), "priority")
	j.Priority = -2
	out.Reset()
	require.NoError(t, writeJob(&out, j, nil, now))
	require.Contains(t, words(out.String()), "priority -2")
	j.Lost = make([]wire.LostAttempt, wire.MaxLost)
	j.Lost[0].Number = 8
	out.Reset()
	require.NoError(t, writeAttempts(&out, j))
	require.Equal(t, "the attempts before 8 are not listed", words(out.String())[0])
}

// TestRecoveries requires that the phases of recoveries are shown as times since the detection, and that
// those that have not ended, and attempts without such a record, are not.
func TestRecoveries(t *testing.T) {
	after := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	var out bytes.Buffer
	require.NoError(t, writeRecoveries(&out, []wire.LostAttempt{
		{Number: 1},
		{Number: 2, Recovery: wire.Recovery{Detected: now, Agreed: after(10), Placed: after(120), Connected: after(250), Moved: after(300), Resumed: after(1456), Superstep: 7}},
		{Number: 3, Recovery: wire.Recovery{Detected: now, Agreed: after(0)}},
	}))
	at := now.Format(time.RFC3339)
	require.Equal(t, []string{
		"RECOVERY FROM DETECTED AGREED PLACED CONNECTED MOVED RESUMED AT SUPERSTEP",
		"2 " + at + " 0.01s 0.12s 0.25s 0.30s 1.46s 7",
		"3 " + at + " 0.00s - - - - -",
	}, words(out.String()))
	out.Reset()
	require.NoError(t, writeRecoveries(&out, []wire.LostAttempt{{Number: 1}}))
	require.Empty(t, out.String())
}

// TestScaled requires that the scale command says with how many subtasks a job may run and runs.
func TestScaled(t *testing.T) {
	for want, j := range map[string]wire.JobInfo{
		"j may run at parallelism 2:8; it runs at 4":                                        {State: wire.JobRunning, Parallelism: 4, Allowed: wire.Parallelism{Min: 2, Max: 8}},
		"j may run at parallelism 6; it runs at 4 until it is saved and 6 slots can be had": {State: wire.JobDeploying, Parallelism: 4, Allowed: wire.Parallelism{Min: 6, Max: 6}},
		"j may run at parallelism 1; it is waiting":                                         {State: wire.JobWaiting, Parallelism: 4, Allowed: wire.Parallelism{Min: 1, Max: 1}},
	} {
		j.ID = "j"
		require.Equal(t, want, scaled(&j))
	}
	require.Equal(t, "4 (2:8 allowed) of 128 shards, seed 1", subtasks(&wire.JobInfo{Parallelism: 4, Shards: 128, Seed: 1, Allowed: wire.Parallelism{Min: 2, Max: 8}}))
	require.Equal(t, "4 of 128 shards, seed 1", subtasks(&wire.JobInfo{Parallelism: 4, Shards: 128, Seed: 1, Allowed: wire.Parallelism{Min: 4, Max: 4}}))
}

// words returns the lines of text that are not empty, with one space between words.
func words(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
}

// TestAttachedSaysWhatIsNotCopied requires that a client says once of each queue that its state is not copied.
func TestAttachedSaysWhatIsNotCopied(t *testing.T) {
	var said bytes.Buffer
	a := &attached{out: io.Discard, err: &said}
	for _, queues := range [][]wire.Uncopied{nil, {{Queue: "q", Why: "no codec"}}, {{Queue: "q", Why: "no codec"}, {Queue: "r", Why: "no key"}}} {
		require.NoError(t, a.event(&wire.Event{Progress: &wire.Progress{Uncopied: queues}}))
	}
	require.Equal(t, `the state of queue "q" is not copied, so another attempt would begin it at superstep 1: no codec
the state of queue "r" is not copied, so another attempt would begin it at superstep 1: no key
`, said.String())
}

// TestDrained requires sentences about one job and about several.
func TestDrained(t *testing.T) {
	one, two := []wire.JobID{"a"}, []wire.JobID{"b", "c"}
	require.Equal(t, "", drained(&wire.DrainReply{}, 0))
	require.Equal(t, "a leaves: it is saved and then goes on elsewhere\n"+
		"b, c would lose their states, as they have no checkpoints and no other workers or too few slots elsewhere: they stay until that changes or they have ended (--within limits that)\n",
		drained(&wire.DrainReply{Leave: one, Stay: two}, 0))
	require.Equal(t, "b, c leave: each is saved and then goes on elsewhere\n"+
		"a would lose its state, as it has no checkpoints and no other workers or too few slots elsewhere: after 1m0s it begins again elsewhere\n",
		drained(&wire.DrainReply{Leave: two, Stay: one}, time.Minute))
}

func TestNodeTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, writeTaskManagers(&out, &wire.TaskManagersReply{TaskManagers: []wire.TaskManagerInfo{
		{Name: "tm0", State: "alive", Slots: 4, Free: 1, Memory: 3 << 30, Platform: wire.Platform{OS: "linux", Arch: "amd64"}, HeardAgo: 120 * time.Millisecond, Workers: make([]wire.WorkerRef, 2),
			Build: "v1.2.3 (linux/amd64, go1.26)", Executable: strings.Repeat("0123456789abcdef", 4)},
		{Name: "tm1", State: "left", Slots: 2, HeardAgo: 2 * time.Hour},
		{Name: "tm2", State: "alive", Slots: 2, Ailing: "the disk is full"},
		{Name: "tm3", State: "alive", Slots: 1, Cordon: &wire.Cordon{Since: now.Add(-time.Hour), Reason: "repair"}, Avoided: &wire.Avoidance{Until: now.Add(time.Minute), Died: 3}},
		{Name: "tm3", State: "left", Slots: 1, Cordon: &wire.Cordon{Since: now.Add(-time.Hour), Reason: "repair"}},
		{Name: "tm4", State: wire.TaskManagerAbsent, Cordon: &wire.Cordon{Since: now.Add(-time.Minute)}},
	}}, now))
	require.Equal(t, `TASK MANAGER  STATE                     SLOTS  FREE  MEMORY  PLATFORM     VERSION  EXECUTABLE    HEARD      WORKERS
tm0           alive                     4      1     3 GiB   linux/amd64  v1.2.3   0123456789ab  120ms ago  2
tm1           left                      2      0     0 B     /            -        -             2h0m ago   0
tm2           alive, takes no work      2      0     0 B     /            -        -             0s ago     0
tm3           alive, cordoned, avoided  1      0     0 B     /            -        -             0s ago     0
tm3           left, cordoned            1      0     0 B     /            -        -             0s ago     0
tm4           absent, cordoned          -      -     -       -            -        -             -          -

1 of 7 slots are free
tm2 takes no work: the disk is full
tm3 is cordoned since 2026-01-02T14:04:05Z (1h0m ago): repair
tm3 is avoided until 2026-01-02T15:05:05Z, as 3 workers died there
tm4 is cordoned since 2026-01-02T15:03:05Z (1m0s ago)
`, out.String())
	out.Reset()
	require.NoError(t, writeTaskManagers(&out, &wire.TaskManagersReply{Ailing: "its disk is full"}, now))
	require.Equal(t, "the job manager takes no jobs: its disk is full\n\nno task managers: start one with \"superstep taskmanager\"\n", out.String())
}

// TestCordonText compares what the commands cordon and uncordon print.
func TestCordonText(t *testing.T) {
	cordon := &wire.Cordon{Since: now.Add(-time.Hour), Reason: "repair\x1b"}
	for want, r := range map[string]wire.CordonReply{
		"tm is cordoned since 2026-01-02T14:04:05Z (1h0m ago): repair?\n2 workers that run there go on\nthe cluster has 4 slots for new workers\n": {Cordon: cordon, Changed: true, Registered: 1, Workers: 2, Slots: 4},
		"tm is cordoned since 2026-01-02T15:04:05Z (0s ago)\n1 worker that runs there goes on\nthe cluster has 1 slot for new workers\n":           {Cordon: &wire.Cordon{Since: now}, Changed: true, Registered: 1, Workers: 1, Slots: 1},
		"tm was cordoned already since 2026-01-02T14:04:05Z (1h0m ago): repair?\nno workers run there\n" +
			"no slots are left for new workers: jobs wait until a task manager is uncordoned or another one registers\n": {Cordon: cordon, Registered: 1},
		"tm is cordoned since 2026-01-02T14:04:05Z (1h0m ago): repair?\nno task manager of this name is in the cluster now; one that registers gets no workers\n" +
			"the cluster has 2 slots for new workers\n": {Cordon: cordon, Changed: true, Slots: 2},
		"tm is not cordoned any more\nthe cluster has 2 slots for new workers\n": {Changed: true, Registered: 1, Workers: 1, Slots: 2},
		"tm was not cordoned\nthe cluster has no slots for new workers now\n":    {},
	} {
		r.TaskManager = "tm"
		var out bytes.Buffer
		require.NoError(t, writeCordoned(&out, &r, now))
		require.Equal(t, want, out.String())
	}
}

func TestPrefixedLines(t *testing.T) {
	var out bytes.Buffer
	w := (&lineWriter{out: &out}).prefixed("[a] ")
	for _, s := range []string{"one\ntw", "o\n", strings.Repeat("x", 3*maxLine), "\nend\x1b\n"} {
		n, err := w.Write([]byte(s))
		require.NoError(t, err)
		require.Equal(t, len(s), n)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Equal(t, []string{"[a] one", "[a] two"}, lines[:2])
	require.Equal(t, "[a] end?", lines[len(lines)-1])
	require.Equal(t, 3*maxLine, strings.Count(out.String(), "x"))
}

func TestExitCodes(t *testing.T) {
	var out bytes.Buffer
	s := &Streams{Err: &out}
	require.Equal(t, 0, fail(s, "x", nil))
	require.Equal(t, 7, fail(s, "x", ExitError(7)))
	require.Equal(t, 1, fail(s, "x", Quiet(errors.New("known"))))
	require.Empty(t, out.String())
	require.Equal(t, 2, fail(s, "x", Usage(errors.New("bad"))))
	require.Equal(t, 1, fail(s, "x", context.Canceled))
}
