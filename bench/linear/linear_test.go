package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// TestMain lets the test binary act as a contestant.
func TestMain(m *testing.M) {
	rounds.Main("linear", func() error {
		os.Exit(m.Run())
		return nil
	}, tasks...)
}

// TestContestantsAgree requires that all methods of Superstep reach the same optimum on few
// rows.
func TestContestantsAgree(t *testing.T) {
	for name, s := range map[string]shape{"dense": {Layout: rawrows.Layout{Rows: 400, Features: 5}}, "sparse": {Layout: rawrows.Layout{Rows: 400, Features: 60, PerRow: 4}}} {
		dir := t.TempDir()
		require.NoError(t, generate(dir, s, 3), name)
		var all []*line
		for _, method := range []optim.Method{optim.Auto, optim.Newton, optim.LBFGS} {
			for _, p := range []int{1, 2} {
				got, err := task{Dir: dir, Shape: s, L2: 1 / float64(s.Rows), Parallel: p, Method: method}.run()
				require.NoError(t, err)
				all = append(all, &line{Rounds: []outcome{got}})
			}
		}
		least := optimum(all)
		require.Less(t, least, math.Ln2)
		for _, l := range all {
			seconds, steps, ok := l.Rounds[0].until(least)
			require.True(t, ok)
			require.Positive(t, seconds)
			require.Positive(t, steps)
		}
	}
}

// TestRows requires that the files of labels and columns have the right lengths, and that the
// columns of each row ascend.
func TestRows(t *testing.T) {
	s := shape{Layout: rawrows.Layout{Rows: 300, Features: 40, PerRow: 6}}
	dir := t.TempDir()
	require.NoError(t, generate(dir, s, 1))
	labels, err := os.ReadFile(dir + "/" + rawrows.LabelsFile)
	require.NoError(t, err)
	require.Len(t, labels, 300*8)
	indices, err := os.ReadFile(dir + "/" + rawrows.IndicesFile)
	require.NoError(t, err)
	require.Len(t, indices, 300*6*4)
	for i := range 300 {
		last := -1
		for p := range 6 {
			at := int(indices[(6*i+p)*4]) // the low byte of an int32; all columns are below 256
			require.Greater(t, at, last)
			require.Less(t, at, 40)
			last = at
		}
	}
	require.InDelta(t, 0.1, s.scale(0), 1e-12)
	require.InDelta(t, 3, s.scale(39), 1e-12)
}

// TestRowsOfTheCommand requires that the text file for liblinear's command contains the rows,
// that objective returns the same value as the test computes from that file, and that
// coefficients reads a model of the command.
func TestRowsOfTheCommand(t *testing.T) {
	for name, s := range map[string]shape{"dense": {Layout: rawrows.Layout{Rows: 200, Features: 5}}, "sparse": {Layout: rawrows.Layout{Rows: 200, Features: 60, PerRow: 4}}} {
		dir := t.TempDir()
		require.NoError(t, generate(dir, s, 3), name)
		require.NoError(t, writeText(dir, s.Layout))
		text, err := os.ReadFile(filepath.Join(dir, textFile))
		require.NoError(t, err)
		rows, err := readRows(dir, s.Layout)
		require.NoError(t, err)
		require.InDelta(t, math.Ln2, rows.objective(make([]float64, s.Features), false), 1e-12)
		w := make([]float64, s.Features)
		w[2] = 0.5
		var loss float64
		for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			fields := strings.Fields(line)
			require.Len(t, fields, 1+s.Width())
			require.Equal(t, rows.Labels[i] > 0, fields[0] == "1")
			margin := 0.0
			for _, f := range fields[1:] {
				if at, v, _ := strings.Cut(f, ":"); at == "3" {
					x, err := strconv.ParseFloat(v, 64)
					require.NoError(t, err)
					margin = 0.5 * x
				}
			}
			loss += math.Log1p(math.Exp(margin * (1 - 2*rows.Labels[i])))
		}
		require.InDelta(t, (loss+0.125)/200, rows.objective(w, false), 1e-12)
		require.InDelta(t, (loss+0.5)/200, rows.objective(w, true), 1e-12)

		model := filepath.Join(dir, "model")
		require.NoError(t, os.WriteFile(model, []byte("solver_type L2R_LR\nnr_class 2\nlabel -1 1\nnr_feature 3\nbias -1\nw\n0.5 \n-2 \n"), 0o600))
		w, err = coefficients(model, 4)
		require.NoError(t, err)
		require.Equal(t, []float64{-0.5, 2, 0, 0}, w)
		_, err = coefficients(model, 1)
		require.ErrorContains(t, err, "2 coefficients of 1 features")
	}
}

// TestTimed requires that timed detects when a process closes a file. If the command fails, the
// error must contain the reason.
func TestTimed(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux has the /proc that timed needs
	}
	file := filepath.Join(t.TempDir(), "rows")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.False(t, holds(os.Getpid(), file))
	f, err := os.Open(file)
	require.NoError(t, err)
	require.True(t, holds(os.Getpid(), file))
	require.NoError(t, f.Close())
	require.False(t, holds(os.Getpid(), file))
	_, err = timed(exec.Command("sh", "-c", "echo no rows; exit 3"), file)
	require.ErrorContains(t, err, "exit status 3: no rows")
	_, err = timed(exec.Command("true"), file)
	require.ErrorContains(t, err, "ended without having closed")
}
