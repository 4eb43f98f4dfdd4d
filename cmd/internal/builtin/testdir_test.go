package builtin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
	"github.com/superstep-ml/superstep/cmd/internal/commands"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestMain makes the test binary act as the command superstep if SUPERSTEP_TEST_COMMAND is set.
// Tests thus run the command in a process of its own, as users do.
func TestMain(m *testing.M) {
	if os.Getenv(wire.WorkerEnv) != "" { // write the hash of the executable to the log of the worker
		if program, err := os.ReadFile("/proc/self/exe"); err == nil {
			fmt.Fprintln(os.Stderr, "this worker runs", hashOf(program))
		}
	}
	engine.WorkerMain(builtin.Jobs()...)
	if os.Getenv("SUPERSTEP_TEST_COMMAND") != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := commands.Main(ctx, "superstep", "", new(commands.Cluster), os.Args[1:], commands.Standard())
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// testDir is a temporary directory with links to the test data, in which tests run the command.
type testDir struct {
	t   *testing.T
	dir string
	env []string // more environment variables of the command
	in  string   // standard input of the command
}

func newTestDir(t *testing.T) *testDir {
	t.Helper()
	w := &testDir{t: t, dir: t.TempDir()}
	data, err := filepath.Abs("testdata")
	require.NoError(t, err)
	files, err := os.ReadDir(data)
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Symlink(filepath.Join(data, f.Name()), filepath.Join(w.dir, f.Name())))
	}
	return w
}

// run runs a command line. Words are separated by blanks, except within quotes.
func (w *testDir) run(line string) (code int, out, errOut string) {
	w.t.Helper()
	self, err := os.Executable()
	require.NoError(w.t, err)
	cmd := w.command(self, line)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Stdin = strings.NewReader(w.in)
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// command returns an unstarted process that runs a command line with the executable build.
func (w *testDir) command(build, line string) *proctest.Cmd {
	cmd := proctest.CommandContext(w.t.Context(), build, split(line)...)
	cmd.Env = append(append(os.Environ(), "SUPERSTEP_TEST_COMMAND=1"), w.env...)
	cmd.Dir = w.dir
	return cmd
}

// hashOf returns the SHA-256 of data in hex.
func hashOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// split splits a line into words as a shell does, with single and double quotes.
func split(line string) []string {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\n'):
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}

// ok runs a command line that must succeed and returns its output.
func (w *testDir) ok(line string) string {
	w.t.Helper()
	code, out, errOut := w.run(line)
	require.Zero(w.t, code, "%s: %s", line, errOut)
	return out
}

// fails runs a command line that must fail with the given exit code and a message that contains
// want. It returns the error output.
func (w *testDir) fails(code int, line, want string) string {
	w.t.Helper()
	got, out, errOut := w.run(line)
	require.Equal(w.t, code, got, "%s: %s%s", line, out, errOut)
	require.Contains(w.t, errOut, want, line)
	require.NotContains(w.t, errOut, "panic", line)
	return errOut
}

func (w *testDir) path(name string) string { return filepath.Join(w.dir, name) }

func (w *testDir) write(name, content string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.path(name), []byte(content), 0o600))
}

func (w *testDir) read(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(w.path(name))
	require.NoError(w.t, err)
	return string(content)
}

// table returns the rows of a CSV file. Each row maps the name of a column to the cell.
func (w *testDir) table(name string) []map[string]string {
	w.t.Helper()
	lines, err := csv.NewReader(strings.NewReader(w.read(name))).ReadAll()
	require.NoError(w.t, err)
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// json runs a command line that must succeed and decodes its JSON output into *into.
func (w *testDir) json(line string, into any) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal([]byte(w.ok(line)), into), line)
}

// picture requires that a PNG or SVG file has the expected size and that something is drawn in
// it.
func (w *testDir) picture(name string) {
	w.t.Helper()
	content := w.read(name)
	if strings.HasSuffix(name, ".svg") {
		require.Contains(w.t, content, `width="504pt" height="360pt"`)
		d, elements := xml.NewDecoder(strings.NewReader(content)), 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(w.t, err)
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		require.Greater(w.t, elements, 20)
		return
	}
	image, err := png.Decode(strings.NewReader(content))
	require.NoError(w.t, err)
	require.Equal(w.t, 672, image.Bounds().Dx())
	require.Equal(w.t, 480, image.Bounds().Dy())
	coloured := 0
	for x := range 672 {
		for y := range 480 {
			if r, g, b, _ := image.At(x, y).RGBA(); b > r && b > g { // the first colour of the palette is blue
				coloured++
			}
		}
	}
	require.Greater(w.t, coloured, 100, "something must be drawn in %s", name)
}
