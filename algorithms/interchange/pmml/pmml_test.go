package pmml

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/exporttest"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// cases has lists of stages, and the columns whose values are compared. The models trained from
// them together use everything that can be exported.
var cases = map[string]struct {
	stages  []model.Stage
	columns []string
}{
	"logistic-text": {[]model.Stage{
		prepare.Imputer{Columns: []string{"age", "fare"}, Strategy: prepare.Mean},
		prepare.StandardScaler{Columns: []string{"age", "fare"}},
		prepare.Imputer{Columns: []string{"sex"}, Strategy: prepare.Mode},
		prepare.StringIndexer{Columns: []string{"sex"}, Outputs: []string{"number"}, Unknown: prepare.Keep},
		prepare.OneHotEncoder{Columns: []string{"sex", "deck", "number"}, Outputs: []string{"is_sex", "is_deck", "is_number"}, Unknown: prepare.Zeros, DropLast: true},
		prepare.VectorAssembler{Columns: []string{"age", "fare", "is_sex", "is_deck", "is_number", "alone"}, Form: prepare.Dense},
		logistic.Params{VectorCol: "features", LabelCol: "class", L2: 0.01},
	}, []string{"prediction", "probability", "is_sex", "is_deck", "number"}},
	"logistic-bool":    {exporttest.Features(logistic.Params{VectorCol: "features", LabelCol: "lived", L2: 0.01}), []string{"prediction", "probability"}},
	"logistic-two":     {[]model.Stage{logistic.Params{FeatureCols: []string{"fare", "deck"}, LabelCol: "lived", L2: 0.01, Family: logistic.Multinomial}}, []string{"prediction", "probability"}},
	"logistic-int":     {exporttest.Features(logistic.Params{VectorCol: "features", LabelCol: "rank", L2: 0.01}), []string{"prediction", "probability"}},
	"logistic-offset":  {[]model.Stage{logistic.Params{FeatureCols: []string{"fare", "deck"}, LabelCol: "lived", L2: 0.01, OffsetCol: "degree"}}, []string{"prediction", "probability"}},
	"linear":           {exporttest.Features(linear.Params{VectorCol: "features", LabelCol: "price"}), []string{"prediction"}},
	"linear-offset":    {[]model.Stage{linear.Params{FeatureCols: []string{"fare", "alone", "deck"}, LabelCol: "price", OffsetCol: "degree"}}, []string{"prediction"}},
	"kmeans":           {exporttest.Features(kmeans.Params{VectorCol: "features", K: 4}), []string{"cluster", "distance"}},
	"kmeans-named":     {exporttest.Features(kmeans.Params{VectorCol: "features", K: 2, PredictionCol: "group", DistanceCol: "far"}), []string{"group", "far"}},
	"min-max-scaler":   {[]model.Stage{prepare.MinMaxScaler{Columns: []string{"age", "fare"}, Min: -1, Max: 2, Clip: true}}, []string{"age", "fare"}},
	"max-abs-scaler":   {[]model.Stage{prepare.MaxAbsScaler{Columns: []string{"age"}, Outputs: []string{"a"}}}, []string{"a"}},
	"robust-scaler":    {exporttest.Features(prepare.RobustScaler{Columns: []string{"features"}, Outputs: []string{"robust"}}), []string{"robust"}},
	"imputer":          {[]model.Stage{prepare.Imputer{Columns: []string{"age", "sex", "alone", "deck"}, Strategy: prepare.Constant, Values: []string{"30", " unknown\n", "true", "7"}}}, []string{"age", "sex", "deck"}},
	"indexer-keep":     {[]model.Stage{prepare.StringIndexer{Columns: []string{"sex", "deck", "alone", "fare"}, Unknown: prepare.Keep}}, []string{"sex", "deck", "alone", "fare"}},
	"indexer-refuse":   {[]model.Stage{prepare.StringIndexer{Columns: []string{"deck"}}}, []string{"deck"}},
	"one-hot-shares":   {[]model.Stage{prepare.OneHotEncoder{Columns: []string{"sex", "deck"}, Unknown: prepare.Shares, DropLast: true}}, []string{"sex", "deck"}},
	"one-hot-missing":  {[]model.Stage{prepare.OneHotEncoder{Columns: []string{"deck"}, Outputs: []string{"is"}, Unknown: prepare.Shares, RefuseMissing: true}}, []string{"is"}},
	"one-hot-keep":     {[]model.Stage{prepare.OneHotEncoder{Columns: []string{"sex", "alone"}, Unknown: prepare.Keep}}, []string{"sex", "alone"}},
	"one-hot-refuse":   {[]model.Stage{prepare.OneHotEncoder{Columns: []string{"deck"}, Outputs: []string{"is"}}}, []string{"is"}},
	"bucketizer":       {[]model.Stage{prepare.Bucketizer{Columns: []string{"age", "fare"}, Bounds: [][]float64{{10, 20, 40}}, Unknown: prepare.Keep}}, []string{"age", "fare"}},
	"quantiles":        {[]model.Stage{prepare.QuantileDiscretizer{Columns: []string{"fare"}, Outputs: []string{"fares"}, Buckets: 4}}, []string{"fares"}},
	"normalizer-l1":    {exporttest.Features(prepare.Normalizer{Columns: []string{"features"}, Outputs: []string{"n"}, Norm: prepare.L1}), []string{"n"}},
	"normalizer-l2":    {exporttest.Features(prepare.Normalizer{Columns: []string{"features"}, Outputs: []string{"n"}}), []string{"n"}},
	"normalizer-max":   {exporttest.Features(prepare.Normalizer{Columns: []string{"features"}, Outputs: []string{"n"}, Norm: prepare.Max}), []string{"n"}},
	"pca":              {exporttest.Features(prepare.PCA{Columns: []string{"features"}, K: 3, Whiten: true}), []string{"components"}},
	"polynomial":       {exporttest.Features(prepare.PolynomialFeatures{Columns: []string{"features"}, Output: "products", Degree: 3, Bias: true}), []string{"products"}},
	"polynomial-cross": {exporttest.Features(prepare.PolynomialFeatures{Columns: []string{"features"}, Output: "products", Degree: 3, InteractionOnly: true}), []string{"products"}},
}

