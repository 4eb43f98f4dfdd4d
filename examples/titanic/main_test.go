package main

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// TestMain lets the tests run the program in a process of its own, as users do.
func TestMain(m *testing.M) { proctest.Main(m, main) }

// TestSurvival compares the output with the results of LogisticRegression(C=1/(668·0.01)) of
// scikit-learn 1.9.1 on the same features, divided by their standard deviations. Its accuracies
// on the two sets of passengers are 0.80240 and 0.81614, its areas under the ROC curve 0.85417
// and 0.85950.
func TestSurvival(t *testing.T) {
	dir := t.TempDir()
	code, out, errOut := proctest.RunProgram(t, dir, "--model", "model.json", "--plot", "roc.png")
	require.Zero(t, code, errOut)
	require.Equal(t, `age             -0.027
fare            +0.003
sibsp           -0.277
parch           -0.095
sex = female    +2.491
class = First   +1.600
class = Second  +1.078
embarked = C    +0.611
embarked = Q    +0.264
intercept       -1.371
passengers seen in training: 668, accuracy 0.802, area under the ROC curve 0.854
others:                      223, accuracy 0.816, area under the ROC curve 0.860
a woman of 29, first class, from Cherbourg, survives with probability 0.941
model written to model.json
plot written to roc.png
`, out)

	m, err := pipeline.Load(filepath.Join(dir, "model.json"))
	require.NoError(t, err)
	require.Len(t, m.Stages(), 5)
	file, err := os.Open(filepath.Join(dir, "roc.png"))
	require.NoError(t, err)
	defer file.Close()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, 672, picture.Bounds().Dx())
	require.Equal(t, 480, picture.Bounds().Dy())

	// The output must be the same at another parallelism.
	_, again, _ := proctest.RunProgram(t, t.TempDir(), "--parallelism", "7", "--model", "model.json", "--plot", "roc.png")
	require.Equal(t, out, again)
}

func TestWrongUsage(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--every", "1"}, 2, "--every must be at least 2"},
		{[]string{"--l2", "-1"}, 2, "--l2 must be 0 or more"},
		{[]string{"--plot", "roc.gif"}, 2, "want a name that ends in .png"},
		{[]string{"--input", "none.csv"}, 1, "none.csv"},
		{[]string{"--input", "other.csv"}, 1, `no column "age"`},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "other.csv"), []byte("aeg,fare\n1,2\n"), 0o600))
		code, out, errOut := proctest.RunProgram(t, dir, x.args...)
		require.Equal(t, x.code, code, errOut)
		require.Empty(t, out)
		require.Contains(t, errOut, x.want)
	}
}
