package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/bench/internal/usage"
)

// fakeVariable is an environment variable that makes the test binary act as a contestant. Its
// value says what the contestant does; see fakePeer.
const fakeVariable = "SUPERSTEP_BENCH_FAKE"

// TestMain makes the test binary run as the command or as a contestant if an environment
// variable says so.
func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		exitOn(os.Unsetenv(commandVariable)) // so that the child processes of the command act as contestants
		main()
		return
	}
	if text := os.Getenv(fakeVariable); text != "" {
		fakePeer(text)
		return
	}
	// By default, the race detector makes each process sleep for a second before it exits.
	exitOn(os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")))
	os.Exit(m.Run())
}

func TestReadResults(t *testing.T) {
	text := `superstep bench, 2 ranks
{"raw_tcp_gbs":3.5}
{"collective":"allreduce","config":"ring","p50_us":12.5,"p99_us":20,"min_us":10,"mean_us":13,"errors":0,"more":[1]}

{"collective":"allreduce","algorithm":"direct","p50_us":1e3}
`
	results, err := readResults(strings.NewReader(text))
	require.NoError(t, err)
	require.InDelta(t, 12.5e-6, results[0].P50, 1e-12)
	require.InDelta(t, 20e-6, results[0].P99, 1e-12)
	require.Equal(t, "ring", results[0].Config)
	require.Equal(t, outOfPlace, results[1].Config)
	require.Equal(t, "direct", results[1].Algorithm)
	require.InDelta(t, 1e-3, results[1].P50, 1e-12)
	require.Len(t, results, 2)

	for bad, why := range map[string]string{
		`{"collective":"allreduce"`:                              "unexpected end",
		`{"collective":"allreduce"}`:                             "no p50_us",
		`{"collective":"allreduce","p50_us":0}`:                  "no p50_us",
		`{"collective":"allreduce","p50_us":7,"errors":2}`:       "2 wrong elements",
		`{"collective":"allreduce","p50_us":"fast","errors":0}`:  "p50_us",
		`{"collective":"a","p50_us":` + strings.Repeat("1", 2e6): "too long",
	} {
		_, err := readResults(strings.NewReader(bad))
		require.ErrorContains(t, err, why)
	}
}

// fake returns a contestant that does what text says; see fakePeer. For each request, the
// contestant appends its name and the requested configurations to asked.
func fake(t *testing.T, name string, ours bool, text string, asked *[]string) *contestant {
	self, err := os.Executable()
	require.NoError(t, err)
	return &contestant{
		Name: name, Transport: overTCP, Ours: ours, env: []string{fakeVariable + "=" + text},
		commands: func(q request) [][]string {
			*asked = append(*asked, name+" "+strings.Join(q.configs, "+"))
			return [][]string{{self}}
		},
	}
}

// TestTurns requires that each round begins with a different contestant, that later rounds run
// only the best configurations, and that a contestant that fails once is left out.
func TestTurns(t *testing.T) {
	var asked []string
	one := func(config string, us float64) string {
		return fmt.Sprintf(`{"collective":"allreduce","config":%q,"p50_us":%v}`, config, us)
	}
	r := &report{Contestants: []*contestant{
		fake(t, "ours", true, `{"collective":"allreduce","algorithm":"chosen","in_place":true,"p50_us":10}`, &asked),
		fake(t, "peer", false, one("slow", 90)+"\n"+one("fast", 20)+"\n"+one("medium", 30), &asked),
		fake(t, "broken", false, "fail", &asked),
		fake(t, "absent", false, "no lines", &asked),
	}}
	c := &compareCommand{Collective: []string{"allreduce"}, Ranks: []int{2}, Bytes: []int{8}, Rounds: 3, Keep: 2, Seconds: 1, Limit: time.Minute}
	var progress bytes.Buffer
	x := c.comparison(r.Contestants, &progress)
	require.NoError(t, x.measure(t.Context()))
	r = x.report
	require.Equal(t, []string{
		"ours ", "peer ", "broken ", "absent ",
		"peer fast+medium", "ours ",
		"ours ", "peer fast+medium",
	}, asked)
	require.Contains(t, progress.String(), "broken fails: ")
	require.Contains(t, progress.String(), "no such luck")

	r.sum()
	require.Equal(t, "fast", r.Rows[0].Cells[1].Config)
	require.Equal(t, "10.0 µs (chosen, in-place)", r.Rows[0].Cells[0].text())
	require.InDelta(t, 0.5, r.Rows[0].Ratios[0].Best, 1e-12)
	require.Zero(t, r.Rows[0].Cells[2].P50)

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, x.measure(stopped), context.Canceled)
}

