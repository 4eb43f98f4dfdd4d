//go:build !race

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// block is a fenced block of a document, with the mark that precedes it. A mark is an HTML
// comment, which the rendered page does not show:
//
//	<!-- file: main.go -->     the block becomes the content of the file
//	<!-- run -->               sh runs the block in the reader's module
//	<!-- run: setup -->        sh runs the block in the parent of the reader's module
//	<!-- run: tidy -->         the block is "go mod tidy"; see guide.tidy
//	<!-- output -->            the block is the standard output of the last run
//	<!-- error: OLD NEW -->    the block is the error of "go run ." after OLD in main.go is replaced by NEW
//
// A block without a mark is not checked.
type block struct {
	line       int
	mark, what string
	lang, text string
}

var markPattern = regexp.MustCompile(`^<!-- (file|run|output|error)(?:: (.+))? -->$`)

// readBlocks returns the fenced blocks of a document.
func readBlocks(doc string) ([]block, error) {
	var blocks []block
	var open *block
	mark, what := "", ""
	for i, line := range strings.Split(doc, "\n") {
		switch {
		case open != nil && line == "```":
			blocks, open = append(blocks, *open), nil
			mark, what = "", ""
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "```"):
			open = &block{line: i + 1, mark: mark, what: what, lang: strings.TrimPrefix(line, "```")}
		case strings.HasPrefix(line, "<!--"):
			m := markPattern.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("line %d: %s is no mark of a block", i+1, line)
			}
			mark, what = m[1], m[2]
		case mark != "":
			return nil, fmt.Errorf("line %d: want a block after its mark, found %q", i+1, line)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block does not end", open.line)
	}
	return blocks, nil
}

// guide executes the blocks of a document in a new directory. The directory has a link to the
// checkout of this module at the path that the document names.
type guide struct {
	t        *testing.T
	dir      string // directory in which the reader's module is created
	env      []string
	checkout string
	stdout   string // standard output of the last run
}

// newGuide makes the directory, and an environment in which the go command cannot use the
// network.
func newGuide(t *testing.T) *guide {
	t.Helper()
	checkout, err := filepath.Abs("..")
	require.NoError(t, err)
	g := &guide{t: t, dir: t.TempDir(), checkout: checkout}
	g.env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	require.NoError(t, os.Symlink(checkout, filepath.Join(g.dir, "superstep")))
	return g
}

func (g *guide) module() string { return filepath.Join(g.dir, "depot") }

