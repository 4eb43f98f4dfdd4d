package builtin

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// These are the names of the columns that scored adds. Files do not have columns with such
// names.
const (
	positiveCol = "superstep positive"
	scoreCol    = "superstep score"
)

// scored adds the columns that measures of scores need. For two classes, the columns are
// whether a row belongs to the second class, and the score that the model gives the second
// class. For more classes, the columns are the constant true, and the probability that the
// model gives the true class of the row. The log-loss of these two columns is the multi-class
// log-loss; other measures of them have no meaning. With two classes, an unknown label is an
// error. With more classes, an unknown label has no probability. The operator learns the
// classes from the model when the job runs.
func scored(predicted, trained *engine.Dataset, label string) *engine.Dataset {
	return model.Apply("superstep", predicted, trained, model.Application{
		Op: "Score", Attrs: []engine.Attr{{Key: "label", Value: label}},
		Outputs: []engine.Column{{Name: positiveCol, Type: "bool", Nullable: true}, {Name: scoreCol, Type: "float64", Nullable: true}},
		Open:    func(file []byte, schema engine.Schema) (model.Compute, error) { return openScores(file, schema, label) },
	})
}

// openScores returns the function that computes the columns of scored.
func openScores(file []byte, schema engine.Schema, label string) (model.Compute, error) {
	m, err := pipeline.DecodeAny(file)
	if err != nil {
		return nil, err
	}
	adds := predictionOf(lastOf(m))
	classes := adds.Classes()
	at := map[string]int{}
	for i, c := range classes {
		at[c] = i
	}
	layout := model.NewLayout(names(arrowrows.Arrow(schema))...)
	truth, err := layout.Find(label)
	if err != nil {
		return nil, err
	}
	probabilities, err := layout.Find(adds.Scores)
	if err != nil {
		return nil, err
	}
	reader, err := model.NewReader(schema, layout)
	if err != nil {
		return nil, err
	}
	row := layout.NewRow()
	return func(c *engine.Context, first int, in engine.Batch) ([]columnar.Values, error) {
		positive, score := array.NewBooleanBuilder(c.Allocator), array.NewFloat64Builder(c.Allocator)
		defer positive.Release()
		defer score.Release()
		reader.Reset(in)
		for i := range in.Len() {
			reader.Read(i, row)
			name, ok := row[truth].Category()
			given := row[probabilities].Values
			if row[probabilities].Kind == model.NullCell {
				given = nil // discard the value that was decoded from the previous row
			}
			class, known := at[string(name)]
			switch {
			case !ok:
				positive.AppendNull()
				score.AppendNull()
			case len(given) == 0 || len(classes) > 2 && len(given) != len(classes):
				positive.Append(false)
				score.AppendNull()
			case len(classes) == 2 && !known: // it is not known to which of the two classes the row belongs
				return nil, &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("column %q has the label %q, and the model knows only %q and %q: leave such rows out, or name the column of the model's labels", label, name, classes[0], classes[1])}
			case len(classes) == 2:
				positive.Append(class == 1)
				score.Append(given[len(given)-1])
			case known:
				positive.Append(true)
				score.Append(given[class])
			default: // the model has no probability for a class without training rows
				positive.Append(true)
				score.Append(0)
			}
		}
		return arrowrows.Values([]arrow.Array{positive.NewArray(), score.NewArray()}), nil
	}, nil
}

// binary, multiclass, regression and clustering add evaluations of rows. Rows without a label,
// a prediction or a weight are left out and counted, whether the predictions come from files or
// from a model of this command line.
func binary(rows *engine.Dataset, of model.Prediction, weight string) *engine.Dataset {
	return evaluate.Binary(rows, evaluate.BinaryOptions{
		LabelCol: positiveCol, ScoreCol: scoreCol, WeightCol: weight, Margins: of.Margins, Threshold: of.Threshold, Skip: true,
	})
}

func multiclass(rows *engine.Dataset, label, prediction, weight string) *engine.Dataset {
	return evaluate.Multiclass(rows, evaluate.MulticlassOptions{LabelCol: label, PredictionCol: prediction, WeightCol: weight, Skip: true})
}

func regression(rows *engine.Dataset, label, prediction, weight string) *engine.Dataset {
	return evaluate.Regression(rows, evaluate.RegressionOptions{LabelCol: label, PredictionCol: prediction, WeightCol: weight, Skip: true})
}

func clustering(rows *engine.Dataset, cluster, vector, label, weight string) *engine.Dataset {
	return evaluate.Clustering(rows, evaluate.ClusteringOptions{ClusterCol: cluster, VectorCol: vector, LabelCol: label, WeightCol: weight, Skip: true})
}

// found has the evaluations of a run.
type found struct {
	binary     *evaluate.BinaryReport
	multiclass *evaluate.MulticlassReport
	shown      fmt.Stringer // the report to show, or nil; for two classes it is the report on scores
	weight     float64      // total weight of the rows of the shown report
}

