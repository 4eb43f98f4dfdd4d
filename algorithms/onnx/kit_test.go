package onnx

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

var rewrite = flag.Bool("rewrite", false, "write the files in testdata anew")

// passenger is a row of the trainings here.
type passenger struct {
	Age    *float64 `column:"age"`
	Fare   float64  `column:"fare"`
	Sex    *string  `column:"sex"`
	Deck   int64    `column:"deck"`
	Alone  bool     `column:"alone"`
	Lived  bool     `column:"lived"`
	Class  string   `column:"class"`
	Rank   int64    `column:"rank"`
	Price  float64  `column:"price"`
	Degree float64  `column:"degree"`
}

// passengers returns rows with missing values, made of a fixed sequence.
func passengers(n int) []passenger {
	state := uint64(7)
	draw := func() float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return float64(state>>11) / (1 << 53)
	}
	sexes, classes := []string{"male", "female", "unsaid"}, []string{"first", "second", "third"}
	rows := make([]passenger, n)
	for i := range rows {
		r := &rows[i]
		age, sex := 1+70*draw(), int(2.3*draw())
		r.Fare, r.Deck, r.Alone = 5+200*draw()*draw(), int64(4*draw()), draw() < 0.4
		if draw() < 0.8 {
			r.Age = &age
		}
		if draw() < 0.9 {
			r.Sex = &sexes[sex]
		}
		chance := 0.5 + 0.3*float64(sex) - age/200
		if r.Alone {
			chance -= 0.2
		}
		r.Lived = draw() < chance
		kind := min(2, int(3*draw()*(1-r.Fare/400)))
		r.Class, r.Rank, r.Degree = classes[kind], int64(kind*2-1), float64(kind)/2
		r.Price = 3*r.Fare - age/2 + 10*float64(sex) + draw()
	}
	return rows
}

// train fits stages to passengers.
func train(t testing.TB, stages ...model.Stage) *pipeline.Model {
	r := trial.Run(t, func(b *engine.Builder) {
		operators.Collect(b, "model", pipeline.Pipeline{Stages: stages}.Fit(operators.FromSlice(b, passengers(120))))
	})
	m, err := pipeline.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

// cells returns the values of a passenger by column.
func (p passenger) cells() map[string]any {
	row := map[string]any{"age": nil, "sex": nil, "fare": p.Fare, "deck": p.Deck, "alone": p.Alone,
		"lived": p.Lived, "class": p.Class, "rank": p.Rank, "price": p.Price, "degree": p.Degree}
	if p.Age != nil {
		row["age"] = *p.Age
	}
	if p.Sex != nil {
		row["sex"] = *p.Sex
	}
	return row
}

// feed returns the inputs of a graph for rows.
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

func set(c *model.Cell, v any) {
	switch v := v.(type) {
	case nil:
		c.SetNull()
	case string:
		c.SetText(v)
	case float64:
		c.SetFloat(v)
	case int64:
		c.SetInt(v)
	case bool:
		c.SetBool(v)
	case []float64:
		c.SetDense(v)
	}
}

// values returns the cell of a column as what a graph gives; nil for a row that is refused.
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

// requireSame asserts that a graph computes what the model does, within a relative
// tolerance; of rows that the model refuses the numbers are NaN.
func requireSame(t testing.TB, m model.Model, f *file, rows []map[string]any, tolerance float64) {
	made := evaluate(t, f, feed(t, m, rows))
	s, err := pipeline.NewScorer(m)
	require.NoError(t, err)
	row := s.NewRow()
	require.NotEmpty(t, made)
	for i := range rows {
		for k, in := range m.Inputs() {
			set(row.Input(k), rows[i][in.Column])
		}
		err := s.Score(row)
		for name, a := range made {
			d := a.dims[1]
			if err != nil {
				if !a.isText && a.element != typeInt64 && d > 1 {
					require.True(t, math.IsNaN(a.num[i*d]), "row %d: %s: %v", i, name, err)
				}
				continue
			}
			column := name
			if row.Cell(column) == nil {
				column = name[:len(name)-2] // of an input that was replaced
			}
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