// sh runs a shell script in dir and returns its standard output and standard error.
func (g *guide) sh(dir, script string) (stdout, stderr string, err error) {
	cmd := proctest.CommandContext(g.t.Context(), "sh", "-e", "-c", script)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, g.env, &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// step executes a block as its mark says.
func (g *guide) step(b block) {
	at := fmt.Sprintf("the block at line %d", b.line)
	switch b.mark {
	case "file":
		require.NoError(g.t, os.WriteFile(filepath.Join(g.module(), b.what), []byte(b.text), 0o666), at)
	case "run":
		if b.what == "tidy" {
			require.Equal(g.t, "go mod tidy\n", b.text, at)
			g.tidy()
			return
		}
		dir := g.module()
		if b.what == "setup" {
			dir = g.dir
		}
		stdout, stderr, err := g.sh(dir, b.text)
		require.NoError(g.t, err, "%s: %s", at, stderr)
		g.stdout = stdout
	case "output":
		require.Equal(g.t, withoutFingerprint(b.text), withoutFingerprint(g.stdout), at)
	case "error":
		g.misspell(b, at)
	}
}

// misspell replaces a word in main.go, runs the program, requires the error message that the
// block shows, and restores the word. The page breaks messages into lines, so line ends and
// spaces count as equal.
func (g *guide) misspell(b block, at string) {
	from, to, ok := strings.Cut(b.what, " ")
	require.True(g.t, ok, at)
	path := filepath.Join(g.module(), "main.go")
	content, err := os.ReadFile(path)
	require.NoError(g.t, err)
	wrong := strings.ReplaceAll(string(content), from, to)
	require.NotEqual(g.t, string(content), wrong, at)
	require.NoError(g.t, os.WriteFile(path, []byte(wrong), 0o666))
	stdout, stderr, err := g.sh(g.module(), "go build -o misspelt . && ./misspelt")
	var exit *exec.ExitError
	require.ErrorAs(g.t, err, &exit, at)
	require.Equal(g.t, 1, exit.ExitCode(), at)
	require.Empty(g.t, stdout, at)
	said := strings.Join(strings.Fields(stderr), " ")
	said = strings.Replace(said, "misspelt: error:", "depot: error:", 1) // go run names the program after the file
	require.Equal(g.t, strings.Join(strings.Fields(b.text), " "), said, at)
	require.NoError(g.t, os.WriteFile(path, content, 0o666))
}

// tidy replaces "go mod tidy", which would need the network because it also reads the tests of
// all dependencies. tidy copies the requirements of this module, which include those of the
// program.
func (g *guide) tidy() {
	sums, err := os.ReadFile(filepath.Join(g.checkout, "go.sum"))
	require.NoError(g.t, err)
	require.NoError(g.t, os.WriteFile(filepath.Join(g.module(), "go.sum"), sums, 0o666))
	text, stderr, err := g.sh(g.checkout, "go mod edit -json")
	require.NoError(g.t, err, stderr)
	var mod struct {
		Require []struct{ Path, Version string }
	}
	require.NoError(g.t, json.Unmarshal([]byte(text), &mod))
	edit := "go mod edit -require=" + module + "@v0.0.0"
	for _, r := range mod.Require {
		edit += " -require=" + r.Path + "@" + r.Version
	}
	_, stderr, err = g.sh(g.module(), edit)
	require.NoError(g.t, err, stderr)
	g.shareBuilds()
}

// shareBuilds changes go.mod so that this module is replaced by the directory of the checkout
// itself, and not by the link to it that the page names. The build cache depends on the
// directories of packages, so otherwise all packages would be compiled again.
func (g *guide) shareBuilds() {
	text, stderr, err := g.sh(g.module(), "go mod edit -json")
	require.NoError(g.t, err, stderr)
	var mod struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	require.NoError(g.t, json.Unmarshal([]byte(text), &mod))
	require.Len(g.t, mod.Replace, 1)
	require.Equal(g.t, module, mod.Replace[0].Old.Path)
	leads, err := filepath.EvalSymlinks(filepath.Join(g.module(), mod.Replace[0].New.Path))
	require.NoError(g.t, err)
	checkout, err := filepath.EvalSymlinks(g.checkout)
	require.NoError(g.t, err)
	require.Equal(g.t, checkout, leads)
	_, stderr, err = g.sh(g.module(), "go mod edit -replace "+module+"="+g.checkout)
	require.NoError(g.t, err, stderr)
}

var fingerprint = regexp.MustCompile(`graph [0-9a-f]+…`)

// withoutFingerprint removes the hash of the graph from the text of a plan, because the hash
// depends on the modification times of the input files.
func withoutFingerprint(text string) string {
	return fingerprint.ReplaceAllString(text, "graph …")
}

// TestQuickstart executes the blocks of the quickstart in order. All blocks must work and have
// the output that the page shows.
func TestQuickstart(t *testing.T) {
	doc, err := os.ReadFile("../docs/quickstart.md")
	require.NoError(t, err)
	blocks, err := readBlocks(string(doc))
	require.NoError(t, err)
	g := newGuide(t)
	did := map[string]int{}
	for _, b := range blocks {
		g.step(b)
		did[b.mark]++
		// Every block of code must have a mark, so that it is checked.
		require.False(t, b.mark == "" && b.lang != "text", "the block of %q at line %d must have a mark", b.lang, b.line)
	}
	require.GreaterOrEqual(t, did["file"], 3)
	require.GreaterOrEqual(t, did["output"], 4)
	require.Equal(t, 1, did["error"])
	g.checkDepot(blocks)
}

// checkDepot compares the result on the page with the result of an independent search, which
// walks downhill in smaller and smaller steps.
func (g *guide) checkDepot(blocks []block) {
	var stops [][3]float64
	for _, b := range blocks {
		if b.what != "customers.csv" {
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(b.text), "\n")[1:] {
			var s [3]float64
			cells := strings.Split(line, ",")
			_, err := fmt.Sscan(strings.Join(cells[1:], " "), &s[0], &s[1], &s[2])
			require.NoError(g.t, err)
			stops = append(stops, s)
		}
	}
	cost := func(x, y float64) (sum float64) {
		for _, s := range stops {
			sum += s[2] * math.Hypot(s[0]-x, s[1]-y) / 1000
		}
		return sum
	}
	x, y := 0.0, 0.0
	for step := 1024.0; step > 1e-3; step /= 2 {
		for better := true; better; {
			better = false
			for _, d := range [][2]float64{{step, 0}, {-step, 0}, {0, step}, {0, -step}} {
				if cost(x+d[0], y+d[1]) < cost(x, y) {
					x, y, better = x+d[0], y+d[1], true
				}
			}
		}
	}
	shown := fmt.Sprintf("parcel-km %.3f → %.3f\ndepot: %.3f km east, %.3f km north\n", cost(0, 0), cost(x, y), x/1000, y/1000)
	found := false
	for _, b := range blocks {
		found = found || b.mark == "output" && strings.Contains(b.text, shown)
	}
	require.True(g.t, found, "the page must show %q", shown)
}

// TestReadBlocks checks readBlocks, because a block that it did not find would not be checked.
func TestReadBlocks(t *testing.T) {
	blocks, err := readBlocks("a\n<!-- file: b.go -->\n```go\nx\n\ny\n```\ntext\n<!-- run -->\n```sh\nls\n```\n```text\nz\n```\n")
	require.NoError(t, err)
	require.Equal(t, []block{
		{line: 3, mark: "file", what: "b.go", lang: "go", text: "x\n\ny\n"},
		{line: 10, mark: "run", lang: "sh", text: "ls\n"},
		{line: 13, lang: "text", text: "z\n"},
	}, blocks)
	for _, bad := range []string{"```go\nx\n", "<!-- file: b.go -->\ntext\n", "<!-- runs -->\n```sh\n```\n"} {
		_, err := readBlocks(bad)
		require.Error(t, err, bad)
	}
}
