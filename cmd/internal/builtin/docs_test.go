//go:build !race

// This file is left out under the race detector: each command of the page is a process, and
// other tests run the same code under the race detector.

package builtin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTrainingPage runs the commands of docs/training.md in order. It requires that each
// line of a text block on the page appears in the output of the preceding block of commands.
func TestTheTrainingPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/training.md")
	require.NoError(t, err)
	w := newTestDir(t)
	out, commands := "", 0
	for _, block := range regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		if block[1] == "text" {
			for line := range strings.Lines(block[2]) {
				want := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
				require.Regexp(t, "(?m)^"+want, regexp.MustCompile(" +").ReplaceAllString(strings.ReplaceAll(out, "\n  ", "\n"), " "))
			}
			continue
		}
		out = ""
		for line := range strings.Lines(block[2]) {
			words, ok := strings.CutPrefix(strings.TrimSpace(line), "superstep ")
			require.True(t, ok, line)
			out += w.ok(words)
			commands++
		}
	}
	require.GreaterOrEqual(t, commands, 10)
	for _, name := range []string{"coefficients.png", "roc.png", "clusters.png", "loss.svg"} {
		w.picture(name)
	}
	require.FileExists(t, filepath.Join(w.dir, "width.json"))

	// The table on the page must contain every algorithm, and each flag in the table must
	// exist.
	for _, row := range regexp.MustCompile("(?m)^\\| `superstep train (\\w+)` \\|.*?\\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		help := w.ok("train " + row[1] + " --help")
		for _, flag := range regexp.MustCompile("--[a-z0-9-]+").FindAllString(row[2], -1) {
			require.Contains(t, help, flag, row[1])
		}
	}
	for _, name := range builtinAlgorithms() {
		require.Contains(t, string(page), "`superstep train "+name+"`")
	}
}
