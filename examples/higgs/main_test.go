package main

import (
	"image/png"
	"os"
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

// TestCollisions requires an area under the ROC curve of more than 0.82 on the 500 test rows.
// With the same rule for stopping the training, XGBoost 3.2 reaches an area of 0.8305 and
// LightGBM 4.7 an area of 0.8337. The standard error of the area is 0.018.
func TestCollisions(t *testing.T) {
	dir := t.TempDir()
	code, out, errOut := proctest.RunProgram(t, dir, "--model", "model.json", "--plot", "curves.png")
	require.Zero(t, code, errOut)
	match := regexp.MustCompile(`area under the ROC curve of 500 test rows (0\.\d+), accuracy 0\.7`).FindStringSubmatch(out)
	require.NotNil(t, match, out)
	area, err := strconv.ParseFloat(match[1], 64)
	require.NoError(t, err)
	require.Greater(t, area, 0.82)
	require.Regexp(t, `(?m)^ +c26 +\d+ +\d+\.\d +[+-]0\.\d+$`, out, "feature c26, the mass of two b quarks, must be among the most important features")

	m, err := gbdt.Load(filepath.Join(dir, "model.json"))
	require.NoError(t, err)
	require.Equal(t, m.Summary.BestRound, m.Rounds())
	require.Equal(t, m.Summary.BestRound+30, m.Summary.Rounds)
	file, err := os.Open(filepath.Join(dir, "curves.png"))
	require.NoError(t, err)
	defer file.Close()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, 672, picture.Bounds().Dx())

	// The output must be the same at another parallelism.
	_, again, _ := proctest.RunProgram(t, t.TempDir(), "--parallelism", "5", "--model", "model.json", "--plot", "curves.png")
	require.Equal(t, out, again)
}

func TestWrongUsage(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--rounds", "0"}, 2, "must be above 0"},
		{[]string{"--input", "x.tsv"}, 2, "--input and --test go together"},
		{[]string{"--plot", "curves.gif"}, 2, "want a name that ends in .png"},
		{[]string{"--input", "none.tsv", "--test", "none.tsv"}, 1, "none.tsv"},
	} {
		code, out, errOut := proctest.RunProgram(t, t.TempDir(), x.args...)
		require.Equal(t, x.code, code, errOut)
		require.Empty(t, out)
		require.Contains(t, errOut, x.want)
	}
}