// findings reads the evaluations from the results of a run. classes is the number of classes of
// the model, or 0 if it is unknown.
func findings(r *engine.Result, classes int) (*found, error) {
	f := &found{}
	for _, name := range r.Names() {
		schema, err := r.Schema(name)
		if err != nil || name != testResult && name != scoreResult {
			continue
		}
		switch {
		case arrowrows.Arrow(schema).HasField("auc"):
			f.binary, err = evaluate.ReportOf[evaluate.BinaryReport](r, name)
		case arrowrows.Arrow(schema).HasField("f1_macro"):
			f.multiclass, err = evaluate.ReportOf[evaluate.MulticlassReport](r, name)
		case arrowrows.Arrow(schema).HasField("rmse"):
			err = show(f, r, name, func(m *evaluate.RegressionReport) float64 { return m.Weight })
		case arrowrows.Arrow(schema).HasField("ndcg"):
			err = show(f, r, name, func(m *evaluate.RankingReport) float64 { return m.Weight })
		case arrowrows.Arrow(schema).HasField("silhouette"):
			err = show(f, r, name, func(m *evaluate.ClusteringReport) float64 { return m.Weight })
		}
		if err != nil {
			return nil, err
		}
	}
	if f.binary != nil && classes != 0 && classes != 2 {
		if f.multiclass != nil && f.binary.Weight > 0 {
			f.multiclass.LogLoss = f.binary.LogLoss
		}
		f.binary = nil
	}
	switch {
	case f.binary != nil:
		f.shown, f.weight = f.binary, f.binary.Weight
	case f.multiclass != nil:
		f.shown, f.weight = f.multiclass, f.multiclass.Weight
	}
	return f, nil
}

// show reads the report with the given name from r and makes it the report to show.
func show[R evaluate.Report](f *found, r *engine.Result, name string, weight func(*R) float64) error {
	report, err := evaluate.ReportOf[R](r, name)
	if err == nil {
		f.shown, f.weight = any(report).(fmt.Stringer), weight(report)
	}
	return err
}

func (f *found) text() string {
	if f.shown == nil {
		return ""
	}
	return withoutNaN(f.shown.String())
}

// withoutNaN removes the lines of measures whose value is NaN: measures that were not
// requested, or that are undefined for the rows.
func withoutNaN(report string) string {
	var b strings.Builder
	for line := range strings.Lines(report) {
		if words := strings.Fields(line); len(words) != 2 || words[1] != "NaN" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// point is a point in a picture of clusters. It represents one row.
type point struct {
	X, Y    float64
	Cluster int64
}

// maxPoints bounds the number of rows in a picture.
const maxPoints = 4096

// collectPoints collects rows of every shard for a picture of clusters, with their first two
// features and the cluster in the column cluster.
func collectPoints(b *engine.Builder, clustered *engine.Dataset, cluster string, p *columnPlan) error {
	if clustered.Poisoned() {
		return nil
	}
	most := max(1, maxPoints/b.Shards())
	rows := operators.Select(clustered, p.vector, cluster)
	rows = operators.Rename(operators.Rename(rows, p.vector, "superstep x"), cluster, "superstep c")
	if field, _ := arrowrows.Arrow(rows.Schema()).FieldsByName("superstep x"); field[0].Type.ID() == arrow.STRUCT {
		engine.Collect(operators.MapPartition(rows, drawn[sparseRow](most)), pointsResult)
	} else {
		engine.Collect(operators.MapPartition(rows, drawn[denseRow](most)), pointsResult)
	}
	return nil
}

// drawn returns a function that emits the points of the first rows of a shard, at most most of
// them. It skips rows that cannot be drawn.
func drawn[R interface{ point() (point, bool) }](most int) func(*operators.Shard[R], func(point)) error {
	return func(s *operators.Shard[R], emit func(point)) error {
		n := 0
		for r := range s.Rows() {
			if n == most {
				break
			}
			if pt, ok := r.point(); ok {
				emit(pt)
				n++
			}
		}
		return nil
	}
}

// denseRow and sparseRow are rows with a dense or sparse vector and the cluster of the row.
type denseRow struct {
	X []float64 `column:"superstep x"`
	C *int64    `column:"superstep c"`
}

type sparseRow struct {
	X operators.SparseVector `column:"superstep x"`
	C *int64                 `column:"superstep c"`
}

// point returns the point that represents the row in a picture. It returns false if the row
// cannot be drawn.
func (r denseRow) point() (point, bool) {
	if r.C == nil || len(r.X) == 0 {
		return point{}, false
	}
	return placed(append(append([]float64(nil), r.X[:min(2, len(r.X))]...), 0), *r.C)
}

func (r sparseRow) point() (point, bool) {
	if r.C == nil {
		return point{}, false
	}
	var xy [2]float64
	for k, j := range r.X.Indices {
		if j < 2 {
			xy[j] = r.X.Values[k]
		}
	}
	return placed(xy[:], *r.C)
}

func placed(xy []float64, cluster int64) (point, bool) {
	return point{xy[0], xy[1], cluster}, math.Abs(xy[0]) < 1e300 && math.Abs(xy[1]) < 1e300
}
