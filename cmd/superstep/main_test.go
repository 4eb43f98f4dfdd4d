package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// TestMain runs the command instead of the tests if the test binary was started by the function
// command, or by the command itself for a rank.
func TestMain(m *testing.M) {
	if os.Getenv("SUPERSTEP_TEST_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// command runs the command in a new process and returns its exit code and outputs.
func command(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	outFile, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	errFile, err := os.CreateTemp(t.TempDir(), "err")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := proctest.Command(self, args...)
	p.Env = append(os.Environ(), "SUPERSTEP_TEST_COMMAND=1")
	p.Stdout, p.Stderr = outFile, errFile // files: with pipes, Run would also wait for ranks that outlive the command
	if err := p.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	o, err := os.ReadFile(outFile.Name())
	require.NoError(t, err)
	e, err := os.ReadFile(errFile.Name())
	require.NoError(t, err)
	return p.ProcessState.ExitCode(), string(o), string(e)
}

// lines parses the output of --json. It skips the line of the raw rate.
func lines(t *testing.T, out string) []line {
	t.Helper()
	var all []line
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		var l line
		if strings.HasPrefix(s.Text(), `{"raw_gbs"`) {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&l), s.Text())
		all = append(all, l)
	}
	return all
}

func TestEveryCollectiveIsTimedAndRight(t *testing.T) {
	for _, where := range [][]string{{"--in-process"}, nil} {
		for _, typ := range []string{"float64", "uint8"} {
			args := append([]string{"bench", "collective", "-c", "all", "-p", "3", "-b", "0", "-e", "4K", "-f", "1000",
				"-n", "3", "-w", "1", "--json", "--type", typ, "--op", "prod", "--root", "1"}, where...)
			code, out, errOut := command(t, args...)
			require.Zero(t, code, errOut)
			got := lines(t, out)
			require.Len(t, got, 2*(int(program.NumCollectives)-1)+1)
			for _, l := range got {
				require.Zero(t, l.Errors, &l)
				require.Equal(t, 3, l.Iterations)
				require.Equal(t, 3, l.Ranks)
				require.Greater(t, l.P50, 0.0)
				require.GreaterOrEqual(t, l.P99, l.P50)
				require.LessOrEqual(t, l.Bytes, 4096)
			}
		}
	}
}

func TestEachAlgorithmInTurn(t *testing.T) {
	code, out, errOut := command(t, "bench", "collective", "-a", "all", "-p", "2", "-b", "800", "-e", "800", "-n", "2", "--json")
	require.Zero(t, code, errOut)
	seen := map[string]bool{}
	for _, l := range lines(t, out) {
		seen[l.Algorithm] = true
		require.Zero(t, l.Errors)
		require.Equal(t, 100, l.Count)
	}
	_, last, _ := strings.Cut(out, `{"raw_gbs"`)
	var raw rawLine
	require.NoError(t, json.Unmarshal([]byte(`{"raw_gbs"`+last), &raw))
	require.Positive(t, raw.Raw)
	for _, name := range []string{"direct", "ring", "recursive-doubling", "halving-doubling", "double-tree"} {
		require.True(t, seen[name], name)
	}
}

// TestTheChoiceBesideOthers requires that there is one line for each given algorithm at each
// size, in the given order, and that the lines of the group's choice are marked.
func TestTheChoiceBesideOthers(t *testing.T) {
	args := []string{"bench", "collective", "-a", "linear,chosen,ring,linear", "-p", "2", "-b", "8", "-e", "80", "-f", "10",
		"--rounds", "3", "-n", "4", "-w", "0", "--no-raw"}
	code, out, errOut := command(t, append(args, "--json")...)
	require.Zero(t, code, errOut)
	var order []string
	for _, l := range lines(t, out) {
		by := l.Algorithm
		if l.Chosen {
			by = "chosen"
		}
		order = append(order, fmt.Sprint(l.Bytes, " ", by))
		require.Equal(t, 12, l.Iterations)
		require.Len(t, l.Rounds, 3)
		require.LessOrEqual(t, slices.Min(l.Rounds), l.P50)
		require.GreaterOrEqual(t, slices.Max(l.Rounds), l.P50)
		require.Zero(t, l.Errors)
	}
	require.Equal(t, []string{"8 linear", "8 chosen", "8 ring", "80 linear", "80 chosen", "80 ring"}, order)
	code, out, errOut = command(t, args...)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "# *: chosen by the group")
	require.Equal(t, 2, strings.Count(out, "* "), out)
}

