package builtin_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
)

func builtinAlgorithms() []string { return builtin.Algorithms() }

// TestWords requires that shell completion offers exactly the flags that --help lists.
func TestWords(t *testing.T) {
	w := newTestDir(t)
	require.Equal(t, builtin.Algorithms(), builtin.Words("train")[""])
	for line, words := range map[string][]string{
		"train logistic": builtin.Words("train")["logistic"], "train kmeans": builtin.Words("train")["kmeans"],
		"predict": builtin.Words("predict")[""], "evaluate": builtin.Words("evaluate")[""],
	} {
		var flags []string
		for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z0-9-]+)`).FindAllStringSubmatch(w.ok(line+" --help"), -1) {
			flags = append(flags, m[1])
		}
		slices.Sort(flags)
		require.Equal(t, slices.Compact(flags), words, line)
	}
	require.Empty(t, builtin.Words("inspect"))
	script := w.ok("completion bash")
	require.Regexp(t, `"train logistic"\) COMPREPLY=\(\$\(compgen -W "[^"]*--l2`, script)
	require.Regexp(t, `"train"\) COMPREPLY=\(\$\(compgen -W "[^"]*kmeans`, script)
	require.Regexp(t, `"predict"\) COMPREPLY=\(\$\(compgen -W "[^"]*--model`, script)
}
