// Package sweep runs the program tests/samebits at many settings and compares the
// bytes of its results.
package sweep

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// Digest is a line that samebits prints.
type Digest struct {
	Workload    string `json:"workload"`
	Shards      int    `json:"shards"`
	Parallelism int    `json:"parallelism"`
	BatchRows   int    `json:"batchRows"`
	Procs       int    `json:"procs"`
	Round       int    `json:"round"`
	Piece       string `json:"piece"`
	Sum         string `json:"sum"`
	Size        int    `json:"size"`

	Build string `json:"-"` // name of the executable and environment
}

// String returns the setting as text.
func (d Digest) String() string {
	return fmt.Sprintf("%s, S=%d p=%d rows=%d procs=%d round=%d (%s)", d.Workload, d.Shards, d.Parallelism, d.BatchRows, d.Procs, d.Round, d.Build)
}

// Sweep describes one run of the program samebits.
type Sweep struct {
	Build       string // describes Path and Environ, for messages
	Path        string
	Environ     []string
	Shards      int
	Parallelism []int
	BatchRows   []int
	Procs       []int
	Rounds      int  // number of rounds; if it is more than one, samebits adds delays, which differ by round
	Forget      bool // whether queues forget between supersteps all objects that no checkpoint restores
	Cut         bool // whether queues are interrupted early and continue at other parallelisms
	// KillAfter, if not nil, makes the first process kill itself after KillAfter[0] checkpoints,
	// the next one after KillAfter[1] further checkpoints, and so on. Each process continues the
	// run of the one before, at the next of Parallelism, and the last one ends it.
	KillAfter []int
	Cluster   string // address of the job manager; "" means one process
}

// args returns the command line that runs a workload.
func (s Sweep) args(workload, out string) []string {
	args := []string{"--workload", workload, "--shards", strconv.Itoa(s.Shards), "--out", out}
	list := func(flag string, values []int) {
		for _, v := range values {
			args = append(args, flag, strconv.Itoa(v))
		}
	}
	list("--parallelism", s.Parallelism)
	list("--batch-rows", s.BatchRows)
	list("--procs", s.Procs)
	if s.Rounds > 1 {
		args = append(args, "--jitter", "--rounds", strconv.Itoa(s.Rounds))
	}
	if s.Forget {
		args = append(args, "--forget")
	}
	if s.Cut {
		args = append(args, "--cut")
	}
	if s.Cluster != "" {
		args = append(args, "--cluster", s.Cluster)
	}
	return args
}

// Run runs a workload and returns its digests.
func (s Sweep) Run(t testing.TB, workload, out string) []Digest {
	t.Helper()
	if s.KillAfter != nil {
		return s.killed(t, workload, out)
	}
	if s.Rounds > 1 {
		s.Build += ", delayed"
	}
	if s.Forget {
		s.Build += ", forgetting"
	}
	if s.Cut {
		s.Build += ", cut"
	}
	digests := lines[Digest](t, programs.Execute(t, s.Environ, s.Path, s.args(workload, out)...))
	for i := range digests {
		digests[i].Build = s.Build
	}
	return digests
}

// killed runs a workload in several processes, all but the last of which are killed.
func (s Sweep) killed(t testing.TB, workload, out string) []Digest {
	t.Helper()
	work := t.TempDir()
	for i, after := range append(slices.Clone(s.KillAfter), 0) {
		one := s
		one.Parallelism = s.Parallelism[i%len(s.Parallelism):][:1]
		args := append(one.args(workload, out), "--work", work, "--kill-after", strconv.Itoa(after))
		got := programs.Execute(t, s.Environ, s.Path, args...)
		if after > 0 && got.Code == -1 {
			continue
		}
		require.False(t, after > 0 && i == 0, "the first process must be killed, as it writes a checkpoint: %s", got.Stderr)
		digests := lines[Digest](t, got)
		for i := range digests {
			digests[i].Build = s.Build + ", killed"
		}
		return digests
	}
	panic("the last process is not killed")
}

// Differences returns a sentence for each piece of a result that differs from the same piece at
// the first comparable setting. Settings are comparable if they have the same number of shards
// and, if the workload depends on parallelism, the same parallelism. Missing and additional
// pieces are differences too. Differences panics if two runs have the same text, or if a run is
// comparable with no other run.
func Differences(digests []Digest, dependsOnParallelism bool, out string) []string {
	type group struct{ shards, parallelism int }
	type run struct {
		group
		first string
	}
	groupOf := func(d Digest) group {
		g := group{shards: d.Shards}
		if dependsOnParallelism {
			g.parallelism = d.Parallelism
		}
		return g
	}
	reference := map[group]map[string]Digest{} // group -> name of a piece -> digest of the piece in the group's first run
	firstRun := map[group]string{}
	pieces := map[run]int{}
	type piece struct{ run, name string }
	seen := map[piece]bool{}
	for _, d := range digests {
		if is := (piece{d.String(), d.Piece}); seen[is] {
			panic(fmt.Sprintf("%s has the piece %q twice: two runs have the same text", is.run, is.name))
		} else {
			seen[is] = true
		}
		g := groupOf(d)
		if firstRun[g] == "" {
			firstRun[g], reference[g] = d.String(), map[string]Digest{}
		}
		if firstRun[g] == d.String() {
			reference[g][d.Piece] = d
		}
		pieces[run{g, d.String()}]++
	}
	runs := map[group]int{}
	for r := range pieces {
		runs[r.group]++
	}
	var found []string
	for _, d := range digests {
		if runs[groupOf(d)] == 1 {
			panic(d.String() + " is compared with no other run")
		}
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

// firstDifference returns the first line in which two pieces differ. The pieces are the files
// in the directory out whose names are the digests sum and other.
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

// Workload has the properties of a workload, which samebits prints.
type Workload struct {
	Name                 string `json:"name"`
	DependsOnParallelism bool   `json:"dependsOnParallelism"`
	Queues               int    `json:"queues"` // number of its queues
	Size                 Size   `json:"size"`
}

// Size says at how many settings a workload runs without the build tag soak.
type Size string

const (
	Small  Size = "small"  // many parallelisms, all batch sizes, and delays
	Medium Size = "medium" // fewer
	Large  Size = "large"
)

// Workloads returns the workloads of the program samebits at path.
func Workloads(t testing.TB, path string) []Workload {
	t.Helper()
	return lines[Workload](t, programs.Execute(t, nil, path))
}

// lines decodes the lines of JSON that a program printed.
func lines[T any](t testing.TB, got programs.Outcome) []T {
	t.Helper()
	require.Zero(t, got.Code, "samebits must succeed: %s", got.Stderr)
	var all []T
	for scan := bufio.NewScanner(strings.NewReader(got.Stdout)); scan.Scan(); {
		var one T
		require.NoError(t, json.Unmarshal(scan.Bytes(), &one))
		all = append(all, one)
	}
	require.NotEmpty(t, all)
	return all
}
