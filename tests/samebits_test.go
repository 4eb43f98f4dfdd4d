package tests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// The same-bits suite runs the program samebits at many settings, in builds and
// on processors of different features, and requires every byte of its results to
// be those of one subtask. Another test, of deliberate faults, shows that it can
// fail.

// digest is a line that samebits prints.
type digest struct {
	Workload    string `json:"workload"`
	Shards      int    `json:"shards"`
	Parallelism int    `json:"parallelism"`
	BatchRows   int    `json:"batchRows"`
	Procs       int    `json:"procs"`
	Round       int    `json:"round"`
	Piece       string `json:"piece"`
	Sum         string `json:"sum"`
	Size        int    `json:"size"`

	build string // which executable and environment
}

// String names the setting.
func (d digest) String() string {
	return fmt.Sprintf("%s, S=%d p=%d rows=%d procs=%d round=%d (%s)", d.Workload, d.Shards, d.Parallelism, d.BatchRows, d.Procs, d.Round, d.build)
}

// sweep is one start of samebits.
type sweep struct {
	build       string // describes path and environ
	path        string
	environ     []string
	shards      int
	parallelism []int
	batchRows   []int
	procs       []int
	rounds      int    // more than one: with delays that differ by round
	cluster     string // job manager; "": one process
}

// args returns the command line that runs a workload.
func (s sweep) args(workload, out string) []string {
	args := []string{"--workload", workload, "--shards", strconv.Itoa(s.shards), "--out", out}
	list := func(flag string, values []int) {
		for _, v := range values {
			args = append(args, flag, strconv.Itoa(v))
		}
	}
	list("--parallelism", s.parallelism)
	list("--batch-rows", s.batchRows)
	list("--procs", s.procs)
	if s.rounds > 1 {
		args = append(args, "--jitter", "--rounds", strconv.Itoa(s.rounds))
	}
	if s.cluster != "" {
		args = append(args, "--cluster", s.cluster)
	}
	return args
}

// run runs a workload and returns its digests.
func (s sweep) run(t testing.TB, workload, out string) []digest {
	t.Helper()
	if s.rounds > 1 {
		s.build += ", delayed"
	}
	got := execute(t, s.environ, s.path, s.args(workload, out)...)
	require.Zero(t, got.code, "%s: %s", s.build, got.stderr)
	var digests []digest
	for lines := bufio.NewScanner(strings.NewReader(got.stdout)); lines.Scan(); {
		d := digest{build: s.build}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &d))
		digests = append(digests, d)
	}
	require.NotEmpty(t, digests)
	return digests
}

// differences returns a sentence for each piece that differs from that of the
// first setting with which it is comparable: any with the same number of shards,
// or, where the workload depends on parallelism, with the same parallelism too.
// A setting that lacks a piece, or has one more, differs as well.
func differences(digests []digest, dependsOnParallelism bool, out string) []string {
	type group struct{ shards, parallelism int }
	type run struct {
		group
		first string
	}
	groupOf := func(d digest) group {
		g := group{shards: d.Shards}
		if dependsOnParallelism {
			g.parallelism = d.Parallelism
		}
		return g
	}
	reference := map[group]map[string]digest{} // piece of the first run of the group
	firstRun := map[group]string{}
	pieces := map[run]int{}
	for _, d := range digests {
		g := groupOf(d)
		if firstRun[g] == "" {
			firstRun[g], reference[g] = d.String(), map[string]digest{}
		}
		if firstRun[g] == d.String() {
			reference[g][d.Piece] = d
		}
		pieces[run{g, d.String()}]++
	}
	var found []string
	for _, d := range digests {
		want, ok := reference[groupOf(d)][d.Piece]
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("%v has the piece %q, %s has not", d, d.Piece, firstRun[groupOf(d)]))
		case want.Sum != d.Sum:
			found = append(found, fmt.Sprintf("%q differs: %v has\n\t%s\n%v has\n\t%s", d.Piece, want, firstDifference(out, want.Sum, d.Sum), d, firstDifference(out, d.Sum, want.Sum)))
		}
	}
	for r, n := range pieces {
		if n != len(reference[r.group]) {
			found = append(found, fmt.Sprintf("%s has %d pieces, %s has %d", r.first, n, firstRun[r.group], len(reference[r.group])))
		}
	}
	return found
}

