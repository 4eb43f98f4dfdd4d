package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// TestMain lets the tests run the program in a process of its own, as users do.
func TestMain(m *testing.M) { proctest.Main(m, main) }

// TestQueries requires an NDCG@5 of more than 0.64 on the test queries. LightGBM 4.7 with trees
// of 15 leaves reaches at most 0.64 before 30 rounds pass without an improvement. A random
// order has about 0.45.
func TestQueries(t *testing.T) {
	dir := t.TempDir()
	code, out, errOut := proctest.RunProgram(t, dir, "--model", "model.json")
	require.Zero(t, code, errOut)
	match := regexp.MustCompile(`(?m)^test +ndcg@5 (0\.\d+) ndcg@1 0\.\d+ ndcg@3 0\.\d+ map@5 0\.\d+$`).FindStringSubmatch(out)
	require.NotNil(t, match, out)
	ndcg, err := strconv.ParseFloat(match[1], 64)
	require.NoError(t, err)
	require.Greater(t, ndcg, 0.64)
	m, err := gbdt.Load(filepath.Join(dir, "model.json"))
	require.NoError(t, err)
	require.Equal(t, m.Summary.BestRound, m.Rounds())

	// The output must be the same at another parallelism.
	_, again, _ := proctest.RunProgram(t, t.TempDir(), "--parallelism", "5", "--model", "model.json")
	require.Equal(t, out, again)
}

func TestWrongUsage(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--leaves", "1"}, 2, "--leaves at least 2"},
		{[]string{"--test", "x.libsvm"}, 2, "--input and --test go together"},
		{[]string{"--input", "none.libsvm", "--test", "none.libsvm"}, 1, "none.libsvm"},
	} {
		code, out, errOut := proctest.RunProgram(t, t.TempDir(), x.args...)
		require.Equal(t, x.code, code, errOut)
		require.Empty(t, out)
		require.Contains(t, errOut, x.want)
	}
}
