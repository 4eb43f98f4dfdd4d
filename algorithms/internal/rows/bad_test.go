package rows_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

var nan, inf = math.NaN(), math.Inf(1)

// row has columns that may all be null.
type row struct {
	X *[]float64 `column:"x"`
	Y *float64   `column:"y"`
	W *float64   `column:"w"`
	O *float64   `column:"o"`
	C *float64   `column:"c"`
	T *string    `column:"t"`
}

func p[T any](v T) *T { return &v }

// good returns a valid row, changed by the given edits.
func good(edit ...func(*row)) row {
	r := row{X: p([]float64{1, 2}), Y: p(1.0), W: p(1.0), O: p(0.0), C: p(1.0), T: p("a")}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func of(all ...row) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, all) }
}

var everything = rows.Columns{Vector: "x", Label: "y", Weight: "w", Offset: "o", Censor: "c"}

func TestRowsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		edit func(*row)
		text string
		kind rows.LabelKind
	}{
		{func(r *row) { r.X = nil }, `column "x" is null; fill it in, or set Skip`, rows.NumberLabel},
		{func(r *row) { r.X = p([]float64{1, nan}) }, `column "x": component 1 is NaN; fill it in, or set Skip`, rows.NumberLabel},
		{func(r *row) { r.X = p([]float64{-inf, 2}) }, `column "x": component 0 is -Inf`, rows.NumberLabel},
		{func(r *row) { r.Y = nil }, `column "y": the label is null`, rows.NumberLabel},
		{func(r *row) { r.Y = p(nan) }, `column "y": the label is NaN`, rows.NumberLabel},
		{func(r *row) { r.Y = nil }, `column "y": the label is null`, rows.ClassLabel},
		{func(r *row) { r.Y = p(inf) }, `column "y": the label is +Inf`, rows.ClassLabel},
		{func(r *row) { r.W = nil }, `column "w": the weight is null`, rows.NumberLabel},
		{func(r *row) { r.W = p(inf) }, `column "w": the weight is +Inf`, rows.NumberLabel},
		{func(r *row) { r.W = p(-1.0) }, `column "w": the weight is -1; a weight is 0 or more`, rows.NumberLabel},
		{func(r *row) { r.O = p(nan) }, `column "o": the offset is NaN`, rows.NumberLabel},
		{func(r *row) { r.C = p(0.5) }, `column "c": the censor is 0.5; want 1 where the event was seen`, rows.NumberLabel},
	} {
		t.Run(c.text, func(t *testing.T) {
			data := of(good(), good(c.edit), good())
			trial.Fails(t, func(b *engine.Builder) {
				engine.Collect(open(b, data(b), everything, c.kind), "seen")
			}, "CheckRows", "row 0 of the shard", c.text)
		})
	}
}

func TestTheFirstBadRowIsTold(t *testing.T) {
	all := []row{good(), good(), good(func(r *row) { r.W = p(-1.0) }), good(func(r *row) { r.X = nil })}
	for _, rowsOfBatch := range []int{1, 2, 1024} {
		_, err := trial.Try(t, func(b *engine.Builder) {
			engine.Collect(open(b, of(all...)(b), everything, rows.NumberLabel), "seen")
		}, engine.BatchRows(rowsOfBatch), engine.Shards(1))
		require.ErrorContains(t, err, `row 2 of the shard: column "w"`)
	}
}

func TestSkippedRows(t *testing.T) {
	all := []row{
		good(), good(func(r *row) { r.X = nil }), good(func(r *row) { r.X = p([]float64{1, nan}) }),
		good(func(r *row) { r.Y = nil }), good(func(r *row) { r.Y = p(nan) }), good(func(r *row) { r.W = nil }),
		good(func(r *row) { r.O = p(inf) }), good(func(r *row) { r.C = nil }), good(func(r *row) { r.X = p([]float64{3, 4}) }),
	}
	c := everything
	c.Skip = true
	for _, kind := range []rows.LabelKind{rows.NumberLabel, rows.ClassLabel} {
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(open(b, of(all...)(b), c, kind), "seen")
		})
		require.Contains(t, r.Summary(), "rows skipped: 7")
	}
	f, got := look(t, of(all...), c, rows.NumberLabel)
	require.EqualValues(t, 2, f.Rows)
	require.Equal(t, []float64{2, 3}, f.Mean)
	require.Len(t, got, 2)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(open(b, of(good(func(r *row) { r.X = nil }))(b), c, rows.NumberLabel), "seen")
	}, "there are no rows to train on", "every row was skipped")
	// A negative weight is not a missing value, so Skip must not leave the row out.
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(open(b, of(good(func(r *row) { r.W = p(-2.0) }))(b), c, rows.NumberLabel), "seen")
	}, "the weight is -2")
}

