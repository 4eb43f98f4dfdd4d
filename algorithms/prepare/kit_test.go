package prepare_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// sample is a row of the tables that the tests use.
type sample struct {
	ID     int64                  `column:"id"`
	Age    *float64               `column:"age"`
	Rooms  int64                  `column:"rooms"`
	Same   float64                `column:"same"`
	City   *string                `column:"city"`
	Good   *bool                  `column:"good"`
	Vector []float64              `column:"vector,dim=3"`
	Ragged []float64              `column:"ragged"`
	Sparse operators.SparseVector `column:"sparse"`
}

func p[T any](v T) *T { return &v }

// samples returns eight rows with nulls, and with NaNs if nan is set.
func samples(nan bool) []sample {
	rows := []sample{
		{1, p(22.0), 3, 0.1, p("Oslo"), p(true), []float64{1, -2, 5}, []float64{1, 0}, operators.SparseVector{Indices: []int32{0, 3}, Values: []float64{1, -4}}},
		{2, nil, 1, 0.1, p("Rome"), p(false), []float64{2, 4, 5}, []float64{0, 2}, operators.SparseVector{}},
		{3, p(38.0), 3, 0.1, p("Rome"), p(true), []float64{3, 0, 5}, []float64{-3, 0.5}, operators.SparseVector{Indices: []int32{3}, Values: []float64{2}}},
		{4, p(26.5), 2, 0.1, nil, nil, []float64{4, 8, 5}, []float64{4, 1e-3}, operators.SparseVector{Indices: []int32{1, 2}, Values: []float64{8, 0.5}}},
		{5, p(35.0), 7, 0.1, p("Bern"), p(true), []float64{5, -1, 5}, []float64{5, 7}, operators.SparseVector{Indices: []int32{0}, Values: []float64{3}}},
		{6, p(-4.0), 0, 0.1, p("Oslo"), p(false), []float64{6, 2.5, 5}, []float64{6, -7}, operators.SparseVector{Indices: []int32{0, 1}, Values: []float64{0.25, 1}}},
		{7, p(54.0), -2, 0.1, p("Rome"), p(true), []float64{7, 3, 5}, []float64{0, 0}, operators.SparseVector{Indices: []int32{2}, Values: []float64{-9}}},
		{8, p(2.0), 3, 0.1, p("Paris"), p(true), []float64{8, 3, 5}, []float64{8, 8}, operators.SparseVector{Indices: []int32{0, 1, 2, 3}, Values: []float64{1, 1, 1, 1}}},
	}
	if nan {
		rows[4].Age = p(zero / zero)
		rows[5].Vector = []float64{6, zero / zero, 5}
	}
	return rows
}

var zero float64

func table(rows []sample) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, rows) }
}

// try trains a stage on rows and applies the model to them. It asserts that the results are
// equal at any parallelism, and that the model can be read back from its file. It also asserts
// that the model, applied to single rows, gives the same bits as the operator and does not
// allocate. try returns the model, and the result of the run with the rows under the name
// "made".
func try(t *testing.T, rows func(b *engine.Builder) *engine.Dataset, s model.Stage) (model.Binder, *engine.Result) {
	t.Helper()
	build := func(b *engine.Builder) {
		in := rows(b)
		engine.Collect(in, "in")
		m := s.Fit(in)
		engine.Collect(m, "model")
		engine.Collect(s.Apply(in, m), "made")
	}
	trial.SameBits(t, build)
	m, r := quick(t, rows, s)

	file, err := m.Encode()
	require.NoError(t, err)
	again, err := prepare.Decode(file)
	require.NoError(t, err)
	require.Equal(t, m, again)
	path := filepath.Join(t.TempDir(), "model.json")
	require.NoError(t, model.Save(path, m))
	loaded, err := prepare.Load(path)
	require.NoError(t, err)
	require.Equal(t, m, loaded)

	transformed := trial.Run(t, func(b *engine.Builder) { engine.Collect(m.Transform(rows(b)), "made") })
	alone := trial.Run(t, func(b *engine.Builder) { engine.Collect(s.Apply(rows(b), model.Dataset(b, m)), "made") })
	want := trial.Print(t, alone)
	require.Equal(t, want, trial.Print(t, transformed))
	return m, r
}

// quick trains a stage on rows and applies the model to them once. It asserts that the model,
// applied to single rows, gives the same bits as the operator. It returns the model and the
// result of the run.
func quick(t *testing.T, rows func(b *engine.Builder) *engine.Dataset, s model.Stage) (model.Binder, *engine.Result) {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		in := rows(b)
		engine.Collect(in, "in")
		m := s.Fit(in)
		engine.Collect(m, "model")
		engine.Collect(s.Apply(in, m), "made")
	})
	m, err := prepare.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, s.Kind(), m.Kind())
	inProcess(t, m, r)
	return m, r
}

