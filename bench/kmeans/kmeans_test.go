package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
	"github.com/superstep-ml/superstep/engine"
)

// TestMain lets the test binary act as a contestant.
func TestMain(m *testing.M) {
	rounds.Main("kmeans", func() error {
		os.Exit(m.Run())
		return nil
	}, tasks...)
}

// rowsOf writes the rows of a problem and returns their folder.
func rowsOf(t testing.TB, s shape, noise float64) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, generateRows(dir, s, noise, 3))
	return dir
}

// valuesOf returns the rows in a folder.
func valuesOf(t testing.TB, dir string, s shape) []float64 {
	t.Helper()
	rows, err := rawrows.Read(dir, s.layout())
	require.NoError(t, err)
	return rows.Values
}

// TestContestantsAgree requires that the loops and the engine compute the same centres and the
// same inertia as lloyd.
func TestContestantsAgree(t *testing.T) {
	s := shape{Rows: 5003, Features: 5, Clusters: 4, Components: 3, Moves: 6}
	dir := rowsOf(t, s, 0.6)
	centers, inertia, close := lloyd(t, dir, s)
	for _, kind := range []string{loopKind, engineKind} {
		for _, threads := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s/%d", kind, threads), func(t *testing.T) {
				got, err := task{kind, threads, dir, s}.run()
				require.NoError(t, err)
				require.InEpsilon(t, inertia, got.Inertia, 1e-12)
				for a := range centers {
					require.InDeltaSlice(t, centers[a], got.Centers[a], 1e-12)
				}
				require.Positive(t, got.Pass)
				require.Greater(t, got.Total, got.Pass*float64(s.passes()))
				if kind == loopKind {
					require.InDelta(t, close, got.SingleDistance, 1e-12)
				}
			})
		}
	}
}

// lloyd trains k-means in a simple and slow way. It returns the centres, their inertia, and the
// share of rows whose distance to the nearest centre is less than half the distance from that
// centre to the nearest other centre.
func lloyd(t *testing.T, dir string, s shape) (centers [][]float64, inertia, close float64) {
	rows := asRows(valuesOf(t, dir, s), s.Features)
	distance := func(a, b []float64) float64 {
		var sum float64
		for j := range a {
			sum += (a[j] - b[j]) * (a[j] - b[j])
		}
		return math.Sqrt(sum)
	}
	nearest := func(x []float64, all [][]float64, but int) (at int, least float64) {
		least = math.Inf(1)
		for a, c := range all {
			if v := distance(x, c); a != but && v < least {
				at, least = a, v
			}
		}
		return at, least
	}
	for _, row := range rows[:s.Clusters] {
		centers = append(centers, append([]float64(nil), row...))
	}
	for move := 0; ; move++ {
		inertia, close = 0, 0
		sums, sizes := make([][]float64, s.Clusters), make([]float64, s.Clusters)
		for a := range sums {
			sums[a] = make([]float64, s.Features)
		}
		for _, row := range rows {
			a, v := nearest(row, centers, -1)
			inertia += v * v
			sizes[a]++
			for j := range row {
				sums[a][j] += row[j]
			}
			if _, gap := nearest(centers[a], centers, a); v < gap/2 {
				close++
			}
		}
		if move == s.Moves {
			return centers, inertia, close / float64(s.Rows)
		}
		for a := range centers {
			for j := range centers[a] {
				centers[a][j] = sums[a][j] / sizes[a]
			}
		}
	}
}

// TestGenerateRows requires that the rows of a shape depend only on the seed, and that they
// have the requested standard deviation.
func TestGenerateRows(t *testing.T) {
	s := shape{Rows: 20000, Features: 3, Clusters: 2, Components: 1}
	dir := t.TempDir()
	rows := func(seed uint64) []float64 {
		require.NoError(t, generateRows(dir, s, 0.5, seed))
		return valuesOf(t, dir, s)
	}
	x := rows(1)
	file, err := os.Stat(filepath.Join(dir, rawrows.ValuesFile))
	require.NoError(t, err)
	require.Equal(t, s.bytes(), file.Size())
	require.Equal(t, x, rows(1))
	require.NotEqual(t, x, rows(2))
	for j := range s.Features {
		var sum, squares float64
		for i := range s.Rows {
			sum += x[i*s.Features+j]
		}
		mean := sum / float64(s.Rows)
		for i := range s.Rows {
			squares += (x[i*s.Features+j] - mean) * (x[i*s.Features+j] - mean)
		}
		require.InDelta(t, 0.5, math.Sqrt(squares/float64(s.Rows)), 0.02)
	}
	s.Rows++
	_, err = rawrows.Read(dir, s.layout())
	require.ErrorContains(t, err, "read rows 0 to 20001")
}

// TestSource requires that the engine gets every row of the file once and in order, for any
// size of batches and any number of subtasks.
func TestSource(t *testing.T) {
	s := shape{Rows: 1003, Features: 3, Clusters: 2, Components: 2}
	dir := rowsOf(t, s, 1)
	want := valuesOf(t, dir, s)
	job := engine.Anonymous(func(b *engine.Builder) error {
		rows, err := rawrows.Dataset(b, dir, s.layout())
		engine.Collect(rows, "rows")
		return err
	})
	type row struct {
		Features []float64 `column:"features"`
	}
	for _, batchRows := range []int{1, 7, 1024} {
		for _, parallelism := range []int{1, 3} {
			result, err := engine.Run(t.Context(), job, struct{}{}, engine.Shards(8), engine.BatchRows(batchRows), engine.Parallelism(parallelism))
			require.NoError(t, err)
			rows, err := engine.Rows[row](result, "rows")
			require.NoError(t, err)
			var got []float64
			for _, r := range rows {
				got = append(got, r.Features...)
			}
			require.Equal(t, want, got)
			result.Release()
		}
	}
}