// firstDifference returns the first line of the piece with one digest that is not
// in the same place in the other.
func firstDifference(out, sum, other string) string {
	a, errA := os.ReadFile(filepath.Join(out, sum))
	b, errB := os.ReadFile(filepath.Join(out, other))
	if errA != nil || errB != nil {
		return fmt.Sprint(errA, errB)
	}
	lines, others := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i, line := range lines {
		if i >= len(others) || line != others[i] {
			return fmt.Sprintf("line %d: %s", i+1, line)
		}
	}
	return fmt.Sprintf("%d lines, the same as the beginning of the other", len(lines))
}

// executables are the builds and environments to compare, the plain one first.
func executables(t testing.TB) []sweep {
	t.Helper()
	const pkg = "./tests/samebits"
	plain := program(t, pkg)
	all := []sweep{
		{build: "plain", path: plain},
		{build: "without AVX2 and FMA", path: plain, environ: []string{"GODEBUG=cpu.avx2=off,cpu.fma=off"}},
		{build: "without assembly", path: plain, environ: []string{"SUPERSTEP_DEBUG=kernel.asm=off"}},
		{build: "with no assembly beyond AVX2", path: plain, environ: []string{"SUPERSTEP_DEBUG=kernel.asm=avx2"}},
	}
	// A build for processors of level v3 uses fused instructions where the source
	// allows it. It starts only where the processor has them.
	if fuses() {
		all = append(all, sweep{build: "GOAMD64=v3", path: program(t, pkg, "GOAMD64=v3"), environ: []string{"GOAMD64=v3"}})
	}
	return all
}

// fuses reports whether programs built for level v3 run here.
func fuses() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

// upTo keeps the parallelisms that a number of shards allows.
func upTo(shards int, parallelism ...int) []int {
	var kept []int
	for _, p := range parallelism {
		if p <= shards {
			kept = append(kept, p)
		}
	}
	return kept
}

// requireSameBits runs a workload in all sweeps, of which the first begins with
// the reference.
func requireSameBits(t *testing.T, workload string, dependsOnParallelism bool, sweeps []sweep) {
	t.Helper()
	out := t.TempDir()
	var digests []digest
	for _, s := range sweeps {
		digests = append(digests, s.run(t, workload, out)...)
	}
	require.Empty(t, differences(digests, dependsOnParallelism, out))
}

// workloads are those of samebits.
var workloads = []struct {
	name                 string
	dependsOnParallelism bool
	size                 size
}{
	{name: "iris"},
	{name: "files", size: large},
	{name: "wide", size: large},
	{name: "operators"},
	{name: "sorting", size: large},
	{name: "grouping"},
	{name: "spill", size: large},
	{name: "sums"},
	{name: "ranks", dependsOnParallelism: true},

	{name: "clusterings", size: medium},
	{name: "regressions", size: medium},
	{name: "classifications", size: medium},
	{name: "margins", size: medium},
	{name: "networks", size: medium},
	{name: "factors", size: medium},
	{name: "bayes", size: medium},
	{name: "mixtures", size: medium},
	{name: "preparations", size: medium},
	{name: "evaluations", size: medium},
	{name: "selections", size: medium},
	{name: "boosted", size: large},
	{name: "forests", size: large},
}

// size says how many settings the short run of a workload has.
type size int

const (
	small  size = iota // delays and batches of every size at many parallelisms
	medium             // of algorithms, which the operators and queues above carry
	large              // takes long
)

func TestSameBits(t *testing.T) {
	for _, w := range workloads {
		for _, shards := range []int{8, 128} {
			t.Run(fmt.Sprintf("%s/S=%d", w.name, shards), func(t *testing.T) {
				t.Parallel()
				requireSameBits(t, w.name, w.dependsOnParallelism, sweepsOf(t, shards, w.size))
			})
		}
	}
}
