package selection_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// shrunk is a stage that predicts Factor times the mean of the column y.
type shrunk struct{ Factor float64 }

type modelRow struct {
	Model string `column:"model"`
}

func (s shrunk) Kind() string { return "shrunk" }

func (s shrunk) Fit(rows *engine.Dataset) *engine.Dataset {
	type mean struct {
		M *float64 `column:"mean_y"`
	}
	return operators.MapErr(operators.Aggregate(rows, operators.MeanOf("y")), func(m mean) (modelRow, error) {
		if m.M == nil {
			return modelRow{}, fmt.Errorf("there are no rows to train on")
		}
		return modelRow{strconv.FormatFloat(s.Factor**m.M, 'g', -1, 64)}, nil
	})
}

func (s shrunk) Apply(rows, m *engine.Dataset) *engine.Dataset {
	type in struct {
		ID int64
		Y  float64
	}
	type out struct {
		ID         int64
		Y          float64
		Prediction float64
	}
	return operators.MapWith(rows, m, func(row in, side []modelRow) (out, error) {
		p, err := strconv.ParseFloat(side[0].Model, 64)
		return out{row.ID, row.Y, p}, err
	})
}

type observed struct {
	ID int64
	Y  float64
}

func observations(n int) []observed {
	draws := sharding.NewRandom(11, "observations", 0, 0)
	rows := make([]observed, n)
	for i := range rows {
		rows[i] = observed{int64(i), 3 + draws.NormFloat64()}
	}
	return rows
}

var (
	regressionCols = evaluate.RegressionOptions{LabelCol: "y", PredictionCol: "prediction"}
	shrunkGrid     = selection.Grid(shrunk{}, func(s shrunk) model.Stage { return s },
		selection.Over("factor", func(s *shrunk, f float64) { s.Factor = f }, 0.5, 1, 1.5))
)

// compared adds a comparison to a job, and collects its results.
func compared(b *engine.Builder, rows *engine.Dataset, candidates []selection.Candidate, o selection.Options) {
	c := selection.CrossValidate(rows, candidates, o)
	engine.Collect(c.Scores, "scores")
	if c.Best != nil {
		engine.Collect(c.Best, "best")
	}
}

func tableOf(t testing.TB, r *engine.Result) *selection.Table {
	t.Helper()
	table, err := selection.TableOf(r, "scores")
	require.NoError(t, err)
	return table
}

// TestCrossValidationEqualsLoops compares scores with loops that compute the mean of the rows
// outside each fold and the errors on the rows in the fold.
func TestCrossValidationEqualsLoops(t *testing.T) {
	rows := observations(61)
	o := selection.Options{K: 4, Seed: 5, Refit: true, Metrics: selection.Regression(regressionCols, "rmse", "mae")}
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		for i, f := range selection.KFold(d, 4, 5) {
			engine.Collect(f.Test, fmt.Sprint("fold", i))
		}
		compared(b, d, shrunkGrid, o)
	})
	table := tableOf(t, r)
	require.Len(t, table.Scores, 3*2*4)
	at := 0
	for c, factor := range []float64{0.5, 1, 1.5} {
		var means [2]float64
		var values [2][4]float64
		for fold := range 4 {
			test, err := engine.Rows[observed](r, fmt.Sprint("fold", fold))
			require.NoError(t, err)
			held := map[int64]bool{}
			for _, row := range test {
				held[row.ID] = true
			}
			var sum, n float64
			for _, row := range rows {
				if !held[row.ID] {
					sum += row.Y
					n++
				}
			}
			for _, row := range test {
				e := row.Y - factor*sum/n
				values[0][fold] += e * e / float64(len(test))
				values[1][fold] += math.Abs(e) / float64(len(test))
			}
			values[0][fold] = math.Sqrt(values[0][fold])
			means[0] += values[0][fold] / 4
			means[1] += values[1][fold] / 4
		}
		for m, name := range []string{"rmse", "mae"} {
			for fold := range 4 {
				s := table.Scores[at]
				at++
				require.Equal(t, fmt.Sprintf("factor=%v %d %s %d", factor, c, name, fold), fmt.Sprintf("%s %d %s %d", s.Candidate, s.Index, s.Metric, s.Fold))
				require.InDelta(t, values[m][fold], s.Value, 1e-12)
				require.InDelta(t, means[m], s.Mean, 1e-12)
			}
		}
	}
	require.Equal(t, "factor=1", table.Best().Candidate)
	best, err := engine.Rows[modelRow](r, "best")
	require.NoError(t, err)
	want := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(shrunk{1}.Fit(operators.FromSlice(b, rows)), "model")
	})
	alone, err := engine.Rows[modelRow](want, "model")
	require.NoError(t, err)
	require.Equal(t, alone, best)
}

