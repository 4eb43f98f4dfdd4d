package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

// outcome is the exit code and the output of a program.
type outcome struct {
	code           int
	stdout, stderr string
}

// lockedBuffer is a buffer that several goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// runProgram runs a job as a program without a terminal.
func runProgram[A any](t *testing.T, job *Job[A], line string, opts ...MainOption) outcome {
	t.Helper()
	return runIn(t, job, programEnv{}, line, opts...)
}

// runIn runs a job as a program. It fills in the fields that w does not set.
func runIn[A any](t *testing.T, job *Job[A], w programEnv, line string, opts ...MainOption) outcome {
	t.Helper()
	var stdout, stderr lockedBuffer
	w.name, w.args, w.stdout, w.stderr = "prog", strings.Fields(line), &stdout, &stderr
	if w.getenv == nil {
		w.getenv = func(string) string { return "" }
	}
	if w.width == nil {
		w.width = func() int { return 0 }
	}
	if w.exit == nil {
		w.exit = func(int) { panic("exit") }
	}
	if w.now == nil {
		w.now = slowly()
	}
	if w.listen == nil {
		w.listen = hears(nil)
	}
	code := mainWith(t.Context(), job, w, opts...)
	return outcome{code, stdout.String(), stderr.String()}
}

// slowly returns a clock that advances by a second at each reading, so that two signals are as
// far apart as two key presses of a person.
func slowly() func() time.Time {
	at := time.Unix(0, 0)
	return func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}

// hears returns a listen function with which a program receives the given signals.
func hears(signals <-chan os.Signal) func() (<-chan os.Signal, func()) {
	return func() (<-chan os.Signal, func()) { return signals, func() {} }
}

func TestMainRunsTheJob(t *testing.T) {
	var kept *Result
	got := runProgram(t, squares, "--n 4 --shards 8 --parallelism 2 --seed 7", AfterRun(func(a squaresArgs, r *Result) error {
		kept = r
		require.Equal(t, 4, a.N)
		require.Equal(t, 8, r.Plan.Shards)
		require.Equal(t, 2, r.Plan.Parallelism)
		require.Equal(t, uint64(7), r.Plan.Seed)
		rows, err := Rows[number](r, "squares")
		require.Equal(t, []number{{0}, {1}, {4}, {9}}, rows)
		return err
	}), nil)
	require.Equal(t, exitOK, got.code, got.stderr)
	_, err := recordsOf(kept, "squares")
	require.ErrorContains(t, err, "it was released already")
	require.Empty(t, got.stdout)
	require.Equal(t, `squares: 3 operators in 1 vertex, parallelism 2, 8 shards, seed 7
  Numbers → Transform(square) → Collect(squares) ×2
`, got.stderr[:strings.Index(got.stderr, "done:")])
	require.Regexp(t, `\ndone: 4 rows in \d+\.\ds\n$`, got.stderr)
}

func TestMainOff(t *testing.T) {
	got := runProgram(t, squares, "--progress off")
	require.Equal(t, outcome{}, got)
}

func TestMainHooks(t *testing.T) {
	var order []string
	hook := func(name string, err error) MainOption {
		return AfterRun(func(squaresArgs, *Result) error { order = append(order, name); return err })
	}
	got := runProgram(t, squares, "--progress=off", hook("a", nil), hook("b", errors.New("no ink")), hook("c", nil))
	require.Equal(t, outcome{exitFailed, "", "prog: error: after the run: no ink\n"}, got)
	require.Equal(t, []string{"a", "b"}, order)

	got = runProgram(t, squares, "--progress=off", AfterRun(func(squaresArgs, *Result) error { panic("no paper") }))
	require.Equal(t, exitFailed, got.code, "the code must not be 2, with which Go programs end after a panic")
	require.Contains(t, got.stderr, "after the run: panic: no paper\n")
	require.Contains(t, got.stderr, "main_test.go")

	got = runProgram(t, squares, "--progress=off", AfterRun(func(squaresArgs, *Result) error { runtime.Goexit(); return nil }))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "after the run: the function ended its goroutine")

	// A hook for other arguments, and a nil hook, are reported before anything runs.
	order = nil
	got = runProgram(t, squares, "--progress=off", hook("a", nil), AfterRun(func(string, *Result) error { return nil }))
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `^prog: error: main_test\.go:\d+: AfterRun: the function takes string, the job's arguments are engine\.squaresArgs\n$`, got.stderr)
	got = runProgram(t, squares, "--progress=off", AfterRun[squaresArgs](nil), nil)
	require.Regexp(t, `main_test\.go:\d+: AfterRun: the function is nil`, got.stderr)
	require.Empty(t, order)

	order = nil
	got = runProgram(t, squares, "--progress=off --fail no", hook("a", nil))
	require.Equal(t, exitFailed, got.code)
	require.Empty(t, order, "no hook may be called without a result")
}

