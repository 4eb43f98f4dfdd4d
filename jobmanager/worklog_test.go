package jobmanager

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// readLog reads a log from a position to its end.
func readLog(t require.TestingT, l *worklog, from int64) (text string, at, dropped int64) {
	for {
		piece, next, lost, err := l.read(from)
		require.NoError(t, err)
		dropped += lost
		from = next
		if len(piece) == 0 {
			return text, from, dropped
		}
		text += string(piece)
	}
}

func TestWorklogKeepsTheLastLines(t *testing.T) {
	root := testRoot(t)
	require.NoError(t, root.MkdirAll("jobs/j", 0o700))
	l := newWorklog(root, logPrefix("jobs/j", 3), 200)
	var all strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		require.NoError(t, l.write([]byte(line)))
	}
	text, _, dropped := readLog(t, l, 0)
	require.LessOrEqual(t, len(text), 200)
	require.Greater(t, len(text), 90)
	require.Equal(t, all.String()[dropped:], text)
	require.True(t, strings.HasPrefix(text, "line "))
	entries, err := fs.ReadDir(root.FS(), "jobs/j")
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.NoError(t, l.close())

	// The text of another worker's log must not appear in this log, and a reader must get the
	// same text after the end of the job.
	other := newWorklog(root, logPrefix("jobs/j", 33), 200)
	require.NoError(t, other.write([]byte("other\n")))
	require.NoError(t, other.close())
	again, err := openWorklog(root, "jobs/j", 3)
	require.NoError(t, err)
	later, _, lost := readLog(t, again, 0)
	require.Equal(t, text, later)
	require.Equal(t, dropped, lost)
	none, err := openWorklog(root, "jobs/unknown", 0)
	require.NoError(t, err)
	later, _, _ = readLog(t, none, 0)
	require.Empty(t, later)
}

// TestWorklogAgainstWholeText writes text in pieces of random sizes. A reader at any speed must
// get the text in order, except for bytes that are reported as dropped, and the size of the log
// must not exceed its bound.
func TestWorklogAgainstWholeText(t *testing.T) {
	root := testRoot(t)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := fmt.Sprintf("jobs/r%d", runs)
		require.NoError(t, root.MkdirAll(dir, 0o700))
		bound := rapid.Int64Range(2, 60).Draw(t, "bound")
		l := newWorklog(root, logPrefix(dir, 0), bound)
		defer l.close()
		written, at := "", int64(0)
		for _, piece := range rapid.SliceOfN(rapid.StringMatching(`[a-c\n]{0,80}`), 0, 20).Draw(t, "pieces") {
			require.NoError(t, l.write([]byte(piece)))
			written += piece
			if rapid.Bool().Draw(t, "read") {
				text, next, dropped := readLog(t, l, at)
				require.Equal(t, written[at+dropped:next], text)
				require.EqualValues(t, len(written), next)
				at = next
			}
		}
		text, next, dropped := readLog(t, l, 0)
		require.Equal(t, written[dropped:], text)
		require.EqualValues(t, len(written), next)
		require.LessOrEqual(t, int64(len(text)), bound)
		require.NoError(t, root.RemoveAll(dir))
	})
}

func TestWorklogWithoutDirectory(t *testing.T) {
	l := newWorklog(testRoot(t), logPrefix("jobs/gone", 0), 100)
	require.ErrorIs(t, l.write([]byte("x\n")), os.ErrNotExist)
	text, _, _ := readLog(t, l, 0)
	require.Empty(t, text)
}
