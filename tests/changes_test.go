//go:build !race

package tests

import (
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lineCount matches the line before a block of code that states how many lines the block has.
var lineCount = regexp.MustCompile(`^(Before|Now), (\d+) lines:$`)

// TestChangesPage checks the code on the page about changes before 1.0. Every declaration of
// the code shown as "now" must be in the examples. The code shown as "before" must precede it
// and be valid Go. Each block must have as many lines as the page states.
func TestChangesPage(t *testing.T) {
	page, err := os.ReadFile("../docs/changes-before-1.0.md")
	require.NoError(t, err)
	blocks, err := readBlocks(string(page))
	require.NoError(t, err)
	lines := strings.Split(string(page), "\n")
	before, programs := false, map[string]bool{}
	for _, b := range blocks {
		require.Equal(t, "go", b.lang, "the block at line %d must be Go", b.line)
		told := lineCountAbove(lines, b.line)
		require.Equal(t, strconv.Itoa(strings.Count(b.text, "\n")), told[2], "the block at line %d must have as many lines as the page states", b.line)
		if told[1] == "Before" {
			_, err := format.Source([]byte(b.text))
			require.NoError(t, err, "the block at line %d must be valid Go", b.line)
			require.Empty(t, b.mark, "the block of code from before, at line %d, must have no mark", b.line)
			before = true
			continue
		}
		require.True(t, before, "a block of code from before must precede the block at line %d", b.line)
		require.Equal(t, "file", b.mark, "the block at line %d must name its file", b.line)
		programs[filepath.Dir(b.what)] = true
		source, err := os.ReadFile(filepath.Join("..", b.what))
		require.NoError(t, err)
		for _, declaration := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n\n") {
			require.Contains(t, string(source), "\n\n"+declaration+"\n", "%s must contain the declaration in the block at line %d", b.what, b.line)
		}
	}
	require.Len(t, programs, 5)
}

// lineCountAbove returns the submatches of the nearest line above the given line that matches
// lineCount. Lines are numbered from 1.
func lineCountAbove(lines []string, line int) []string {
	for i := line - 2; i >= 0; i-- {
		if m := lineCount.FindStringSubmatch(lines[i]); m != nil {
			return m
		}
	}
	return []string{"", "", "none"}
}
