package onnx

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/exporttest"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
)

var rewrite = flag.Bool("rewrite", false, "write the files in testdata anew")

// feed returns the inputs of the graph of m for the given rows.
func feed(t testing.TB, m model.Model, rows []map[string]any) map[string]array {
	made := map[string]array{}
	for _, in := range m.Inputs() {
		a := array{dims: []int{len(rows), 1}}
		a.isText = in.Type == "utf8"
		for _, row := range rows {
			switch v := row[in.Column].(type) {
			case nil:
				if a.isText {
					a.text = append(a.text, "")
				} else {
					a.num = append(a.num, math.NaN())
				}
			case string:
				a.text = append(a.text, v)
			case float64:
				a.num = append(a.num, v)
			case int64:
				a.num = append(a.num, float64(v))
			case bool:
				a.num = append(a.num, truth(v))
			case []float64:
				a.dims[1] = len(v)
				a.num = append(a.num, v...)
			default:
				require.Fail(t, fmt.Sprintf("no value for column %q", in.Column))
			}
		}
		made[in.Column] = a
	}
	return made
}

// values returns the cell of a column in the form of a graph's output, or nil if the model
// refused the row.
func values(c *model.Cell) []any {
	switch c.Kind {
	case model.NullCell:
		return nil
	case model.TextCell:
		return []any{c.Text}
	case model.DenseCell, model.SparseCell:
		all := make([]any, max(len(c.Values), c.Size))
		for i := range all {
			all[i] = 0.0
		}
		for i, v := range c.Values {
			if c.Kind == model.SparseCell {
				all[c.Indices[i]] = v
			} else {
				all[i] = v
			}
		}
		return all
	}
	v, _ := c.Number()
	return []any{v}
}

// requireSame requires that a graph gives the same results as the model, within a relative
// tolerance. For rows that the model refuses, numbers must be NaN.
func requireSame(t testing.TB, m model.Model, f *file, rows []map[string]any, tolerance float64) {
	made := evaluate(t, f, feed(t, m, rows))
	s, err := pipeline.NewScorer(m)
	require.NoError(t, err)
	row := s.NewRow()
	require.NotEmpty(t, made)
	for i := range rows {
		for k, in := range m.Inputs() {
			exporttest.Set(row.Input(k), rows[i][in.Column])
		}
		err := s.Score(row)
		for name, a := range made {
			d := a.dims[1]
			if err != nil {
				if !a.isText && a.element != typeInt64 && d > 1 {
					require.True(t, math.IsNaN(a.num[i*d]), "row %d: %s must be NaN, because the model refuses the row: %v", i, name, err)
				}
				continue
			}
			column := name
			if row.Cell(column) == nil {
				column = name[:len(name)-2] // the column replaced an input
			}
			require.NotNil(t, row.Cell(column), "the model must add the column %q", name)
			want := values(row.Cell(column))
			for j, v := range want {
				if a.isText {
					require.Equal(t, v, a.text[i*d+j], "row %d: %s", i, name)
				} else if v := v.(float64); math.IsNaN(v) {
					require.True(t, math.IsNaN(a.num[i*d+j]), "row %d: %s", i, name)
				} else {
					require.InDelta(t, v, a.num[i*d+j], tolerance*(1+math.Abs(v)), "row %d: %s[%d]", i, name, j)
				}
			}
		}
	}
}