func TestMainFailures(t *testing.T) {
	for _, test := range []struct {
		name, line string
		code       int
		want       string
	}{
		{"job", "--fail broken", exitFailed, `prog: error: job "squares": operator Transform "square" (kit_test.go:`},
		{"unknown flag", "--shard 8", exitUsage, "prog: error: unknown flag --shard, did you mean \"--shards\"?\n\"prog --help\" lists the flags.\n"},
		{"unexpected word", "data.csv", exitUsage, "prog: error: unexpected argument data.csv\n"},
		{"no number", "--n many", exitUsage, `prog: error: --n: want a whole number, but got "many"`},
		{"no value", "--n", exitUsage, "--n: want a whole number, but no value is given"},
		{"shards", "--shards 100", exitUsage, "--shards is 100: want a power of two between 1 and 1048576\n"},
		{"parallelism above one shard", "--shards 1 --parallelism 2", exitUsage, "--parallelism is 2, but there is only 1 shard and a subtask needs one of its own: lower it to 1, or raise --shards to 2"},
		{"parallelism above shards", "--shards 4 --parallelism 5", exitUsage, "--parallelism is 5, but there are only 4 shards and a subtask needs one of its own: lower it to 4, or raise --shards to 8"},
		{"progress", "--progress fast", exitUsage, `--progress must be one of "auto","plain","json","off" but got "fast"`},
		{"if exists", "--if-exists append", exitUsage, `--if-exists must be one of "fail","replace" but got "append"`},
		{"log level", "--log-level loud", exitUsage, `--log-level must be one of`},
		{"memory", "--memory lots", exitUsage, `--memory: "lots" is no size: want a positive number and a unit, such as 512MiB or 4GB`},
		{"batch rows", "--batch-rows 0", exitUsage, "--batch-rows is 0: want at least 1"},
		{"explain form", "--explain=xml", exitUsage, `--explain: want text, json or dot, but got "xml"`},
		{"explain and options", "--explain --shards 3", exitUsage, "--shards is 3"},
		{"no value but a flag", "--n --shards 8", exitUsage, `--n: want a whole number, but got "--shards"`},
		{"large number", "--n 9223372036854775808", exitUsage, "--n: want a whole number from -9223372036854775808 to 9223372036854775807, but got 9223372036854775808\n"},
		{"negative seed", "--seed -1", exitUsage, "prog: error: --seed: want a whole number from 0 to 18446744073709551615, but got -1\n"},
		{"negative parallelism", "--parallelism -1", exitUsage, "prog: error: --parallelism is -1: want at least 1, or 0 for one per processor\n"},
		{"negative shards", "--shards -8 --n 3", exitUsage, "prog: error: --shards is -8: want a power of two"},
		{"negative batch rows", "--batch-rows -1", exitUsage, "prog: error: --batch-rows is -1: want at least 1\n"},
		{"checkpoints without a directory", "--checkpoint-every 20steps", exitUsage, "prog: error: --checkpoint-every and --checkpoint-fail-after need --checkpoint-dir\n"},
		{"checkpoints never", "--checkpoint-dir d --checkpoint-every 0s", exitUsage, `prog: error: --checkpoint-every: "0s" is neither a time such as 30s nor a number of supersteps such as 20steps nor auto`},
		{"a mean time without auto", "--checkpoint-dir d --mtbf 1h", exitUsage, "prog: error: --mtbf is for --checkpoint-every auto\n"},
		{"a negative mean time", "--checkpoint-dir d --checkpoint-every auto --mtbf -1h", exitUsage, "prog: error: --mtbf is -1h0m0s: want a positive time\n"},
		{"auto without a directory", "--checkpoint-every auto", exitUsage, "prog: error: --checkpoint-every and --checkpoint-fail-after need --checkpoint-dir\n"},
		{"checkpoints at no superstep", "--checkpoint-every 0steps", exitUsage, `"0steps" is neither a time such as 30s`},
		{"checkpoints at half a superstep", "--checkpoint-every 1.5steps", exitUsage, `"1.5steps" is neither a time such as 30s`},
		{"states that nobody saves", "--checkpoint require", exitUsage, "prog: error: --checkpoint require: no state is saved"},
		{"no rule for checkpoints", "--checkpoint always", exitUsage, `--checkpoint must be one of "allow","require" but got "always"`},
		{"a priority that there is not", "--cluster host --priority -6", exitUsage, "prog: error: --priority is -6: want -5 to 5, where higher ones get slots first\n"},
		{"a priority in this process", "--priority -1", exitUsage, "prog: error: --priority is for jobs on a cluster: say which with --cluster host:port\n"},
		{"resume from nowhere", "--resume", exitUsage, "--resume needs --checkpoint-dir"},
		{"negative memory", "--memory -1GB", exitUsage, `--memory: "-1GB" is no size`},
		{"negative nothing", "-1", exitUsage, "unknown flag -1"},
		{"twice", "--n 3 --n 4", exitUsage, "prog: error: --n is given twice\n\"prog --help\" lists the flags.\n"},
		{"twice in two ways", "--shards=8 --n 3 --shards 4 --n=3 --n 1", exitUsage, "prog: error: --shards is given twice\n--n is given 3 times\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runProgram(t, squares, test.line)
			require.Equal(t, test.code, got.code, got.stderr)
			require.Contains(t, got.stderr, test.want)
			require.Empty(t, got.stdout)
		})
	}
}

