package signature_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
)

func Example() {
	in := signature.Inputs{{Column: "age", Type: "int64"}, {Column: "size", Type: "vector[2]"}}
	layout := model.NewLayout("size", "age")
	r, err := in.Bind(layout, model.PredictOptions{}, 3)
	if err != nil {
		panic(err)
	}
	row := layout.NewRow()
	row[0].SetDense([]float64{1.5, 2.5})
	row[1].SetInt(30)
	x, ok, err := r.Read(row)
	fmt.Println(x.Values, ok, err)
	row[1].SetNull()
	_, ok, err = r.Read(row)
	fmt.Println(ok, err)
	// Output:
	// [30 1.5 2.5] true <nil>
	// false <nil>
}

func TestInputsCheck(t *testing.T) {
	good := signature.Inputs{{Column: "a", Type: "float32"}, {Column: "v", Type: "vector[2]"}, {Column: "n", Type: "uint8"}}
	require.NoError(t, good.Check(4))
	require.NoError(t, signature.Inputs{{Column: "v", Type: "sparse[7]"}}.Check(7))
	require.NoError(t, signature.Inputs{{Column: "b", Type: "bool"}, {Column: "i", Type: "int8"}}.Check(2), "inputs may be bools, because training accepts bools")
	for text, in := range map[string]signature.Inputs{
		"reads have 4 components, and there are 5 features": good,
		"the model reads no columns":                        nil,
		`input "s" is utf8: want a number`:                  {{Column: "s", Type: "utf8"}},
		`input "s": `:                                       {{Column: "s", Type: "vectors"}},
	} {
		require.ErrorContains(t, in.Check(5), text)
	}
	require.Error(t, signature.Inputs{}.Check(0), "a model without inputs must be refused")
}

func TestCheckFeatures(t *testing.T) {
	require.NoError(t, signature.CheckFeatures("", nil))
	require.NoError(t, signature.CheckFeatures("v", nil))
	require.NoError(t, signature.CheckFeatures("", []string{"a"}))
	require.ErrorContains(t, signature.CheckFeatures("v", []string{"a"}), "both VectorCol and FeatureCols are set")
}

// read binds inputs to rows with the columns v, w, a and b, and reads a row whose cells the
// function set has filled.
func read(t *testing.T, in signature.Inputs, o model.PredictOptions, dim int, set func(v, w, a, b *model.Cell)) (signature.Point, bool, error) {
	t.Helper()
	layout := model.NewLayout("v", "w", "a", "b")
	r, err := in.Bind(layout, o, dim)
	require.NoError(t, err)
	row := layout.NewRow()
	set(&row[0], &row[1], &row[2], &row[3])
	return r.Read(row)
}

var (
	vector  = signature.Inputs{{Column: "v", Type: "vector[3]"}}
	sparse  = signature.Inputs{{Column: "v", Type: "sparse[3]"}}
	numbers = signature.Inputs{{Column: "b", Type: "float64"}, {Column: "w", Type: "vector[1]"}, {Column: "a", Type: "int8"}}
)

func TestReader(t *testing.T) {
	set := func(v, w, a, b *model.Cell) {
		v.SetDense([]float64{1, 2, 3})
		w.SetDense([]float64{4})
		a.SetInt(5)
		b.SetBool(true)
	}
	for i, c := range []struct {
		in   signature.Inputs
		o    model.PredictOptions
		dim  int
		want []float64
	}{
		{vector, model.PredictOptions{}, 3, []float64{1, 2, 3}},
		{numbers, model.PredictOptions{}, 3, []float64{1, 4, 5}},
		{signature.Inputs{vector[0], {Column: "a", Type: "int8"}}, model.PredictOptions{}, 4, []float64{1, 2, 3, 5}},
		{vector, model.PredictOptions{VectorCol: "w"}, 1, []float64{4}},
		{numbers, model.PredictOptions{VectorCol: "v"}, 3, []float64{1, 2, 3}},
		{vector, model.PredictOptions{FeatureCols: []string{"a", "w", "b"}}, 3, []float64{5, 4, 1}},
		{signature.Inputs{{Column: "a", Type: "int8"}}, model.PredictOptions{}, 1, []float64{5}},
		{vector, model.PredictOptions{FeatureCols: []string{"a"}}, 1, []float64{5}},
	} {
		x, ok, err := read(t, c.in, c.o, c.dim, set)
		require.NoError(t, err)
		require.True(t, ok)
		require.Nil(t, x.Indices)
		require.Equal(t, c.want, x.Values, "case %d", i)
		require.True(t, x.Fits(c.dim))
	}
	for _, size := range []int{0, 3} {
		x, ok, err := read(t, sparse, model.PredictOptions{}, 3, func(v, _, _, _ *model.Cell) { v.SetSparse(size, []int32{0, 2}, []float64{7, 8}) })
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, signature.Point{Indices: []int32{0, 2}, Values: []float64{7, 8}}, x)
	}
	x, ok, err := read(t, sparse, model.PredictOptions{}, 3, func(v, _, _, _ *model.Cell) { v.SetSparse(3, nil, nil) })
	require.NoError(t, err)
	require.True(t, ok)
	require.NotNil(t, x.Indices, "a sparse row without entries must not look like a dense row")
	require.True(t, x.Fits(3))
}