func TestNumberColumnsThatAreMissing(t *testing.T) {
	data := of(good(), good(func(r *row) { r.O = nil }), good(func(r *row) { r.W = p(nan) }))
	c := rows.Columns{Features: []string{"w", "o"}, Label: "y"}
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(open(b, data(b), c, rows.NumberLabel), "seen")
	}, `column "o" is null`)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(open(b, of(good(func(r *row) { r.W = p(nan) }))(b), c, rows.NumberLabel), "seen")
	}, `row 0 of the shard: column "w" is NaN`)
	c.Skip = true
	f, _ := look(t, data, c, rows.NumberLabel)
	require.EqualValues(t, 1, f.Rows)
}

func TestColumnsThatAreRefused(t *testing.T) {
	data := of(good())
	for _, c := range []struct {
		columns rows.Columns
		kind    rows.LabelKind
		text    string
	}{
		{rows.Columns{Vector: "z"}, rows.NoLabel, `no column "z"`},
		{rows.Columns{Vector: "y"}, rows.NoLabel, `column "y" is float64, not a vector`},
		{rows.Columns{Vector: "x", Features: []string{"w"}}, rows.NoLabel, "both a vector column"},
		{rows.Columns{Features: []string{"t"}}, rows.NoLabel, `features: column "t" is utf8, not a number`},
		{rows.Columns{Features: []string{"x"}}, rows.NoLabel, `features: column "x" is vector, not a number`},
		{rows.Columns{Features: []string{"w", "w"}}, rows.NoLabel, `column "w" is named both as feature and as feature`},
		{rows.Columns{Features: []string{"w", ""}}, rows.NoLabel, "empty name"},
		{rows.Columns{Vector: "x", Label: "y", Weight: "y"}, rows.NumberLabel, `column "y" is named both as label and as weight`},
		{rows.Columns{Vector: "x"}, rows.NumberLabel, "label: "},
		{rows.Columns{Vector: "x", Label: "t"}, rows.NumberLabel, `label: column "t" is utf8, not a number: only classifiers`},
		{rows.Columns{Label: "x", Features: []string{"w"}}, rows.ClassLabel, `label: column "x" is vector: classes are`},
		{rows.Columns{Vector: "x", Weight: "t"}, rows.NoLabel, `weight: column "t" is utf8, not a number`},
		{rows.Columns{Vector: "x", Offset: "nowhere"}, rows.NoLabel, `offset: `},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(open(b, data(b), c.columns, c.kind), "seen")
		}, c.text)
	}
	type two struct{ A, B []float64 }
	trial.Fails(t, func(b *engine.Builder) {
		open(b, operators.FromSlice(b, []two{{}}), rows.Columns{}, rows.NoLabel)
	}, "several vector columns (a, b)")
	trial.Fails(t, func(b *engine.Builder) {
		open(b, operators.FromSlice(b, []struct{ A float64 }{{}}), rows.Columns{}, rows.NoLabel)
	}, "there is no vector column")
	trial.Fails(t, func(b *engine.Builder) {
		open(b, b.Poisoned("cause"), rows.Columns{}, rows.NoLabel)
	}, "cause")
}

func TestRowsThatDoNotFitTogether(t *testing.T) {
	fails := func(data func(b *engine.Builder) *engine.Dataset, c rows.Columns, kind rows.LabelKind, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(open(b, data(b), c, kind), "seen") }, texts...)
	}
	fails(of(good(), good(func(r *row) { r.X = p([]float64{1}) })), rows.Columns{}, rows.NoLabel,
		`row 0 of the shard: column "x" has 1 components, where other rows have 2`)
	fails(of(good(func(r *row) { r.X = p([]float64{}) })), rows.Columns{}, rows.NoLabel, "no components")
	fails(of(), rows.Columns{}, rows.NoLabel, "there are no rows to train on: the input is empty")
	fails(of(good(func(r *row) { r.W = p(0.0) })), everything, rows.NumberLabel, `every weight in column "w" is 0`)
	fails(of(good(func(r *row) { r.W = p(1e308) }), good(func(r *row) { r.W = p(1e308) })), everything, rows.NumberLabel, "add up to more than float64 holds")
	fails(of(good(func(r *row) { r.Y = p(1e308) }), good(func(r *row) { r.Y = p(-1e308) })), everything, rows.NumberLabel, `labels in column "y" are so large`)
	fails(of(good(func(r *row) { r.Y, r.W = p(1e9), p(1e300) }), good(func(r *row) { r.Y = p(-1e9) })), everything, rows.NumberLabel, `weights in column "w" are so large`)
	fails(of(good(func(r *row) { r.X = p([]float64{1, 1e200}) }), good(func(r *row) { r.X = p([]float64{1, -1e200}) })), everything, rows.NumberLabel,
		`column "x": component 1: the values are so large`)
}