func applied() []map[string]any { return exporttest.Rows(1e3) }

// fieldValues returns the values of the data fields for a row.
func fieldValues(row map[string]any) map[string]value {
	fields := map[string]value{}
	for name, v := range row {
		switch v := v.(type) {
		case int64:
			fields[name] = float64(v)
		case bool:
			fields[name] = 0.0
			if v {
				fields[name] = 1.0
			}
		case []float64:
			for j, c := range v {
				fields[fmt.Sprintf("%s[%d]", name, j)] = c
			}
		default:
			fields[name] = v
		}
	}
	return fields
}

// pick returns the value of a column. If a stage replaced an input with this name, it returns
// the value of the stage's field.
func pick(fields map[string]value, name string) (value, bool) {
	if v, ok := fields[name+"_2"]; ok {
		return v, true
	}
	v, ok := fields[name]
	return v, ok
}

// requireSame requires that a document gives the same results as the model. For rows that the
// model refuses, all values must be missing.
func requireSame(t *testing.T, m model.Model, root *element, columns []string, rows []map[string]any) {
	s, err := pipeline.NewScorer(m)
	require.NoError(t, err)
	row := s.NewRow()
	for i := range rows {
		for k, in := range m.Inputs() {
			exporttest.Set(row.Input(k), rows[i][in.Column])
		}
		refused := s.Score(row)
		fields := evaluate(t, root, fieldValues(rows[i]))
		for _, column := range columns {
			c := row.Cell(column)
			if refused != nil {
				for name, v := range fields {
					if name == column || strings.HasPrefix(name, column+"_2") || strings.HasPrefix(name, column+"[") && rows[i][column] == nil {
						require.True(t, v == nil || v == rows[i][column] || v == fieldValues(rows[i])[column], "row %d: %s must be missing or an input, because the model refuses the row: %v", i, name, refused)
					}
				}
				continue
			}
			switch {
			case c.Kind == model.DenseCell:
				for j, want := range c.Values {
					got, ok := pick(fields, fmt.Sprintf("%s[%d]", column, j))
					if !ok { // products with one factor have no field; they are the components
						require.Equal(t, "products", column)
						require.Less(t, j, 5)
						continue
					}
					near(t, want, got, "row %d: %s[%d]", i, column, j)
				}
			case c.Kind == model.SparseCell:
				dense := make([]float64, c.Size)
				for k, j := range c.Indices {
					dense[j] = c.Values[k]
				}
				for j, want := range dense {
					got, ok := pick(fields, fmt.Sprintf("%s[%d]", column, j))
					require.True(t, ok, column)
					near(t, want, got, "row %d: %s[%d]", i, column, j)
				}
			default:
				got, ok := pick(fields, column)
				require.True(t, ok, column)
				scalar(t, c, got, "row %d: %s", i, column)
			}
		}
	}
}