func TestMainMisuse(t *testing.T) {
	site := ""
	job := Define("wrong", func(b *Builder, _ struct{}) error {
		site = here(1)
		b.Errorf("Map: no")
		return nil
	})
	for _, line := range []string{"", "--explain"} {
		got := runProgram(t, job, line)
		require.Equal(t, outcome{exitFailed, "", `prog: error: job "wrong": ` + site + ": Map: no\n"}, got)
	}
	require.Equal(t, exitFailed, runProgram(t, Define[struct{}]("x", nil), "").code)
}

func TestMainExplain(t *testing.T) {
	compiled, err := Compile(squares, squaresArgs{N: 10}, Parallelism(2), Shards(8))
	require.NoError(t, err)
	asJSON, err := compiled.JSON()
	require.NoError(t, err)
	for line, want := range map[string]string{
		"--explain":                compiled.Text(),
		"--explain text":           compiled.Text(),
		"--explain --n 10":         compiled.Text(),
		"--explain=json":           string(asJSON),
		"--explain json":           string(asJSON),
		"--explain dot":            compiled.DOT(),
		"--explain dot --n=10":     compiled.DOT(),
		"--explain --progress=off": compiled.Text(),
	} {
		for range 2 {
			got := runProgram(t, squares, "--shards 8 --parallelism 2 "+line, AfterRun(func(squaresArgs, *Result) error { panic("runs") }))
			require.Equal(t, exitOK, got.code, got.stderr)
			requireLines(t, want, got.stdout)
			require.Empty(t, got.stderr)
		}
	}
	var decoded plan.Plan
	require.NoError(t, json.Unmarshal([]byte(runProgram(t, squares, "--explain json").stdout), &decoded))
	require.Equal(t, "squares", decoded.Job)
}

// everything has one argument of each type.
type everything struct {
	Input    []string      `help:"Files to read." required:""`
	K        int           `short:"k" help:"Number of clusters." default:"3"`
	Init     string        `enum:"random,first" default:"random" help:"Where to begin."`
	Wait     time.Duration `default:"1m30s" help:"How long to wait."`
	Renamed  float64       `name:"tolerance" default:"0.5" help:"When to stop."`
	Weighted bool          `help:"Weigh rows."`
	Common
	Output struct {
		Dir  string `help:"Directory to write to."`
		Rows int    `default:"7" help:"Rows per file."`
	} `embed:"" prefix:"output-"`
}

// Common are arguments that jobs share.
type Common struct {
	Label string `help:"A label."`
}

func (e everything) Validate() error {
	if e.K < 1 {
		return fmt.Errorf("--k is %d: want at least 1", e.K)
	}
	return nil
}

