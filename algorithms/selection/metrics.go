package selection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/engine"
)

// Metric is a measure of the quality of predictions.
type Metric struct {
	Name string // name of the metric and of its column in the result of Evaluation
	// LessIsBetter is true if lower values are better, and false if higher values are better.
	LessIsBetter bool
	Evaluation   *Evaluation
}

// Evaluation computes metrics. Metrics with the same pointer to an Evaluation are computed
// together.
type Evaluation struct {
	// Evaluate takes rows to which a model has added its columns. It returns a dataset of one
	// row with a float64 column for each metric, as the functions of package evaluate do.
	Evaluate func(applied *engine.Dataset) *engine.Dataset
}

// metricNames has the metrics of each kind of evaluation of package evaluate: first the metrics
// for which higher values are better, then the metrics for which lower values are better.
var metricNames = map[string][2][]string{
	"binary":     {{"auc", "pr_auc", "ks", "accuracy", "precision", "recall", "specificity", "f1", "mcc"}, {"log_loss", "brier"}},
	"multiclass": {{"accuracy", "precision_macro", "recall_macro", "f1_macro", "precision_micro", "recall_micro", "f1_micro", "precision_weighted", "recall_weighted", "f1_weighted", "kappa", "top_k_accuracy"}, {"log_loss"}},
	"regression": {{"r2", "explained_variance", "d2_absolute", "d2_pinball", "d2_deviance"}, {"mse", "rmse", "mae", "median_ae", "max_error", "mape", "pinball", "deviance"}},
	"clustering": {{"silhouette", "exact_silhouette", "calinski_harabasz", "ari", "nmi", "purity", "homogeneity", "completeness", "v_measure"}, {"davies_bouldin", "within"}},
	"ranking":    {{"ndcg", "map", "mrr", "precision", "recall"}, nil},
}

// metricsOf returns the named metrics of a kind of evaluation. An unknown metric gets no
// Evaluation and an error message as its name; CrossValidate reports it.
func metricsOf(kind string, names []string, evaluate func(*engine.Dataset) *engine.Dataset) []Metric {
	known := metricNames[kind]
	shared := &Evaluation{Evaluate: evaluate}
	var list []Metric
	for _, name := range names {
		m := Metric{Name: name, Evaluation: shared}
		switch {
		case slices.Contains(known[1], name):
			m.LessIsBetter = true
		case !slices.Contains(known[0], name):
			m.Name = fmt.Sprintf("%s: a %s evaluation has no such metric; it has %s", name, kind, strings.Join(append(slices.Clone(known[0]), known[1]...), ", "))
			m.Evaluation = nil
		}
		list = append(list, m)
	}
	return list
}

// Binary returns the named metrics of scores of two classes, such as "auc" and "log_loss".
func Binary(o evaluate.BinaryOptions, names ...string) []Metric {
	return metricsOf("binary", names, func(d *engine.Dataset) *engine.Dataset { return evaluate.Binary(d, o) })
}

// Multiclass returns the named metrics of predicted classes, such as "accuracy".
func Multiclass(o evaluate.MulticlassOptions, names ...string) []Metric {
	return metricsOf("multiclass", names, func(d *engine.Dataset) *engine.Dataset { return evaluate.Multiclass(d, o) })
}

// Regression returns the named metrics of predicted numbers, such as "rmse" and "r2". Rows are
// sorted only if a metric needs it.
func Regression(o evaluate.RegressionOptions, names ...string) []Metric {
	o.NoMedian = !slices.ContainsFunc(names, func(name string) bool {
		return name == "median_ae" || name == "d2_absolute" || name == "d2_pinball"
	})
	return metricsOf("regression", names, func(d *engine.Dataset) *engine.Dataset { return evaluate.Regression(d, o) })
}

// Clustering returns the named metrics of clusters, such as "silhouette". The option Exact is
// set if "exact_silhouette" is named, and only then.
func Clustering(o evaluate.ClusteringOptions, names ...string) []Metric {
	o.Exact = slices.Contains(names, "exact_silhouette")
	return metricsOf("clustering", names, func(d *engine.Dataset) *engine.Dataset { return evaluate.Clustering(d, o) })
}

// Ranking returns the named metrics of ranked lists, such as "ndcg".
func Ranking(o evaluate.RankingOptions, names ...string) []Metric {
	return metricsOf("ranking", names, func(d *engine.Dataset) *engine.Dataset { return evaluate.Ranking(d, o) })
}

// check returns an error if the metric is not valid.
func (m Metric) check() error {
	switch {
	case m.Evaluation == nil:
		return fmt.Errorf("metric %s", m.Name)
	case m.Name == "":
		return fmt.Errorf("a metric has no name")
	case m.Evaluation.Evaluate == nil:
		return fmt.Errorf("metric %q has no function that evaluates", m.Name)
	}
	return nil
}

// columnOf returns the index of the metric's column in the result of its evaluation. row is the
// schema of that result.
func (m Metric) columnOf(row *arrow.Schema) (int, error) {
	at := row.FieldIndices(m.Name)
	if len(at) != 1 || row.Field(at[0]).Type.ID() != arrow.FLOAT64 {
		return 0, fmt.Errorf("metric %q: the evaluation gives no column of that name and of type float64", m.Name)
	}
	return at[0], nil
}