// inProcess asserts that the model, applied to single rows, gives the same bits as the
// operator.
func inProcess(t *testing.T, m model.Binder, r *engine.Result) {
	t.Helper()
	in, made := record(t, r, "in"), record(t, r, "made")
	layout := model.NewLayout(names(in.Schema())...)
	step, err := m.Bind(layout)
	require.NoError(t, err)
	reader, err := model.NewReader(arrowrows.Schema(in.Schema()), layout)
	require.NoError(t, err)
	reader.Reset(arrowrows.Batch(in))
	// The rows that the operator made are read in the same way, to compare them.
	seen := model.NewLayout(names(made.Schema())...)
	cells := map[string][2]int{}
	for _, name := range names(made.Schema()) {
		to, err := seen.Find(name)
		require.NoError(t, err)
		from, err := layout.Find(name)
		require.NoError(t, err)
		if !in.Schema().HasField(name) || from >= len(in.Schema().Fields()) {
			cells[name] = [2]int{from, to}
		}
	}
	require.NotEmpty(t, cells)
	expected, err := model.NewReader(arrowrows.Schema(made.Schema()), seen)
	require.NoError(t, err)
	expected.Reset(arrowrows.Batch(made))
	row, want, at := layout.NewRow(), seen.NewRow(), 0
	for i := range int(in.NumRows()) {
		reader.Read(i, row)
		if err := step(row); errors.Is(err, model.ErrSkip) {
			continue
		} else {
			require.NoError(t, err)
		}
		expected.Read(at, want)
		at++
		for name, c := range cells {
			require.Equal(t, text(want[c[1]]), text(row[c[0]]), "row %d, column %q", i, name)
		}
	}
	require.EqualValues(t, made.NumRows(), at)
	if in.NumRows() > 0 {
		reader.Read(0, row)
		require.Zero(t, testing.AllocsPerRun(20, func() { _ = step(row) }))
	}
}

func record(t *testing.T, r *engine.Result, name string) arrow.Record {
	t.Helper()
	recs, err := arrowbridge.Records(r, name)
	require.NoError(t, err)
	if len(recs) == 0 {
		schema, err := r.Schema(name)
		require.NoError(t, err)
		return batch.Empty(arrowrows.Arrow(schema))
	}
	rec, err := batch.Concat(memory.NewGoAllocator(), recs)
	require.NoError(t, err)
	t.Cleanup(rec.Release)
	return rec
}

func names(schema *arrow.Schema) []string {
	var all []string
	for _, f := range schema.Fields() {
		all = append(all, f.Name)
	}
	return all
}

// column returns the values of a column as texts that distinguish all values with different
// bits.
func column(t *testing.T, r *engine.Result, name string) []string {
	t.Helper()
	rec := record(t, r, "made")
	at, err := batch.FindColumn(rec.Schema(), name)
	require.NoError(t, err)
	var all []string
	for i := range int(rec.NumRows()) {
		all = append(all, batch.FormatValue(rec.Column(at), i))
	}
	return all
}

// near asserts that a column of numbers or vectors has the given values. The tolerance is
// 1e-12, absolute for values below 1 and relative for others. A NaN in want stands for null or
// NaN.
func near(t *testing.T, r *engine.Result, name string, want ...float64) {
	t.Helper()
	got := numbersOf(t, r, name)
	require.Len(t, got, len(want), "%v", got)
	for i := range want {
		if want[i] != want[i] {
			require.True(t, got[i] != got[i], "%d: %v", i, got[i])
			continue
		}
		require.InDelta(t, want[i], got[i], 1e-12*max(1, want[i], -want[i]), "%d of %v", i, got)
	}
}

func numbersOf(t *testing.T, r *engine.Result, name string) []float64 {
	t.Helper()
	rec := record(t, r, "made")
	layout := model.NewLayout(names(rec.Schema())...)
	at, err := layout.Find(name)
	require.NoError(t, err)
	reader, err := model.NewReader(arrowrows.Schema(rec.Schema()), layout)
	require.NoError(t, err)
	reader.Reset(arrowrows.Batch(rec))
	row := layout.NewRow()
	var got []float64
	for i := range int(rec.NumRows()) {
		reader.Read(i, row)
		switch c := row[at]; c.Kind {
		case model.NullCell:
			got = append(got, zero/zero)
		case model.DenseCell, model.SparseCell:
			got = append(got, c.Values...)
		default:
			v, ok := c.Number()
			require.True(t, ok)
			got = append(got, v)
		}
	}
	return got
}

// fails asserts that training on rows and applying the model fails with an error that contains
// each of the texts.
func fails(t *testing.T, rows []sample, s model.Stage, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		in := operators.FromSlice(b, rows)
		engine.Collect(s.Apply(in, s.Fit(in)), "made")
	}, texts...)
}

// golden requires that decoding a committed file, which an earlier version of the program
// wrote, gives the same model.
func golden(t *testing.T, m model.Binder) {
	t.Helper()
	path := filepath.Join("testdata", m.Kind()+".v1.json")
	if os.Getenv("REWRITE_MODELS") != "" {
		require.NoError(t, model.Save(path, m))
	}
	old, err := prepare.Load(path)
	require.NoError(t, err)
	require.Equal(t, old, m)
}

// failsTo requires that the job fails with an error that contains each of the texts.
func failsTo(t *testing.T, build func(b *engine.Builder), texts ...string) {
	t.Helper()
	trial.Fails(t, build, texts...)
}

func columnsOf(schema *arrow.Schema) []batch.Column { return batch.Columns(schema) }

// denseOf returns the rows of a column of sparse vectors as dense vectors.
func denseOf(t *testing.T, r *engine.Result, name string, size int) [][]float64 {
	t.Helper()
	rec := record(t, r, "made")
	at, err := batch.FindColumn(rec.Schema(), name)
	require.NoError(t, err)
	csr, ok := batch.SparseView(rec.Column(at))
	require.True(t, ok)
	var all [][]float64
	for i := range csr.Rows() {
		row := make([]float64, size)
		from, to := csr.Indptr[i], csr.Indptr[i+1]
		indices, values := csr.Indices[from:to], csr.Values[from:to]
		for k, j := range indices {
			row[j] = values[k]
		}
		all = append(all, row)
	}
	return all
}