// rounds returns a cell with one result in each round, for the configuration config. times has
// the median times of the rounds in seconds.
func rounds(config string, times ...float64) *cell {
	c := &cell{}
	for _, v := range times {
		c.Rounds = append(c.Rounds, []result{{Config: config, P50: v, P99: 2 * v}})
	}
	return c
}

// TestRatios requires that a ratio is the median of the ratios within rounds, not the ratio of
// the medians. It must compare with the best peer of the same transport. A dropped
// configuration must not count.
func TestRatios(t *testing.T) {
	quick := rounds("b", 2, 1, 4)
	quick.Rounds[0] = append(quick.Rounds[0], result{Config: "once", P50: 0.5})
	r := &report{
		Contestants: []*contestant{
			{Name: "ours", Transport: overTCP, Ours: true}, {Name: "ours, other", Transport: overTCP, Ours: true},
			{Name: "quiet", Transport: overTCP}, {Name: "polls", Transport: overTCP, IdleCPU: 0.9},
			{Name: "unknown", Transport: overTCP, IdleCPU: -1}, {Name: "bound", Transport: overTCP, Baseline: true},
			{Name: "memory", Transport: inMemory},
		},
		Rows: []*row{{Cells: []*cell{
			rounds("", 2, 4, 6), rounds("", 1, 1, 1), rounds("a", 4, 4, 4), quick, rounds("c", 3, 3, 3), rounds("d", 0.1), rounds("e", 0.2),
		}}},
	}
	r.sum()
	require.Equal(t, &ratio{Transport: overTCP, Best: 1.5, BestPeer: "polls", Quiet: 1, QuietPeer: "quiet"}, r.Rows[0].Ratios[0])
	require.Nil(t, r.Rows[0].Ratios[1])
	require.Equal(t, "b", quick.Config)
	require.Equal(t, 2.0, quick.P50)
}

// TestCommands requires that the command lines of the contestants contain the parameters of the
// request.
func TestCommands(t *testing.T) {
	c := &compareCommand{Superstep: "bin/superstep", Peers: "build", Mpirun: "mpirun", Algorithm: []string{"ring"}}
	lines := map[string]string{}
	q := request{point{"allreduce", runtime.NumCPU() + 1, 1024}, 0.5, []string{"x", "y", inPlace}, false}
	for _, k := range allContestants(c) {
		for _, line := range k.commands(q) {
			lines[k.Name] += strings.Join(line, " ")
		}
	}
	n := fmt.Sprint(q.Ranks)
	require.Equal(t, "bin/superstep bench collective --json --no-raw --collective allreduce --ranks "+n+" --min-bytes 1024 --max-bytes 1024 --seconds 0.5 --type float64 --op sum --in-place", lines["superstep"])
	require.Contains(t, lines["superstep ring"], " --algorithm ring")
	require.Equal(t, filepath.Join("build", "gloo_bench")+" --ranks "+n+" --mode sync --collective allreduce --seconds 0.5 --max-iterations 100000 --limit 0 --bytes 1024 --config x,y,in-place", lines["Gloo sync"])
	require.Contains(t, lines["Open MPI"], "mpirun -n "+n+" --oversubscribe --mca btl tcp,self --mca mpi_yield_when_idle 1 "+filepath.Join("build", "mpi_bench"))
	require.Contains(t, lines["Open MPI in shared memory"], "vader,self")
	if q.Ranks != 2 {
		require.Empty(t, lines["raw TCP"])
	}
	for _, k := range allContestants(c) {
		switch k.Name {
		case "raw TCP":
			line := strings.Join(k.commands(request{point{"allreduce", 2, 8}, 1, []string{"netpoll", "polling"}, false})[0], " ")
			require.Equal(t, "bin/superstep bench collective --json --no-raw --collective exchange --ranks 2 --min-bytes 8 --max-bytes 8 --seconds 1 --algorithm netpoll,polling", line)
		case "superstep":
			require.Len(t, k.commands(request{point: q.point}), 2)
			require.Contains(t, k.commands(request{point: point{"reduce_scatter", 2, 8}})[0], "reduce-scatter")
		}
	}
}

