package batch

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestCutText requires that cutText cuts long text between characters, and also cuts long text
// that is not UTF-8.
func TestCutText(t *testing.T) {
	for _, lead := range []string{"", "a", "ab", "abc"} {
		s := lead + strings.Repeat("é", 20) + strings.Repeat("𝛼", 20)
		cut := cutText(s)
		require.True(t, utf8.ValidString(cut), cut)
		require.True(t, strings.HasPrefix(s, strings.TrimSuffix(cut, "…")))
		require.Greater(t, len(cut), longestText-utf8.UTFMax)
	}
	require.Equal(t, strings.Repeat("é", 30), cutText(strings.Repeat("é", 30)))
	require.Len(t, cutText(strings.Repeat("\x80", 100)), longestText-utf8.UTFMax+len("…"))
}
