//go:build linux && !race

package kills

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// work is a job with arguments that make it run for some seconds.
type work struct {
	name       string
	args       []string // they decide the results
	pace       []string // these only make the job slower
	supersteps int      // that the job does at least; 0 if it has no queue
}

var works = []work{
	{"kmeans", []string{"--rows", "200000", "--steps", "50", "--keep", "10"}, []string{"--read", "1ms"}, 50},
	{"logistic", []string{"--rows", "60000", "--steps", "15", "--keep", "5"}, []string{"--read", "2ms"}, 450},
	{"trees", []string{"--rows", "20000", "--steps", "100", "--keep", "5"}, []string{"--read", "8ms"}, 100},
	{"queue", []string{"--rows", "20000", "--steps", "150"}, []string{"--read", "8ms", "--pause", "6ms"}, 150},
	{"shuffle", []string{"--rows", "60000"}, []string{"--read", "6ms"}, 0},
}

// paused returns a queue of so many supersteps, each of which takes at least 5 ms.
func paused(steps int) work {
	return work{"queue", []string{"--rows", "5000", "--steps", strconv.Itoa(steps)}, []string{"--pause", "5ms"}, steps}
}

// line returns the arguments of the job with its outputs in a directory, and those that the
// client writes in another, without its pace.
func (w work) line(dir, client string) []string {
	return append([]string{"--job", w.name, "--shards", "32", "--output", filepath.Join(dir, "rows.csv"), "--client", filepath.Join(client, "first.csv")}, w.args...)
}

// outcome is what a run must have made.
type outcome struct {
	stdout string
	files  map[string]string // path below the directory of the outputs -> contents
	client map[string]string // likewise, of the client
}

// outcomes has the outcome of an undisturbed run of each work.
var outcomes sync.Map // arguments of the work -> func() outcome

// undisturbed returns the outcome of a run of the work in one process.
func (w work) undisturbed(t testing.TB) outcome {
	t.Helper()
	once := func() outcome {
		dir, client := t.TempDir(), t.TempDir()
		got := programs.Execute(t, nil, programs.Build(t, "./tests/killjobs"), append(w.line(dir, client), "--parallelism", "2", "--progress", "off")...)
		require.Zero(t, got.Code, got.Stderr)
		made := outcome{got.Stdout, files(t, dir), files(t, client)}
		require.Len(t, made.files, 1+32)
		require.Len(t, made.client, 1)
		return made
	}
	made, _ := outcomes.LoadOrStore(fmt.Sprint(w.line("", "")), sync.OnceValue(once))
	return made.(func() outcome)()
}

// files returns the contents of all files below a directory, by their paths relative to it.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range programs.Listing(t, dir) {
		info, err := os.Stat(filepath.Join(dir, path))
		if err == nil && info.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed since
		}
		require.NoError(t, err)
		all[path] = string(data)
	}
	return all
}

// requireSame requires the files of an undisturbed run, and no others. The message for a file
// whose contents differ has the first place, as files are too long for messages.
func requireSame(t testing.TB, want, got map[string]string, what string) {
	t.Helper()
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), "%s must be the files of an undisturbed run", what)
	for name, text := range want {
		if other := got[name]; other != text {
			at := 0
			for at < min(len(text), len(other)) && text[at] == other[at] {
				at++
			}
			require.FailNow(t, what+" must be those of an undisturbed run", "%s: want %d bytes, but got %d; they differ from byte %d: %.200q instead of %.200q",
				name, len(text), len(other), at, other[at:], text[at:])
		}
	}
}