func TestMainArguments(t *testing.T) {
	var got everything
	job := Define("everything", func(b *Builder, a everything) error {
		got = a
		numbers(b, 1)
		return nil
	}).Describe("Shows one argument of each kind.")
	require.Equal(t, "everything", job.Name())

	ran := runProgram(t, job, "--progress off --input a.csv,b.csv --input c.csv -k 5 --wait 2s --weighted --label x --output-dir out --tolerance 1e-3")
	require.Equal(t, exitOK, ran.code, ran.stderr)
	want := everything{Input: []string{"a.csv", "b.csv", "c.csv"}, K: 5, Init: "random", Wait: 2 * time.Second, Renamed: 1e-3, Weighted: true}
	want.Label, want.Output.Dir, want.Output.Rows = "x", "out", 7
	require.Equal(t, want, got)

	for line, message := range map[string]string{
		"":                          "missing flags: --input",
		"--input a --init last":     `--init must be one of "random","first" but got "last"`,
		"--input a -k 0":            "--k is 0: want at least 1",
		"--input a --wait long":     "--wait: expected duration",
		"--input a --output-rows x": "--output-rows",
	} {
		ran := runProgram(t, job, line)
		require.Equal(t, exitUsage, ran.code, line)
		require.Contains(t, ran.stderr, message, line)
	}

	ran = runProgram(t, job, "--help")
	require.Equal(t, exitOK, ran.code, "--help must work without the required arguments: %s", ran.stderr)
	require.Empty(t, ran.stderr)
	own, engine, found := strings.Cut(ran.stdout, "Engine flags:")
	require.True(t, found, ran.stdout)
	require.Contains(t, own, "Usage: prog")
	require.Contains(t, own, "Shows one argument of each kind.")
	for _, flag := range []string{"--input", "-k, --k", "--init", "--wait", "--tolerance", "--weighted", "--label", "--output-dir"} {
		require.Contains(t, own, flag)
	}
	for _, flag := range []string{"--parallelism", "--shards", "--seed", "--explain", "--progress", "--if-exists",
		"--log-level", "--log-json", "--batch-rows", "--memory", "--spill-dir", "--version"} {
		require.Contains(t, engine, flag)
		require.NotContains(t, own, flag+"=")
	}

	ran = runProgram(t, job, "--version")
	require.Equal(t, exitOK, ran.code)
	require.Regexp(t, `go1\.\d+`, ran.stdout)
}

func TestMainSeedOfTheJob(t *testing.T) {
	type seeded struct {
		Seed int64 `help:"Seed of the centres." default:"5"`
	}
	var args seeded
	var seed uint64
	job := Define("seeded", func(b *Builder, a seeded) error {
		args, seed = a, b.Seed()
		numbers(b, 1)
		return nil
	})
	require.Equal(t, exitOK, runProgram(t, job, "--progress off").code)
	require.Equal(t, seeded{5}, args)
	require.Equal(t, uint64(5), seed)
	require.Equal(t, exitOK, runProgram(t, job, "--progress off --seed 11").code)
	require.Equal(t, uint64(11), seed)
	require.Equal(t, exitOK, runProgram(t, job, "--progress off --seed=-1").code)
	require.Equal(t, ^uint64(0), seed)
	require.Equal(t, exitOK, runProgram(t, job, "--progress off --seed -2").code)
	require.Equal(t, seeded{-2}, args)
	require.Equal(t, ^uint64(1), seed)
	help := runProgram(t, job, "--help").stdout
	require.Equal(t, 1, strings.Count(help, "--seed"))
}

func TestMainCollisions(t *testing.T) {
	check := func(got outcome, want string) {
		t.Helper()
		require.Equal(t, exitFailed, got.code)
		require.Contains(t, got.stderr, want)
	}
	collides := "flag %s is defined both by the job's arguments (%s) and by the engine"
	check(runProgram(t, Define("x", func(*Builder, struct{ Shards int }) error { return nil }), ""),
		fmt.Sprintf(collides, "--shards", "--shards"))
	check(runProgram(t, Define("x", func(*Builder, struct {
		Hosts string `short:"h"`
	}) error {
		return nil
	}), ""), fmt.Sprintf(collides, "-h", "--hosts"))
	check(runProgram(t, Define("x", func(*Builder, struct {
		Budget string `aliases:"memory"`
	}) error {
		return nil
	}), ""), fmt.Sprintf(collides, "--memory", "--budget"))
	check(runProgram(t, Define("x", func(*Builder, struct{ Seed string }) error { return nil }), ""),
		"flag --seed of the job's arguments is a string, but the engine's --seed")
	check(runProgram(t, Define("x", func(*Builder, int) error { return nil }), ""),
		"the arguments int cannot be flags: want a struct")
	check(runProgram(t, Define("x", func(*Builder, struct{ C chan int }) error { return nil }), ""),
		"cannot be flags")
	check(runProgram(t, Define("x", func(*Builder, struct{ In struct{ X int } }) error { return nil }), ""),
		`unsupported field type struct { X int }, nested structs take the tag embed:"" prefix:"name-"`)
	check(runProgram(t, Define("x", func(*Builder, struct {
		Train struct{} `cmd:""`
	}) error {
		return nil
	}), ""), `the command "train" of a job is no argument`)
	check(runProgram(t, Define("x", func(*Builder, struct {
		Fast bool `negatable:"log-json"`
	}) error {
		return nil
	}), ""), fmt.Sprintf(collides, "--log-json", "--fast"))
}

