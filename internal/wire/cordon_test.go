package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReasons(t *testing.T) {
	for _, good := range []string{"", "its disk is replaced", "größer", strings.Repeat("x", MaxReason)} {
		require.True(t, CheckReason(good), "%.20q", good)
	}
	for _, bad := range []string{"two\nlines", "a\x1b[2Jb", "tab\t", "\xff", "\u202egnp.exe", strings.Repeat("x", MaxReason+1)} {
		require.False(t, CheckReason(bad), "%.20q", bad)
	}
}