func TestProcessorTimeOfStat(t *testing.T) {
	used, err := processorTime("12 (a) b (c) S 7 12 12 0 -1 4194560 1 0 0 0 25 17 0 0 20 0 1 0 5 6 7")
	require.NoError(t, err)
	require.Equal(t, 420*time.Millisecond, used)
	for _, bad := range []string{"", "12 (a", "12 (a) S 7", "12 (a) S 7 12 12 0 -1 4194560 1 0 0 0 25 x"} {
		_, err := processorTime(bad)
		require.Error(t, err, bad)
	}
}

// TestProcessorTime compares the processor time in /proc for this process with the time that
// the system call returns.
func TestProcessorTime(t *testing.T) {
	self := os.Getpid()
	require.NotContains(t, descendants(self), self)
	if times := processorTimes([]int{self}); runtime.GOOS == "linux" {
		require.InDelta(t, usage.CPU().Seconds(), times[self].Seconds(), 0.1)
	} else {
		require.Empty(t, times)
	}
}

func TestValidate(t *testing.T) {
	good := compareCommand{Rounds: 1, Keep: 1, Seconds: 1, Limit: 1, Ranks: []int{2}, Bytes: []int{8}}
	require.NoError(t, good.Validate())
	for _, spoil := range []func(*compareCommand){
		func(c *compareCommand) { c.Rounds = 0 }, func(c *compareCommand) { c.Keep = 0 }, func(c *compareCommand) { c.Seconds = 0 },
		func(c *compareCommand) { c.Limit = 0 }, func(c *compareCommand) { c.Deadline = -1 }, func(c *compareCommand) { c.Ranks = []int{1} }, func(c *compareCommand) { c.Bytes = []int{4} },
	} {
		bad := good
		spoil(&bad)
		require.Error(t, bad.Validate())
	}
}

// Example prints a report of three rounds at two points.
func Example() {
	r := &report{
		CPUs: 2, Rounds: 3,
		Contestants: []*contestant{
			{Name: "superstep", Transport: overTCP, Ours: true},
			{Name: "Gloo sync", Transport: overTCP},
			{Name: "Open MPI", Transport: overTCP, IdleCPU: 1},
			{Name: "Open MPI in shared memory", Transport: inMemory, IdleCPU: -1},
		},
		Rows: []*row{
			{point: point{"allreduce", 2, 64 << 20}, Cells: []*cell{rounds("", 40e-3, 30e-3, 41e-3), rounds("new-ring", 50e-3, 50e-3, 60e-3), rounds("in-place", 60e-3, 60e-3, 60e-3), {}}},
			{point: point{"barrier", 2, 0}, Cells: []*cell{rounds("", 20e-6, 21e-6, 22e-6), rounds("all-to-one", 25e-6, 25e-6, 24e-6), rounds("default", 7e-6, 7e-6, 7e-6), rounds("default", 160e-9)}},
		},
	}
	r.sum()
	exitOn(r.print(os.Stdout))
	// Output:
	// Between processes over loopback TCP, float64 sums, medians of 3 rounds on 2 CPUs; contestants with a * poll:
	//
	// | collective | ranks | size | superstep | Gloo sync | Open MPI * | ours to best quiet peer | ours to best peer |
	// |---|---|---|---|---|---|---|---|
	// | allreduce | 2 | 64 MiB | 40.0 ms | 50.0 ms (new-ring) | 60.0 ms (in-place) | 0.68 (Gloo sync) | 0.68 (Gloo sync) |
	// | barrier | 2 |  | 21.0 µs | 25.0 µs (all-to-one) | 7.00 µs (default) | 0.84 (Gloo sync) | 3.00 (Open MPI) |
	//
	// In shared memory, float64 sums, medians of 3 rounds on 2 CPUs; contestants with a * poll:
	//
	// | collective | ranks | size | Open MPI in shared memory | ours to best quiet peer | ours to best peer |
	// |---|---|---|---|---|---|
	// | allreduce | 2 | 64 MiB | – | – | – |
	// | barrier | 2 |  | 0.16 µs (default) | – | – |
	//
	// Processor time of a rank that waits for a second:
	//
	// | contestant | time |
	// |---|---|
	// | superstep | 0.00 s |
	// | Gloo sync | 0.00 s |
	// | Open MPI | 1.00 s |
}