// TestCrossValidationSameBits requires that the bits do not depend on AtOnce or on parallelism.
func TestCrossValidationSameBits(t *testing.T) {
	rows := observations(40)
	var texts []string
	for _, atOnce := range []int{0, 1, 2} {
		o := selection.Options{K: 2, Refit: true, AtOnce: atOnce, Metrics: selection.Regression(regressionCols, "mae", "r2")}
		build := func(b *engine.Builder) { compared(b, operators.FromSlice(b, rows), shrunkGrid, o) }
		texts = append(texts, trial.Print(t, trial.Run(t, build)))
		if atOnce == 1 {
			trial.SameBits(t, build)
		}
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, texts[0], texts[2])
}

// clusters is a stage that trains k-means and predicts with default options.
type clusters struct{ kmeans.Params }

func (c clusters) Kind() string                             { return "kmeans" }
func (c clusters) Fit(rows *engine.Dataset) *engine.Dataset { return kmeans.Train(rows, c.Params) }
func (c clusters) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return kmeans.Predict(rows, m, kmeans.PredictOptions{})
}

type flower struct {
	X       []float64 `column:"x,dim=4"`
	Species string
}

// iris returns the rows of Fisher's iris data from the data of examples/kmeans.
func iris(t testing.TB) []flower {
	t.Helper()
	f, err := os.Open("../../examples/kmeans/data/iris.csv")
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	var rows []flower
	for _, record := range records[1:] {
		row := flower{Species: record[4]}
		for _, cell := range record[:4] {
			v, err := strconv.ParseFloat(cell, 64)
			require.NoError(t, err)
			row.X = append(row.X, v)
		}
		rows = append(rows, row)
	}
	return rows
}

func kmeansGrid(k ...int) []selection.Candidate {
	return selection.Grid(kmeans.Params{VectorCol: "x", Seed: 1}, func(p kmeans.Params) model.Stage { return clusters{p} },
		selection.Over("k", func(p *kmeans.Params, k int) { p.K = k }, k...))
}

// TestCrossValidationOfKMeans requires that two clusters have the best silhouette, and that
// three clusters agree best with the species.
func TestCrossValidationOfKMeans(t *testing.T) {
	rows := iris(t)
	cols := evaluate.ClusteringOptions{VectorCol: "x", ClusterCol: "cluster", LabelCol: "species"}
	for metric, want := range map[string]string{"silhouette": "k=2", "ari": "k=3"} {
		o := selection.Options{K: 3, Stratify: "species", Refit: true, AtOnce: 2, Metrics: selection.Clustering(cols, metric, "davies_bouldin")}
		r := trial.Run(t, func(b *engine.Builder) { compared(b, operators.FromSlice(b, rows), kmeansGrid(2, 3, 5), o) })
		table := tableOf(t, r)
		require.Equal(t, want, table.Best().Candidate)
		m, err := kmeans.ModelOf(r, "best")
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprint("k=", len(m.Centers)))
		require.Contains(t, table.String(), "rank  candidate  "+metric)
	}
}

func TestComparisonOfASplit(t *testing.T) {
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, observations(30))
		split := selection.Split(d, selection.SplitOptions{Test: 0.3})
		compared(b, d, shrunkGrid, selection.Options{Folds: []selection.Fold{split}, Metrics: selection.Regression(regressionCols, "mse")})
	})
	table := tableOf(t, r)
	require.Len(t, table.Scores, 3)
	require.Equal(t, 0.0, table.Scores[0].Std)
	_, err := selection.TableOf(r, "nothing")
	require.Error(t, err)
}

// TestRowsAreReadOnce requires that the graph contains the source once, for any number of
// candidates and folds.
func TestRowsAreReadOnce(t *testing.T) {
	job := engine.Define("compare", func(b *engine.Builder, _ struct{}) error {
		o := selection.Options{K: 4, Refit: true, Metrics: selection.Regression(regressionCols, "rmse", "mae")}
		compared(b, operators.FromSlice(b, observations(20)), shrunkGrid, o)
		return nil
	})
	graph, err := engine.BuildGraph(job, struct{}{})
	require.NoError(t, err)
	count := map[string]int{}
	for _, n := range graph.Nodes {
		count[n.Op]++
	}
	require.Equal(t, 1, count["FromSlice"])
	require.Equal(t, 1, count["Divide"])
	require.Equal(t, 2*4, count["PickPart"])
	require.Equal(t, 3*4, count["Regression"], "metrics of one evaluation must be computed together")
}