// validated has arguments whose validation panics or ends its goroutine.
type validated struct{ How string }

func (v validated) Validate() error {
	if v.How == "goexit" {
		runtime.Goexit()
	}
	panic("no check")
}

func TestMainSurvivesGoexit(t *testing.T) {
	job := Define("gone", func(*Builder, struct{}) error { runtime.Goexit(); return nil })
	for _, line := range []string{"", "--explain"} {
		got := runProgram(t, job, line)
		require.Equal(t, exitFailed, got.code)
		require.Contains(t, got.stderr, `prog: error: job "gone": the job function: the function ended its goroutine (runtime.Goexit`)
	}
	checked := Define("checked", func(*Builder, validated) error { return nil })
	got := runProgram(t, checked, "--how goexit")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "the function ended its goroutine")
	got = runProgram(t, checked, "--how panic")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "panic: no check\n")
}

func TestMainColours(t *testing.T) {
	env := map[string]string{}
	w := programEnv{width: func() int { return 60 }, getenv: func(k string) string { return env[k] }}
	require.Contains(t, runIn(t, squares, w, "--nothing").stderr, "\x1b[1;31merror:\x1b[0m")
	env["NO_COLOR"] = "1"
	require.NotContains(t, runIn(t, squares, w, "--nothing").stderr, "\x1b")
	require.Contains(t, runIn(t, squares, w, "").stderr, "done: 10 rows", "the live line must be shown without colours too")
	delete(env, "NO_COLOR")
	env["TERM"] = "dumb"
	require.NotContains(t, runIn(t, squares, w, "--nothing").stderr, "\x1b")
	require.NotContains(t, runIn(t, squares, w, "").stderr, "\x1b")
}

func TestMainLogs(t *testing.T) {
	job := Define("logs", func(b *Builder, _ struct{}) error {
		dropped(transform(numbers(b, 1), "", func(c *Context, n int64) (int64, error) {
			c.Logger.Warn("strange", "n", n)
			c.Logger.Info("ordinary")
			return n, nil
		}))
		return nil
	})
	got := runProgram(t, job, "--progress off --parallelism 1")
	require.Regexp(t, `\[WARN\].*strange: n=0\n`, got.stderr)
	require.NotContains(t, got.stderr, "ordinary")
	require.Contains(t, runProgram(t, job, "--progress off --log-level info").stderr, "ordinary")
	require.Empty(t, runProgram(t, job, "--progress off --log-level off").stderr)
	got = runProgram(t, job, "--progress off --parallelism 1 --log-json")
	var entry map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stderr), &entry), got.stderr)
	require.Equal(t, "strange", entry["@message"])
}

func TestMainProgressJSON(t *testing.T) {
	got := runProgram(t, squares, "--progress json --n 20 --shards 4 --parallelism 2")
	require.Equal(t, exitOK, got.code)
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	require.JSONEq(t, `{"event":"begin","job":"squares","operators":3,"vertices":1,"parallelism":2,"shards":4,"seed":0}`, lines[0])
	var last progressEvent
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	require.Equal(t, "done", last.Event)
	require.Equal(t, int64(20), last.Rows)

	got = runProgram(t, squares, "--progress json --fail broken")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `"event":"failed"`)
	require.Contains(t, got.stderr, "broken")
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "10b": 10, "1k": 1000, "1KB": 1000, "1KiB": 1024, "512 MiB": 512 << 20, "1.5g": 1_500_000_000, "2TiB": 2 << 40,
	} {
		var s byteSize
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, int64(s), text)
	}
	for _, text := range []string{"", "0", "-1", "x", "1x", "1e400", "1e30", "NaN", "Inf", "0.1b", "9999999tib", "1.2.3"} {
		var s byteSize
		require.Error(t, s.UnmarshalText([]byte(text)), text)
	}
}

func TestMemoryFlagLimitsTheHeap(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	set := func(granted int64, environment string) int64 {
		debug.SetMemoryLimit(before)
		limitHeap(granted, func(string) string { return environment })
		return debug.SetMemoryLimit(-1)
	}
	require.Equal(t, int64(400<<20+heapMargin), set(400<<20, ""))
	require.Equal(t, before, set(400<<20, "1GiB"))
	require.Equal(t, before, set(0, ""))
}