func TestReaderNames(t *testing.T) {
	layout := model.NewLayout("v", "a")
	r, err := vector.Bind(layout, model.PredictOptions{}, 3)
	require.NoError(t, err)
	require.Equal(t, "v", r.Name())
	require.True(t, layout.Reads(0))
	require.False(t, layout.Reads(1))
	_, err = vector.Bind(layout, model.PredictOptions{VectorCol: "aa"}, 3)
	require.ErrorContains(t, err, `features: the row has no column "aa": did you mean "a"?`)
}

func TestReaderRefuses(t *testing.T) {
	for text, c := range map[string]struct {
		in  signature.Inputs
		set func(v, w, a, b *model.Cell)
	}{
		`column "v" has 2 components, the model was trained on 3`:         {vector, func(v, _, _, _ *model.Cell) { v.SetDense([]float64{1, 2}) }},
		`column "v" has 4 components, the model was trained on 3`:         {sparse, func(v, _, _, _ *model.Cell) { v.SetSparse(4, nil, nil) }},
		`column "v" has the index 1 where one above 1 and below 3 is due`: {sparse, func(v, _, _, _ *model.Cell) { v.SetSparse(3, []int32{1, 1}, []float64{1, 1}) }},
		`column "v" has the index 3 where one above -1 and below 3`:       {sparse, func(v, _, _, _ *model.Cell) { v.SetSparse(0, []int32{3}, []float64{1}) }},
		`column "v" is text, the model reads a vector of 3`:               {vector, func(v, _, _, _ *model.Cell) { v.SetText("x") }},
		`column "b" is text, not a number`:                                {numbers, func(_, w, a, b *model.Cell) { w.SetInt(1); a.SetInt(1); b.SetText("x") }},
		`the columns have 4 components, the model was trained on 3`:       {numbers, func(_, w, a, b *model.Cell) { w.SetDense([]float64{1, 2}); a.SetInt(1); b.SetInt(1) }},
		`column "v": component 2 is NaN; set Skip to give such rows null`: {vector, func(v, _, _, _ *model.Cell) { v.SetDense([]float64{1, 2, math.NaN()}) }},
		`column "v": component 1 is +Inf; set Skip`:                       {sparse, func(v, _, _, _ *model.Cell) { v.SetSparse(3, []int32{1}, []float64{math.Inf(1)}) }},
		`column "b" is -Inf; set Skip`:                                    {numbers, func(_, w, a, b *model.Cell) { w.SetInt(1); a.SetInt(1); b.SetFloat(math.Inf(-1)) }},
	} {
		_, ok, err := read(t, c.in, model.PredictOptions{}, 3, c.set)
		require.ErrorContains(t, err, text)
		require.False(t, ok)
	}
}