func TestGridHasEveryCombination(t *testing.T) {
	grid := selection.Grid(shrunk{7}, func(s shrunk) model.Stage { return s },
		selection.Over("a", func(s *shrunk, v int) { s.Factor = float64(v) }, 1, 2),
		selection.Over("b", func(s *shrunk, v string) { s.Factor += float64(len(v)) / 10 }, "x", "yy", "zzz"))
	require.Len(t, grid, 6)
	require.Equal(t, selection.Candidate{Name: "a=1 b=yy", Stage: shrunk{1.2}}, grid[1])
	require.Equal(t, selection.Candidate{Name: "a=2 b=x", Stage: shrunk{2.1}}, grid[3])
	require.Equal(t, []selection.Candidate{{Name: "", Stage: shrunk{7}}}, selection.Grid(shrunk{7}, func(s shrunk) model.Stage { return s }))
	require.Empty(t, selection.Grid(shrunk{7}, func(s shrunk) model.Stage { return s }, selection.Over("a", func(*shrunk, int) {})))
}

func TestComparisonRefusesWhatItCannotCompare(t *testing.T) {
	good := selection.Options{K: 2, Metrics: selection.Regression(regressionCols, "mse")}
	with := func(change func(o *selection.Options)) selection.Options {
		o := good
		change(&o)
		return o
	}
	custom := func(name string, f func(*engine.Dataset) *engine.Dataset) func(o *selection.Options) {
		return func(o *selection.Options) {
			o.Metrics = []selection.Metric{{Name: name, Evaluation: &selection.Evaluation{Evaluate: f}}}
		}
	}
	for text, c := range map[string]struct {
		candidates []selection.Candidate
		options    selection.Options
	}{
		"there are no candidates":               {nil, good},
		"candidate 0 has no stage":              {[]selection.Candidate{{Name: "x"}}, good},
		"candidate 0 has no name":               {[]selection.Candidate{{Stage: shrunk{1}}}, good},
		`two candidates are named "factor=0.5"`: {append(shrunkGrid[:1:1], shrunkGrid[0]), good},
		"Metrics are empty":                     {shrunkGrid, selection.Options{}},
		"has no such metric; it has r2, ":       {shrunkGrid, with(func(o *selection.Options) { o.Metrics = selection.Regression(regressionCols, "auc") })},
		`metric "mse" is given twice`:           {shrunkGrid, with(func(o *selection.Options) { o.Metrics = append(o.Metrics[:1:1], o.Metrics[0]) })},
		"a metric has no name":                  {shrunkGrid, with(custom("", func(d *engine.Dataset) *engine.Dataset { return d }))},
		"has no function that evaluates":        {shrunkGrid, with(custom("x", nil))},
		`no column of that name`:                {shrunkGrid, with(custom("x", func(d *engine.Dataset) *engine.Dataset { return d }))},
		"each must give one":                    {shrunkGrid, with(custom("y", func(d *engine.Dataset) *engine.Dataset { return d }))},
		"K is 1":                                {shrunkGrid, with(func(o *selection.Options) { o.K = 1 })},
		"AtOnce is -1":                          {shrunkGrid, with(func(o *selection.Options) { o.AtOnce = -1 })},
		"Folds are given: K, Stratify and Seed": {shrunkGrid, with(func(o *selection.Options) { o.Folds = []selection.Fold{{}} })},
		"fold 0 has no datasets of this job":    {shrunkGrid, with(func(o *selection.Options) { o.Folds, o.K = []selection.Fold{{}}, 0 })},
		"Folds are given, but there is none":    {shrunkGrid, with(func(o *selection.Options) { o.Folds, o.K = []selection.Fold{}, 0 })},
		"3 rows cannot be divided into 4 parts": {shrunkGrid, with(func(o *selection.Options) { o.K = 4 })},
		`K is -1`:                               {kmeansGrid(-1), good},
		"every mean of the first metric is NaN": {shrunkGrid[:1], with(func(o *selection.Options) {
			o.K, o.Refit, o.Metrics = 3, true, selection.Regression(regressionCols, "r2")
		})},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			compared(b, operators.FromSlice(b, observations(3)), c.candidates, c.options)
		}, text)
	}
}