// classLimit is a case of TestTooManyClasses: the number of classes minus MaxClasses, and the
// number of shards.
type classLimit struct{ beyond, shards int }

func TestTooManyClasses(t *testing.T) {
	type row struct {
		Y int64
		X []float64 `column:"x,dim=1"`
	}
	x := []float64{1}
	for _, at := range classLimits {
		all := make([]row, rows.MaxClasses+at.beyond)
		for i := range all {
			all[i] = row{int64(i), x}
		}
		r, err := trial.Try(t, func(b *engine.Builder) {
			engine.Collect(facts(b, operators.FromSlice(b, all), rows.Columns{Label: "y"}), "facts")
		}, engine.Shards(at.shards))
		if at.beyond == 0 {
			require.NoError(t, err)
			r.Release()
			continue
		}
		require.ErrorContains(t, err, `column "y": the label has more than 100000 distinct values`)
		require.ErrorContains(t, err, "train a regression")
	}
}

func facts(b *engine.Builder, d *engine.Dataset, c rows.Columns) *engine.Dataset {
	t, err := rows.Check("rows.Test", d, c, rows.ClassLabel)
	if err != nil {
		b.Errorf("%w", err)
		return b.Poisoned("rows.Test")
	}
	return t.Facts
}

func TestSparseIndicesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		indices []int32
		text    string
	}{
		{[]int32{0, 4}, "index 4 is not below the size, 4"},
		{[]int32{2, 2}, "index 2 occurs twice"},
		{[]int32{3, 1}, "index 1 follows 3; indices ascend"},
		{[]int32{-1, 1}, "index -1 is negative"},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			d := trial.Unchecked(b, sparseRecord(t, c.indices))
			engine.Collect(open(b, d, rows.Columns{}, rows.NoLabel), "seen")
		}, `row 0 of the shard: column "v"`, c.text)
	}
}

func sparseSchema(t *testing.T) *arrow.Schema {
	dt, err := batch.SparseType(4)
	require.NoError(t, err)
	return arrow.NewSchema([]arrow.Field{{Name: "v", Type: dt}}, nil)
}

// sparseRecord returns one sparse row with the given indices, which may be invalid.
func sparseRecord(t *testing.T, indices []int32) arrow.Record {
	arr, err := batch.NewSparseArray(memory.NewGoAllocator(), batch.CSR{Size: 4, Indptr: []int32{0, 2}, Indices: []int32{0, 1}, Values: []float64{1, 1}})
	require.NoError(t, err)
	view, ok := batch.SparseView(arr)
	require.True(t, ok)
	copy(view.Indices, indices) // NewSparseArray would return an error for these indices
	return array.NewRecord(sparseSchema(t), []arrow.Array{arr}, 1)
}

func TestAnythingElseIsFine(t *testing.T) {
	f, _ := look(t, of(good()), everything, rows.NumberLabel)
	require.Equal(t, []float64{0, 0}, f.Std, "the standard deviation of one row must be 0")
	require.Equal(t, "1", fmt.Sprint(f.Rows))
}

// TestLabelsWithoutAName requires that labels are refused if a model's file cannot hold the
// names of the classes: texts that are not UTF-8, and binary values.
func TestLabelsWithoutAName(t *testing.T) {
	type labelled struct {
		X []float64 `column:"x"`
		T string    `column:"t"`
		B []byte    `column:"b"`
	}
	check := func(label string) func(b *engine.Builder) {
		return func(b *engine.Builder) {
			d := trial.BadText(b, []labelled{{[]float64{1}, "a~", []byte{255}}, {[]float64{2}, "b", []byte{0}}}, "t")
			table, err := rows.Check("test", d, rows.Columns{Vector: "x", Label: label}, rows.ClassLabel)
			if err != nil {
				b.Errorf("%w", err)
				return
			}
			engine.Collect(table.Facts, "facts")
		}
	}
	trial.Fails(t, check("t"), `column "t": the label "a\xff" is not UTF-8`)
	trial.Fails(t, check("b"), `column "b" is binary`, "make it text")
}