func near(t *testing.T, want float64, got value, format string, a ...any) {
	if math.IsNaN(want) {
		require.Nil(t, got, fmt.Sprintf(format, a...))
		return
	}
	require.NotNil(t, got, fmt.Sprintf(format, a...))
	require.InDelta(t, want, got, 1e-12*(1+math.Abs(want)), fmt.Sprintf(format, a...))
}

// scalar compares a cell with a value, which is text if it is a class.
func scalar(t *testing.T, c *model.Cell, got value, format string, a ...any) {
	if text, ok := got.(string); ok {
		category, _ := c.Category()
		require.Equal(t, string(category), text, fmt.Sprintf(format, a...))
		return
	}
	if c.Kind == model.NullCell {
		require.Nil(t, got, fmt.Sprintf(format, a...))
		return
	}
	want, ok := c.Number()
	require.True(t, ok)
	near(t, want, got, format, a...)
}

// TestExport requires that each document gives the same results as its model, and that the
// imported model has the same model file.
func TestExport(t *testing.T) {
	all := exporttest.Lone(t)
	for name, c := range cases {
		all[name] = exporttest.Train(t, c.stages...)
	}
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			columns := cases[name].columns
			if columns == nil {
				columns = []string{"prediction"}
			}
			data, err := Export(m)
			require.NoError(t, err)
			root, err := parse(data)
			require.NoError(t, err)
			requireSame(t, m, root, columns, applied())
			back, err := Import(data)
			require.NoError(t, err)
			want, err := m.Encode()
			require.NoError(t, err)
			got, err := back.Encode()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			again, err := Export(back)
			require.NoError(t, err)
			require.Equal(t, string(data), string(again))
			writeRun(t, name, root, data)
		})
	}
}

// writeRun writes a document, rows, and the numbers that the document gives for them, to the
// directory in the environment variable RUNS, for check.py.
func writeRun(t *testing.T, name string, root *element, data []byte) {
	dir := os.Getenv("RUNS")
	model := &root.children[len(root.children)-1]
	if dir == "" || model.child("Output") == nil {
		return
	}
	type row struct {
		In  map[string]value `json:"in"`
		Out map[string]value `json:"out"`
	}
	var rows []row
	for _, cells := range applied() {
		one := row{fieldValues(cells), map[string]value{}}
		fields := evaluate(t, root, one.In)
		for _, o := range model.child("Output").all("OutputField") {
			one.Out[o.attr("name")] = fields[o.attr("name")]
		}
		rows = append(rows, one)
	}
	text, err := json.Marshal(rows)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pmml"), data, 0o644))
}
