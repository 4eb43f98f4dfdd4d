package trial

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Train runs a job with the training that build adds, and returns the trained model. modelOf is
// the function ModelOf of the model's package.
func Train[M any](t testing.TB, build func(b *engine.Builder) *engine.Dataset, modelOf func(r *engine.Result, name string) (M, error), options ...engine.Option) M {
	t.Helper()
	r := Run(t, func(b *engine.Builder) { engine.Collect(build(b), "model") }, options...)
	m, err := modelOf(r, "model")
	require.NoError(t, err)
	return m
}

// Savable is a model with a method Save.
type Savable interface {
	model.Model
	Save(path string) error
}

// ModelFile requires that a model that is read from its file, whose version must be 1, encodes
// to the same file. It also requires an error for a file that is missing, truncated at every
// seventh length, changed by replacing the text a by b, of a newer version, or of another kind.
// It returns the model that was read.
func ModelFile[M Savable](t testing.TB, m M, load func(path string) (M, error), decode func(file []byte) (M, error), a, b string) M {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.json")
	require.NoError(t, m.Save(path))
	back, err := load(path)
	require.NoError(t, err)
	file, err := m.Encode()
	require.NoError(t, err)
	again, err := back.Encode()
	require.NoError(t, err)
	require.Equal(t, string(file), string(again))
	require.NotContains(t, string(file), "\n")
	require.Equal(t, m.Kind(), back.Kind())
	require.Equal(t, m.Inputs(), back.Inputs())
	kind, err := model.KindOf(file)
	require.NoError(t, err)
	require.Equal(t, m.Kind(), kind)

	_, err = load(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "load model: ")
	for cut := 0; cut < len(file); cut += 7 {
		_, err := decode(file[:cut])
		require.Error(t, err, "a file truncated to %d bytes must be an error", cut)
	}
	_, err = decode(file[:len(file)/2])
	require.ErrorContains(t, err, "truncated")
	altered := func(a, b string) error {
		require.Contains(t, string(file), a)
		_, err := decode([]byte(strings.Replace(string(file), a, b, 1)))
		return err
	}
	require.NoError(t, altered(`"payload":`, `"payload": `), "added blanks must not be an error")
	require.ErrorContains(t, altered(a, b), "checksum")
	newer := altered(`"version":1`, `"version":2`)
	require.ErrorContains(t, newer, "reads up to version 1")
	require.ErrorContains(t, newer, "must be updated")
	require.ErrorContains(t, altered(`"kind":"`+kind+`"`, `"kind":"other"`), `kind "other"`)
	return back
}

// Predictor is a model that predicts a number, or the index of a class, for a row.
type Predictor[T comparable] interface {
	model.Binder
	Predict(x []float64) T
	PredictSparse(indices []int32, values []float64) T
}

// Concurrently requires that four concurrent goroutines get the same predictions for the rows
// of a table as one goroutine. The model is newly decoded, so the first calls of the goroutines
// run its lazy initialisation.
func Concurrently[M Predictor[T], T comparable](t testing.TB, m M, decode func(file []byte) (M, error), table Table) {
	t.Helper()
	file, err := m.Encode()
	require.NoError(t, err)
	fresh, err := decode(file)
	require.NoError(t, err)
	var all sync.WaitGroup
	got := make([][]T, 4)
	for g := range got {
		all.Go(func() {
			for i := range table.N {
				got[g] = append(got[g], fresh.Predict(table.Row(i)))
			}
		})
	}
	all.Wait()
	for i := range table.N {
		want := m.Predict(table.Row(i))
		for _, own := range got {
			require.Equal(t, want, own[i], "row %d: a concurrent prediction must equal the prediction of one goroutine", i)
		}
	}
}

// SamePredictions trains a stage on the columns "features" and "label" of a table. It requires
// the same predictions from the operator, which the stage and the model add; and from the
// methods and the bound step of the model, in three concurrent goroutines.
func SamePredictions[M Predictor[float64]](t *testing.T, table Table, stage model.Stage, modelOf func(r *engine.Result, name string) (M, error)) {
	t.Helper()
	r := Run(t, func(b *engine.Builder) {
		rows := table.Dataset(b)
		m := stage.Fit(rows)
		engine.Collect(m, "model")
		engine.Collect(stage.Apply(rows, m), "rows")
	})
	m, err := modelOf(r, "model")
	require.NoError(t, err)
	type row struct{ Prediction float64 }
	rows, err := engine.Rows[row](r, "rows")
	require.NoError(t, err)
	require.Len(t, rows, table.N)
	again := Run(t, func(b *engine.Builder) { engine.Collect(m.Transform(table.Dataset(b)), "rows") })
	text := Print(t, r)
	require.Equal(t, Print(t, again), text[strings.Index(text, "rows\n"):])
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			cells := layout.NewRow()
			for i := range table.N {
				got := m.Predict(table.Row(i))
				cells[0].SetDense(table.Row(i))
				if table.Sparse {
					indices, values := Sparse(table.Row(i))
					got = m.PredictSparse(indices, values)
					cells[0].SetSparse(table.D, indices, values)
				}
				if err := step(cells); err != nil || cells[1].Float != rows[i].Prediction || got != rows[i].Prediction {
					t.Errorf("row %d: the step (error %v) and the methods (%v) must predict what the operator predicts, %v", i, err, got, rows[i])
				}
			}
		})
	}
	all.Wait()
}

// Step binds a model to rows with the column "features", and returns a function that runs the
// bound step on the row x.
func Step(t testing.TB, m model.Binder, x []float64) func() {
	t.Helper()
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	row := layout.NewRow()
	row[0].SetDense(x)
	require.NoError(t, step(row))
	return func() {
		if step(row) != nil {
			panic("the step fails")
		}
	}
}