// TestWrongResultsAreCounted requires that the method wrong counts an element that was changed.
func TestWrongResultsAreCounted(t *testing.T) {
	cmd := &collectiveCommand{Op: "sum"}
	x := newCase[float64](nopComm(t), program.AllReduce, cmd, "", 80)
	x.reset()
	require.NoError(t, x.call(context.Background()))
	require.Zero(t, x.wrong())
	x.out[7]++
	require.Equal(t, int64(1), x.wrong())
}

// TestExpectedResults requires that the expected results, which fold computes for each class of
// positions, equal results computed for each position. It also requires that neighbouring
// positions and blocks have different values.
func TestExpectedResults(t *testing.T) {
	const p, r = 4, 2
	c := collective.NewLocalGroup(p).Rank(r)
	for k, ranks := range map[program.Collective]int{
		program.AllReduce: p, program.Reduce: p, program.Scan: r + 1, program.Exscan: r, program.ReduceScatter: p,
	} {
		for _, op := range []string{"sum", "prod", "min", "max"} {
			x := newCase[int64](c, k, &collectiveCommand{Op: op, Root: r}, "", 8*2000)
			x.fold()
			first := 0
			if k == program.ReduceScatter {
				first = 2 * 2000 / p
			}
			for i := range x.out {
				want := x.value(0, first+i)
				for s := 1; s < ranks; s++ {
					want = x.join(want, x.value(s, first+i))
				}
				require.Equal(t, want, x.want(i), "%s %s at %d", k, op, i)
			}
			if op == "sum" {
				require.NotEqual(t, x.want(0), x.want(1))
				require.NotEqual(t, x.value(0, 0), x.value(0, 256), "neighbouring blocks of 256 elements must differ, or the test would not detect exchanged blocks")
			}
		}
	}
}