// TestMetricsAreThere requires that every metric is a column of the report of its evaluation in
// package evaluate.
func TestMetricsAreThere(t *testing.T) {
	type row struct {
		Label, Score float64
		Query        int64
		X            []float64 `column:"x,dim=1"`
	}
	list := [][]selection.Metric{
		selection.Binary(evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "score"}, "auc", "pr_auc", "ks", "accuracy", "precision", "recall", "specificity", "f1", "mcc", "log_loss", "brier"),
		selection.Multiclass(evaluate.MulticlassOptions{LabelCol: "label", PredictionCol: "score"}, "accuracy", "precision_macro", "recall_macro", "f1_macro", "precision_micro", "recall_micro", "f1_micro", "precision_weighted", "recall_weighted", "f1_weighted", "kappa", "top_k_accuracy", "log_loss"),
		selection.Regression(evaluate.RegressionOptions{LabelCol: "label", PredictionCol: "score"}, "r2", "explained_variance", "d2_absolute", "d2_pinball", "d2_deviance", "mse", "rmse", "mae", "median_ae", "max_error", "mape", "pinball", "deviance"),
		selection.Clustering(evaluate.ClusteringOptions{ClusterCol: "label", VectorCol: "x"}, "silhouette", "exact_silhouette", "calinski_harabasz", "ari", "nmi", "purity", "homogeneity", "completeness", "v_measure", "davies_bouldin", "within"),
		selection.Ranking(evaluate.RankingOptions{QueryCol: "query", LabelCol: "label", ScoreCol: "score"}, "ndcg", "map", "mrr", "precision", "recall"),
	}
	_, err := engine.BuildGraph(engine.Define("metrics", func(b *engine.Builder, _ struct{}) error {
		d := operators.FromSlice(b, []row{{1, 0.5, 1, []float64{1}}})
		for i, metrics := range list {
			report := metrics[0].Evaluation.Evaluate(d)
			for _, m := range metrics {
				require.NotNil(t, m.Evaluation, m.Name)
				require.Len(t, arrowrows.Arrow(report.Schema()).FieldIndices(m.Name), 1, m.Name)
			}
			engine.Collect(report, fmt.Sprint(i))
		}
		return nil
	}), struct{}{})
	require.NoError(t, err)
	exact := selection.Clustering(evaluate.ClusteringOptions{ClusterCol: "label", VectorCol: "x"}, "exact_silhouette")
	median := selection.Regression(evaluate.RegressionOptions{LabelCol: "label", PredictionCol: "score", NoMedian: true}, "median_ae")
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, []row{{1, 0.5, 1, []float64{1}}, {0, 0.5, 1, []float64{3}}, {0, 0.5, 1, []float64{4}}})
		engine.Collect(exact[0].Evaluation.Evaluate(d), "exact")
		engine.Collect(median[0].Evaluation.Evaluate(d), "median")
	})
	report, err := evaluate.ReportOf[evaluate.ClusteringReport](r, "exact")
	require.NoError(t, err)
	require.InDelta(t, (0+0.5+2.0/3)/3, report.ExactSilhouette, 1e-15)
	errors, err := evaluate.ReportOf[evaluate.RegressionReport](r, "median")
	require.NoError(t, err)
	require.Equal(t, 0.5, errors.MedianAE)
	require.True(t, list[0][9].LessIsBetter && list[2][5].LessIsBetter && !list[0][0].LessIsBetter)
}

// The example compares three candidates and trains the best candidate on all rows.
func Example() {
	job := engine.Define("choose", func(b *engine.Builder, _ struct{}) error {
		found := selection.CrossValidate(operators.FromSlice(b, observations(60)), shrunkGrid, selection.Options{
			K: 4, Seed: 1, Refit: true, Metrics: selection.Regression(regressionCols, "mae", "rmse"),
		})
		engine.Collect(found.Scores, "scores")
		engine.Collect(found.Best, "model")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	table, err := selection.TableOf(result, "scores")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range table.Scores {
		if s.Fold == 0 && s.Metric == "mae" {
			fmt.Printf("%s: mean %.3f, rank %d\n", s.Candidate, s.Mean, s.Rank)
		}
	}
	fmt.Println("best:", table.Best().Candidate)
	// Output:
	// factor=0.5: mean 1.533, rank 2
	// factor=1: mean 0.784, rank 1
	// factor=1.5: mean 1.589, rank 3
	// best: factor=1
}
