package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// fakeGo is a go command that says what a test has it say.
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
	_, err = b.build(t.Context(), func(string) bool { t.Error("asks in vain"); return true })
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
