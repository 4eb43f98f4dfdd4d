// Package programs builds the programs of this module for tests and runs them.
package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// deadline bounds the running time of every program that a test starts, in case the program
// hangs. It is far longer than any program needs on a busy machine.
const deadline = 8 * time.Minute

// Root returns the root directory of the module.
var Root = sync.OnceValue(func() string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(file)
	if !filepath.IsAbs(dir) { // the path is relative in a build with -trimpath
		dir, _ = os.Getwd()
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	panic("this package lies in no module")
})

// scratch is the directory with the built programs while Main runs.
var scratch string

// Main runs the tests of a package, and removes the programs that they built.
// TestMain calls it and exits with its result.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "superstep-tests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return m.Run()
}

// DependOnSources looks at all source files of the module. The go command caches the results of
// tests. It runs a test again if a file has changed that the test process itself has looked at,
// but it does not know the files from which the process has programs built. The go command sees
// only what happens while tests run, so that TestMain is too early for this call.
var DependOnSources = sync.OnceValue(func() error {
	return filepath.WalkDir(Root(), func(path string, e fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil:
			return err
		case e.IsDir() && path != Root() && strings.HasPrefix(name, "."):
			return fs.SkipDir
		case filepath.Ext(name) == ".go" || filepath.Ext(name) == ".s" || name == "go.mod" || name == "go.sum":
			_, err = os.Stat(path)
		}
		return err
	})
})

// built has the result of each build.
var built sync.Map // package and environment -> func() (string, error), which returns the result of the build

// Build builds a package of this module and returns the path of the executable. It builds a
// package only once for each environ.
func Build(t testing.TB, pkg string, environ ...string) string {
	t.Helper()
	key := pkg + " " + strings.Join(environ, " ")
	build, _ := built.LoadOrStore(key, sync.OnceValues(func() (string, error) {
		return BuildWith(pkg, environ)
	}))
	path, err := build.(func() (string, error))()
	require.NoError(t, err)
	return path
}

// BuildWith builds a package with go build and the given flags, and returns the path of the
// executable. It leaves out symbols, as clusters hash executables and send them to each task
// manager.
func BuildWith(pkg string, environ []string, flags ...string) (string, error) {
	if err := DependOnSources(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(scratch, "build")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	cmd := proctest.Command("go", slices.Concat([]string{"build", "-ldflags=-s", "-o", path}, flags, []string{pkg})...)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// Outcome has the exit code and the output of a program.
type Outcome struct {
	Code           int // exit code; -1 if a signal ended the program
	Stdout, Stderr string
}

// Execute runs a program in the root directory of the module, waits until it has ended, and
// returns its outcome.
func Execute(t testing.TB, environ []string, path string, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := proctest.CommandContext(ctx, path, args...)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), environ...)
	return Await(t, ctx, cmd, cmd.Run)
}

// Deadline returns a context that is done when the test ends, or when the constant deadline has
// passed.
func Deadline(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), deadline)
}

// Await calls run, which must start cmd and wait until it has ended, and returns the outcome of
// the command.
func Await(t testing.TB, ctx context.Context, cmd *proctest.Cmd, run func() error) Outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	err := run()
	require.NoError(t, ctx.Err(), "%s must end within the deadline\n%s", cmd, stderr.String())
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return Outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Listing returns the paths of all files below a directory, relative to it and sorted. Tests
// use it to check what a program left behind.
func Listing(t testing.TB, dir string) []string {
	t.Helper()
	paths := []string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		paths = append(paths, filepath.ToSlash(name))
		return err
	}))
	return paths
}

// With returns the arguments in line with additional flags. A flag in more replaces the flag of
// the same name in line, because programs refuse a flag that is given twice. In line, the value
// of a flag must be a separate argument.
func With(line []string, more ...string) []string {
	var args []string
	for i := 0; i < len(line); i++ {
		if strings.HasPrefix(line[i], "--") && slices.Contains(more, line[i]) {
			i++ // skip the flag's value too
			continue
		}
		args = append(args, line[i])
	}
	return append(args, more...)
}