func TestPricesOfRanksThatAreNotThere(t *testing.T) {
	code, out, errOut := command(t, "bench", "collective", "--simulate", "-p", "64", "-b", "1M", "-e", "1M", "--network", "two-tier")
	require.Zero(t, code, errOut)
	require.Contains(t, out, `# prices of 64 ranks on network "two-tier"`)
	for _, name := range []string{"ring", "halving-doubling", "torus"} {
		require.Contains(t, out, name)
	}
	file := filepath.Join(t.TempDir(), "net.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"name": "mine", "ranks_per_host": 1, "rack": {"latency": 1e-5, "bandwidth": 1e9}, "host": {}, "spine": {}, "window": 65536}`), 0o600))
	code, out, errOut = command(t, "bench", "collective", "--simulate", "-p", "4", "-b", "1K", "-e", "1K", "--network", file, "-a", "ring", "--json")
	require.Zero(t, code, errOut)
	var l predictedLine
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	require.Equal(t, "mine", l.Network)
	require.Greater(t, l.Time, 6*10.0, "an allreduce by a ring of 4 ranks must take more than 6 steps of 10 µs each")
}

// TestPricesAreOfPipelines requires that predicted times take into account that executors split
// messages into segments: a broadcast along a chain of 64 ranks takes as long as one message of
// 4 MiB and 62 segments of 256 KiB after it, and not as long as 63 messages of 4 MiB.
func TestPricesAreOfPipelines(t *testing.T) {
	code, out, errOut := command(t, "bench", "collective", "--simulate", "-p", "64", "-c", "broadcast", "-a", "chain", "-b", "4M", "-e", "4M", "--json")
	require.Zero(t, code, errOut)
	var l predictedLine
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	const wire, segment = 4 << 20 / 1.25e3, 256 << 10 / 1.25e3 // transfer times in µs on the network 10gbe
	hop := segment*(1+0.2*1.25) + 50 + 10
	require.InEpsilon(t, wire+62*hop, l.Time, 0.1)
}

func TestCommandLinesThatCannotBe(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"-p", "0"}, "--ranks is 0"},
		{[]string{"-c", "allredcue"}, `no collective "allredcue"`},
		{[]string{"-a", "rign"}, "did you mean ring"},
		{[]string{"-a", "torus:2x2"}, "torus"},
		{[]string{"-a", "ring:2x1"}, "takes no dimensions"},
		{[]string{"-b", "8Q"}, "no size"},
		{[]string{"-b", "64M", "-e", "8"}, "--min-bytes is 67108864 and --max-bytes 8: want"},
		{[]string{"-f", "1"}, "--factor is 1"},
		{[]string{"--root", "5"}, "--root is 5"},
		{[]string{"--type", "float16"}, "float16"},
		{[]string{"--simulate", "--network", "11gbe"}, `no network "11gbe"`},
		{[]string{"--addresses", "127.0.0.1:1,127.0.0.1:2"}, "--rank is -1"},
		{[]string{"--addresses", "a:1,b:1,a:1", "--rank", "0"}, "a:1 twice"},
		{[]string{"--rules", "/does/not/exist"}, "/does/not/exist"},
		{[]string{"--rank", "0"}, "--rank applies only with --addresses"},
		{[]string{"--network", "10gbe"}, "only with --simulate"},
		{[]string{"--in-process", "--calibrate"}, "exclude each other"},
		{[]string{"--in-process", "--addresses", "a:1,b:1", "--rank", "0"}, "exclude each other"},
		{[]string{"--simulate", "--explain"}, "exclude each other"},
		{[]string{"--algorithm", "ring", "--explain"}, "exclude each other"},
		{[]string{"--simulate", "--algorithm", "ring,chosen"}, "exclude each other"},
		{[]string{"--simulate", "--rounds", "2"}, "exclude each other"},
		{[]string{"-c", "exchange", "-p", "3"}, "exchange is between 2 ranks"},
		{[]string{"-c", "ping-pong", "-b", "0"}, "of 1 byte or more"},
		{[]string{"-c", "exchange", "-a", "ring"}, `plain TCP does not wait by "ring"`},
		{[]string{"-c", "exchange", "--simulate"}, "exclude each other"},
		{[]string{"--rounds", "0"}, "--rounds is 0"},
		{[]string{"--seconds", "Inf"}, "--seconds"},
		{[]string{"-e", "1000000000G"}, "--max-bytes"},
		{[]string{"--addresses", "a:1,b:1,c:1", "--rank", "0", "--root", "3"}, "--root is 3: want 0 to 2"},
	} {
		code, _, errOut := command(t, append([]string{"bench", "collective"}, x.args...)...)
		require.NotZero(t, code, x.args)
		require.Contains(t, errOut, x.want)
	}
	code, _, errOut := command(t, "bench", "--addresses", "x")
	require.NotZero(t, code)
	require.NotContains(t, errOut, "panic")
}

func TestGroupsWhoseAddressesAreGiven(t *testing.T) {
	// The number of ranks is the number of addresses, and any of these ranks may be the root.
	work, err := (&collectiveCommand{Collective: "all", Ranks: 2, Root: 2, Factor: 2, Rounds: 1, Rank: 1, Addresses: []string{"a:1", "b:1", "c:1"}}).plan()
	require.NoError(t, err)
	require.Len(t, work, int(program.NumCollectives))
	// If other ranks do not connect, the error names the missing ranks.
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	code, _, errOut := command(t, "bench", "collective", "--addresses", free.Addr().String()+",127.0.0.1:1,127.0.0.1:2", "--rank", "0", "--timeout", "200ms")
	require.NotZero(t, code, errOut)
	require.Contains(t, errOut, "waiting for")
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"8": 8, "32K": 32 << 10, "64M": 64 << 20, "1G": 1 << 30, "0": 0, "12kb": 12 << 10} {
		var s size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, s)
	}
	for _, text := range []string{"", "x", "-1", "1T", "99999999999G"} {
		var s size
		require.Error(t, s.UnmarshalText([]byte(text)), text)
	}
	require.Equal(t, "[8K 3M 1G 1000]", fmt.Sprint([]string{sizeText(8 << 10), sizeText(3 << 20), sizeText(1 << 30), sizeText(1000)}))
}