// TestReaderSkips requires that Skip treats NaN and infinities like nulls. Rows whose number of
// features differs from the model's must still be errors.
func TestReaderSkips(t *testing.T) {
	skip := model.PredictOptions{Skip: true}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, c := range []struct {
			in  signature.Inputs
			set func(v, w, a, b *model.Cell)
		}{
			{vector, func(v, _, _, _ *model.Cell) { v.SetDense([]float64{bad, 2, 3}) }},
			{sparse, func(v, _, _, _ *model.Cell) { v.SetSparse(3, []int32{2}, []float64{bad}) }},
			{numbers, func(_, w, a, b *model.Cell) { w.SetDense([]float64{bad}); a.SetInt(1); b.SetInt(1) }},
			{numbers, func(_, w, a, b *model.Cell) { w.SetNull(); a.SetInt(1); b.SetInt(1) }},
		} {
			_, ok, err := read(t, c.in, skip, 3, c.set)
			require.NoError(t, err)
			require.False(t, ok)
		}
	}
	_, _, err := read(t, vector, skip, 3, func(v, _, _, _ *model.Cell) { v.SetDense([]float64{1}) })
	require.ErrorContains(t, err, "trained on 3")
}

func TestFits(t *testing.T) {
	require.True(t, signature.Dense([]float64{1, 2}).Fits(2))
	require.False(t, signature.Dense([]float64{1, 2}).Fits(3))
	require.False(t, signature.Dense(nil).Fits(3))
	require.True(t, signature.Sparse(nil, nil).Fits(3))
	require.False(t, signature.Sparse([]int32{0}, nil).Fits(3))
	for _, bad := range [][]int32{{-1}, {3}, {1, 0}, {2, 2}} {
		require.False(t, signature.Sparse(bad, make([]float64, len(bad))).Fits(3), "a point with the indices %v must not fit 3 features", bad)
	}
	require.True(t, signature.Ascending([]int32{0, 1, 2}, 3))
}

// TestReaderCoded requires that BindCoded reads missing values as NaN and categories as their
// codes.
func TestReaderCoded(t *testing.T) {
	in := signature.Inputs{{Column: "a", Type: "utf8"}, {Column: "b", Type: "float64"}}
	categories := [][]string{{"x", "7"}, nil}
	require.NoError(t, in.CheckCoded(2, categories))
	require.NoError(t, vector.CheckCoded(3, nil))
	require.ErrorContains(t, in.CheckCoded(2, nil), `input "a" is utf8, and the model has no categories of it`)
	require.ErrorContains(t, numbers.CheckCoded(3, nil), `input "w" is vector[1]: want a vector, or numbers, bools and text`)
	read := func(strict bool, set func(a, b *model.Cell)) ([]float64, error) {
		layout := model.NewLayout("a", "b")
		r, err := in.BindCoded(layout, model.PredictOptions{}, 2, &signature.Coded{Codes: signature.CodesOf(categories), Unseen: -1, Strict: strict})
		require.NoError(t, err)
		row := layout.NewRow()
		set(&row[0], &row[1])
		x, ok, err := r.Read(row)
		require.Equal(t, err == nil, ok)
		return x.Values, err
	}
	for i, c := range []struct {
		set  func(a, b *model.Cell)
		want []float64
	}{
		{func(a, b *model.Cell) { a.SetText("7"); b.SetBool(true) }, []float64{1, 1}},
		{func(a, b *model.Cell) { a.SetText("y"); b.SetFloat(math.Inf(1)) }, []float64{-1, math.Inf(1)}},
		{func(a, b *model.Cell) { a.SetText("x"); b.SetNull() }, []float64{0, math.NaN()}},
		{func(a, b *model.Cell) { a.SetNull(); b.SetInt(3) }, []float64{math.NaN(), 3}},
	} {
		for _, strict := range []bool{false, true} {
			x, err := read(strict, c.set)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(c.want), fmt.Sprint(x), "case %d", i)
		}
	}
	number := func(a, b *model.Cell) { a.SetInt(7); b.SetInt(3) }
	x, err := read(false, number)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 3}, x)
	_, err = read(true, number)
	require.ErrorContains(t, err, `column "a" is an integer, the model reads text`)
	_, err = read(false, func(a, b *model.Cell) { a.SetDense(nil); b.SetInt(3) })
	require.ErrorContains(t, err, `column "a" is a vector, the model reads text`)
	_, err = read(false, func(a, b *model.Cell) { a.SetText("x"); b.SetText("x") })
	require.ErrorContains(t, err, `column "b" is text, the model reads a number`)
	_, err = in.BindCoded(model.NewLayout("a", "b"), model.PredictOptions{FeatureCols: []string{"b"}}, 2, &signature.Coded{})
	require.ErrorContains(t, err, "FeatureCols has 1 columns, the model was trained on 2 features")
}