// TestBudgets requires that a ratio or a memory size that exceeds its budget is reported, and
// that a contestant with a different result is reported, too.
func TestBudgets(t *testing.T) {
	o := options{Rows: 1000, Features: 10, Clusters: 2, Components: 1, Iterations: 1, Python: "python", Noise: []float64{1}}
	made := func(change func(l *line)) *table {
		problems, err := o.problems()
		require.NoError(t, err)
		tab := newTable(&o, problems[0])
		for _, l := range tab.Lines {
			l.Rounds = []outcome{{Pass: 3, Peak: 1, Inertia: 7}, {Pass: 1, Peak: 2, Inertia: 7}, {Pass: 2, Peak: 3, Inertia: 7}}
			change(l)
		}
		return tab
	}
	tab := made(func(*line) {})
	require.NoError(t, tab.sum())
	require.True(t, tab.within())
	require.Len(t, tab.Lines, 8)
	require.True(t, tab.peers())
	require.Equal(t, 2.0, tab.Lines[0].Pass)
	require.Equal(t, 1.0, tab.Lines[0].Best)
	require.Equal(t, int64(2), tab.Lines[0].Peak)
	require.Equal(t, 1.0, tab.Lines[7].Ratio)
	require.Zero(t, tab.Lines[7].RatioCPU, "without processor times, the ratio of processor times must be 0")
	require.Equal(t, int64(1.3*80_000+100e6), tab.Budgets.Peak)

	of := func(kind string, change func(r *outcome)) func(*line) {
		return func(l *line) {
			for i := range l.Rounds {
				if l.Contestant == kind && l.Threads == 2 {
					change(&l.Rounds[i])
				}
			}
		}
	}
	slower := func(r *outcome) { r.Pass *= 1.06 }
	tab = made(of(engineKind, slower))
	require.NoError(t, tab.sum())
	require.InDelta(t, 1.06, tab.Lines[5].Ratio, 1e-12)
	require.InDelta(t, 1/1.06, tab.relativeSpeed(tab.Lines[5]), 1e-12)
	require.False(t, tab.within())
	tab = made(of(sklearnKind, slower))
	require.NoError(t, tab.sum())
	require.True(t, tab.within())
	emptied := made(func(l *line) {
		for i := range l.Rounds {
			if l.Contestant == loopKind {
				l.Rounds[i].Inertia, l.Rounds[i].Emptied = 9, true
			}
		}
	})
	require.NoError(t, emptied.sum(), "if a cluster of a loop is empty, inertias must be compared with the engine's inertia")
	tab = made(of(elkanKind, func(r *outcome) { r.Pass /= 2 }))
	require.NoError(t, tab.sum())
	require.InDelta(t, 0.5, tab.relativeSpeed(tab.Lines[5]), 1e-12, "the relative speed must be relative to the faster algorithm of scikit-learn")
	tab = made(of(engineKind, func(r *outcome) { r.Peak = 101e6 }))
	require.NoError(t, tab.sum())
	require.False(t, tab.within())
	require.ErrorContains(t, made(of(sklearnKind, func(r *outcome) { r.Inertia = 7.1 })).sum(), "scikit-learn, 2 threads ended with an inertia of 7.1")
}

// TestOptions requires that invalid options are refused.
func TestOptions(t *testing.T) {
	good := options{Rows: 10, Features: 1, Clusters: 2, Components: 1, Iterations: 1, Rounds: 1, Noise: []float64{0}}
	require.NoError(t, good.Validate())
	for name, change := range map[string]func(o *options){
		"shape": func(o *options) { o.Shapes = []string{"10x1"} }, "few": func(o *options) { o.Shapes = []string{"1x1x2"} },
		"rows": func(o *options) { o.Rows = 1 }, "features": func(o *options) { o.Features = 0 },
		"clusters": func(o *options) { o.Clusters = 1 }, "components": func(o *options) { o.Components = 0 },
		"iterations": func(o *options) { o.Iterations = 0 }, "rounds": func(o *options) { o.Rounds = 0 },
		"noise": func(o *options) { o.Noise = nil }, "negative": func(o *options) { o.Noise = []float64{-1} },
		"NaN": func(o *options) { o.Noise = []float64{math.NaN()} },
	} {
		o := good
		change(&o)
		require.Error(t, o.Validate(), name)
	}
}

// BenchmarkPass compares the time of a pass of the engine with the time of a pass of the loop
// on as many goroutines. Both run in turn.
func BenchmarkPass(b *testing.B) {
	s := shape{Rows: 200_000, Features: 16, Clusters: 10, Components: 8, Moves: 20}
	for _, noise := range []float64{0.5, 0.7} {
		dir := rowsOf(b, s, noise)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("noise=%g/p=%d", noise, threads), func(b *testing.B) {
				var ours, loops, ratios, cpu []float64
				for b.Loop() {
					loop, err := task{loopKind, threads, dir, s}.measure()
					require.NoError(b, err)
					own, err := task{engineKind, threads, dir, s}.measure()
					require.NoError(b, err)
					cpu = append(cpu, own.CPU/loop.CPU)
					ours, loops = append(ours, 1e3*own.Pass), append(loops, 1e3*loop.Pass)
					ratios = append(ratios, own.Pass/loop.Pass)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(rounds.Median(ours), "ms/pass")
				b.ReportMetric(rounds.Median(loops), "ms/pass-loop")
				b.ReportMetric(rounds.Median(ratios), "ratio")
				b.ReportMetric(rounds.Median(cpu), "ratio-cpu")
			})
		}
	}
}
