package engine

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// fakeGo is a go command whose results a test sets.
type fakeGo struct {
	listed, built error
	calls         []string
}

func (g *fakeGo) run(_ context.Context, env []string, args ...string) (string, error) {
	g.calls = append(g.calls, strings.Join(append(env, args...), " "))
	if args[0] == "list" {
		return "/src", g.listed
	}
	if g.built != nil {
		return "main.go:3: undefined: x\n", g.built
	}
	return "", os.WriteFile(args[2], []byte("program"), 0o700)
}

func TestCrossBuild(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	yes := func(string) bool { return true }
	g := &fakeGo{}
	b := crossBuild{
		pkg: "example.com/train", tags: "big", goTool: g.run,
		from: wire.Platform{OS: "linux", Arch: "amd64"}, to: wire.Platform{OS: "linux", Arch: "arm64"},
	}
	question := ""
	e, err := b.build(t.Context(), func(q string) bool { question = q; return true })
	require.NoError(t, err)
	require.Equal(t, "The cluster's task managers are linux/arm64 and this program is linux/amd64. Build it for them now (go build example.com/train)?", question)
	require.Equal(t, b.to, e.platform)
	require.FileExists(t, e.path)
	require.Equal(t, []string{
		"GOOS=linux GOARCH=arm64 CGO_ENABLED=0 list -f {{.Dir}} example.com/train",
		"GOOS=linux GOARCH=arm64 CGO_ENABLED=0 build -o " + e.path + " -tags=big example.com/train",
	}, g.calls)
	e.remove()
	require.NoDirExists(t, filepath.Dir(e.path))

	byHand := "build it for them and name the file,\n  GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -o worker -tags=big example.com/train\n"
	_, err = b.build(t.Context(), func(string) bool { return false })
	require.ErrorContains(t, err, byHand)
	_, err = b.build(t.Context(), nil)
	require.ErrorContains(t, err, byHand)
	g.listed = errors.New("no such package")
	_, err = b.build(t.Context(), func(string) bool { t.Error("the user must not be asked if the build cannot succeed"); return true })
	require.ErrorContains(t, err, byHand)

	g.listed, g.built = nil, errors.New("exit status 1")
	_, err = b.build(t.Context(), yes)
	require.EqualError(t, err, "build example.com/train for linux/arm64: exit status 1\nmain.go:3: undefined: x")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)

	b.pkg = "command-line-arguments"
	_, err = b.build(t.Context(), yes)
	require.ErrorContains(t, err, "go build -o worker -tags=big PACKAGE")
}

// TestBuildForReal lets the real go command build the smallest program for a cluster, and
// checks the platform of the file. It builds for this machine, because the standard library is
// already built for it. With the tag soak, TestCrossBuildForReal builds for other platforms.
func TestBuildForReal(t *testing.T) {
	buildForReal(t, wire.Platform{OS: "linux", Arch: runtime.GOARCH})
}

// machines maps an architecture to its number in the header of ELF files.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV, "386": elf.EM_386}

func buildForReal(t *testing.T, to wire.Platform) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	module := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte("module example.com/small\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(module, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	t.Chdir(module)
	b := crossBuild{pkg: "example.com/small", goTool: goTool, from: wire.Platform{OS: "plan9", Arch: "arm"}, to: to}
	e, err := b.build(t.Context(), func(string) bool { return true })
	require.NoError(t, err)
	defer e.remove()
	f, err := elf.Open(e.path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, machines[to.Arch], f.Machine)

	_, err = namedBinary(e.path, []wire.Platform{b.to})
	require.ErrorContains(t, err, "is a build of example.com/small, but this program is ", "a build of another program must be refused")
	require.NoError(t, os.WriteFile("main.go", []byte("package main\n\nfunc main() { undefined() }\n"), 0o600))
	_, err = b.build(t.Context(), func(string) bool { return true })
	require.ErrorContains(t, err, "build example.com/small for "+to.String()+": exit status 1\n")
	require.ErrorContains(t, err, "main.go:3:15: undefined: undefined")
	e.remove()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestCrossBuildForACluster requires that a program is not sent to a cluster of another
// platform, that the user is asked before it is built for that platform, and that a signal
// during the build ends it and leaves no file.
func TestCrossBuildForACluster(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	offerAll(t, squares)
	f := newFakeCluster(t, ranSquares)
	f.overview.Platforms = []wire.Platform{{OS: "plan9", Arch: "arm"}}
	_, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	require.ErrorContains(t, err, "the cluster's task managers are plan9/arm and this program is ")
	require.Empty(t, f.specs)
	require.Zero(t, f.uploaded, "a program that the cluster cannot run must not be uploaded")

	asked, began := false, false
	r := &clusterRun{c: &config{}}
	require.Nil(t, r.confirmBuild(), "without hooks, confirmBuild must return nil")
	r.c.cluster.hooks = clusterHooks{
		confirm: func(string) bool { asked = true; require.False(t, began); return true },
		began:   func() { began = true },
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	g := &fakeGo{}
	b := crossBuild{pkg: "example.com/train", to: f.overview.Platforms[0], goTool: func(ctx context.Context, env []string, args ...string) (string, error) {
		if args[0] == "build" {
			require.True(t, asked)
			require.True(t, began)
			_, _ = g.run(ctx, env, args...)
			cancel(errInterrupted)
			return "", ctx.Err()
		}
		return g.run(ctx, env, args...)
	}}
	_, err = b.build(ctx, r.confirmBuild())
	require.ErrorIs(t, err, errInterrupted)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestWorkerBinaryThatIsNone requires that a file that cannot be sent as the workers' program
// is refused with its name and the reason.
func TestWorkerBinaryThatIsNone(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	_, err := namedBinary(script, nil)
	require.ErrorContains(t, err, "--worker-binary: "+script+" is not a Go program: ")
	_, err = namedBinary(filepath.Join(dir, "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotContains(t, err.Error(), "Go program")
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = namedBinary(self, []wire.Platform{{OS: "plan9", Arch: "arm"}})
	require.ErrorContains(t, err, "but the cluster's task managers are plan9/arm")
	e, err := namedBinary(self, nil)
	require.NoError(t, err)
	require.Equal(t, runtime.GOARCH, e.platform.Arch)
}
