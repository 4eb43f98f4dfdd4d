package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// deadline bounds what a test starts, against programs that hang. It is far more
// than any of them needs.
const deadline = 4 * time.Minute

// scratch is the directory that the programs are built into.
var scratch string

// TestMain removes the programs that the tests built.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "superstep-tests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// built holds the outcome of each build.
var built sync.Map // of func() (string, error), by what is built

// program builds a package of this module, once for each set of environment
// variables, and returns the path of the executable.
func program(t testing.TB, pkg string, environ ...string) string {
	t.Helper()
	key := pkg + " " + strings.Join(environ, " ")
	build, _ := built.LoadOrStore(key, sync.OnceValues(func() (string, error) {
		return buildProgram(pkg, environ)
	}))
	path, err := build.(func() (string, error))()
	require.NoError(t, err)
	return path
}

// buildProgram runs go build in the root of the module.
func buildProgram(pkg string, environ []string, flags ...string) (string, error) {
	dir, err := os.MkdirTemp(scratch, "build")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	for _, e := range environ {
		if strings.HasPrefix(e, "GOAMD64=") { // its dependencies are those of the search for fused products
			flags = append([]string{"-trimpath"}, flags...)
		}
	}
	cmd := proctest.Command("go", slices.Concat([]string{"build", "-ldflags=-w", "-o", path}, flags, []string{pkg})...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// outcome is how a program ended.
type outcome struct {
	code           int // exit code, -1 where a signal ended it
	stdout, stderr string
}

// execute runs a program to its end in the root of the module.
func execute(t testing.TB, environ []string, path string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := proctest.CommandContext(ctx, path, args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), environ...)
	return await(t, ctx, cmd, cmd.Run)
}

// await lets run wait for a command and returns how it ended.
func await(t testing.TB, ctx context.Context, cmd *proctest.Cmd, run func() error) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	err := run()
	require.NoError(t, ctx.Err(), "%s did not end\n%s", cmd, stderr.String())
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// listing returns every path below a directory, relative to it and sorted, so that
// what a program left behind shows.
func listing(t testing.TB, dir string) []string {
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
