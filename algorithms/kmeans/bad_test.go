package kmeans_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestValidateTellsEverything(t *testing.T) {
	for want, p := range map[string]kmeans.Params{
		"VectorCol is empty: name the column of the points\nK is 0: want at least 1 cluster": {},
		"K is -1: want at least 1 cluster":                                                   {VectorCol: "x", K: -1},
		"MaxIter is -1: want 1 to 2147483646, or 0 for 100":                                  {VectorCol: "x", K: 1, MaxIter: -1},
		"Tol is NaN: want a number":                                                          {VectorCol: "x", K: 1, Tol: math.NaN()},
		"InitSteps is -2: want at least 1, or 0 for 3":                                       {VectorCol: "x", K: 1, InitSteps: -2},
		"Oversampling is -1: want a positive number, or 0 for 2·K":                           {VectorCol: "x", K: 1, Oversampling: -1},
		"Init(9) is not one of the package's constants":                                      {VectorCol: "x", K: 1, Init: 9},
		"Distance(-1) is not one of the package's constants":                                 {VectorCol: "x", K: 1, Distance: -1},
		"NonFinite(2) is not one of the package's constants":                                 {VectorCol: "x", K: 1, NonFinite: 2},
		"WeightCol and VectorCol are both \"x\"":                                             {VectorCol: "x", K: 1, WeightCol: "x"},
		`PredictionCol and DistanceCol are both "distance"`:                                  {VectorCol: "x", K: 1, PredictionCol: "distance"},
		`PredictionCol and VectorCol are both "x"`:                                           {VectorCol: "x", K: 1, PredictionCol: "x"},
		`DistanceCol and VectorCol are both "x"`:                                             {VectorCol: "x", K: 1, DistanceCol: "x"},
		"Centers are set but Init is k-means||: set Init to Given to start from them":        {VectorCol: "x", K: 1, Centers: [][]float64{{1}}},
		"Init is Given but there are no Centers":                                             {VectorCol: "x", K: 1, Init: kmeans.Given},
		"K is 2 but there are 1 Centers":                                                     {VectorCol: "x", K: 2, Init: kmeans.Given, Centers: [][]float64{{1}}},
		"Centers[1] has 2 components, Centers[0] has 1: want the same number, at least 1":    {VectorCol: "x", Init: kmeans.Given, Centers: [][]float64{{1}, {1, 2}}},
		"Centers[0] has 0 components, Centers[0] has 0: want the same number, at least 1":    {VectorCol: "x", Init: kmeans.Given, Centers: [][]float64{{}}},
		"Centers[1][0] is +Inf: want a finite number":                                        {VectorCol: "x", Init: kmeans.Given, Centers: [][]float64{{1}, {math.Inf(1)}}},
		"Centers[0] is a vector of zeros, which has no direction: cosine distance needs one": {VectorCol: "x", Init: kmeans.Given, Distance: kmeans.Cosine, Centers: [][]float64{{0}}},
		"K is 3000000000: want at most 2147483647 clusters":                                  {VectorCol: "x", K: 3e9},
	} {
		require.EqualError(t, p.Validate(), want)
	}
	require.NoError(t, kmeans.Params{VectorCol: "x", K: 1}.Validate())
	require.NoError(t, kmeans.Params{VectorCol: "x", Init: kmeans.Given, Centers: [][]float64{{1}, {2}}}.Validate())
}

func TestEnumsAsText(t *testing.T) {
	for _, want := range []kmeans.Init{kmeans.KMeansParallel, kmeans.Random, kmeans.KMeansPlusPlus, kmeans.Given} {
		text, err := want.MarshalText()
		require.NoError(t, err)
		var got kmeans.Init
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, want, got)
	}
	var d kmeans.Distance
	require.NoError(t, d.UnmarshalText([]byte("cosine")))
	require.Equal(t, kmeans.Cosine, d)
	require.EqualError(t, d.UnmarshalText([]byte("manhattan")), `unknown distance "manhattan": want one of euclidean, cosine`)
	var n kmeans.NonFinite
	require.NoError(t, n.UnmarshalText([]byte("skip")))
	require.Equal(t, kmeans.Skip, n)
	_, err := kmeans.Init(7).MarshalText()
	require.EqualError(t, err, "Init(7) is not one of the package's constants")
	_, err = kmeans.NonFinite(7).MarshalText()
	require.Error(t, err)
	_, err = kmeans.Distance(7).MarshalText()
	require.Error(t, err)
}

// named is a row with columns of several types.
type named struct {
	Name     string
	Features []float64 `column:"features,dim=2"`
	Weight   float64
	Count    int32
}

// built returns the error of building a job.
func built(t *testing.T, build func(b *engine.Builder, rows *engine.Dataset)) string {
	t.Helper()
	job := engine.Define("bad", func(b *engine.Builder, _ struct{}) error {
		build(b, operators.FromSlice(b, []named{{"a", []float64{1, 2}, 1, 1}}))
		return nil
	})
	_, err := engine.Run(context.Background(), job, struct{}{})
	require.Error(t, err)
	return err.Error()
}

func TestMisuseIsToldWhenBuilding(t *testing.T) {
	train := func(p kmeans.Params) func(*engine.Builder, *engine.Dataset) {
		return func(_ *engine.Builder, rows *engine.Dataset) { kmeans.Train(rows, p) }
	}
	predict := func(o kmeans.PredictOptions) func(*engine.Builder, *engine.Dataset) {
		return func(_ *engine.Builder, rows *engine.Dataset) { kmeans.Predict(rows, rows, o) }
	}
	for _, c := range []struct {
		build func(*engine.Builder, *engine.Dataset)
		want  []string
	}{
		{train(kmeans.Params{VectorCol: "features"}), []string{"bad_test.go:", "kmeans.Train: K is 0"}},
		{train(kmeans.Params{VectorCol: "feature", K: 2}), []string{"bad_test.go:", `"feature"`, `did you mean "features"`}},
		{train(kmeans.Params{VectorCol: "name", K: 2}), []string{"bad_test.go:", `column "name" is utf8, not a vector: operators.Vectorize makes`}},
		{train(kmeans.Params{VectorCol: "features", K: 2, WeightCol: "wieght"}), []string{"weight: ", `did you mean "weight"`}},
		{train(kmeans.Params{VectorCol: "features", K: 2, WeightCol: "name"}), []string{`weight: column "name" is utf8, not a number`}},
		{train(kmeans.Params{VectorCol: "features", Init: kmeans.Given, Centers: [][]float64{{1, 2, 3}}}), []string{`column "features" has 2 components, the given centres have 3`}},
		{predict(kmeans.PredictOptions{}), []string{"bad_test.go:", `kmeans.Predict: the model has no column "model"`}},
		{predict(kmeans.PredictOptions{VectorCol: "featurse"}), []string{`did you mean "features"`}},
		{predict(kmeans.PredictOptions{VectorCol: "count"}), []string{`column "count" is int32, not a vector`}},
		{predict(kmeans.PredictOptions{ClusterCol: "name"}), []string{`column "name" exists already`}},
		{predict(kmeans.PredictOptions{ClusterCol: "x", DistanceCol: "x"}), []string{`ClusterCol and DistanceCol are both "x"`}},
		{predict(kmeans.PredictOptions{NonFinite: 5}), []string{"NonFinite(5) is not one"}},
		{func(_ *engine.Builder, rows *engine.Dataset) { kmeans.Predict(rows, nil, kmeans.PredictOptions{}) }, []string{"the model is nil"}},
		{func(*engine.Builder, *engine.Dataset) { kmeans.Train(nil, kmeans.Params{}) }, []string{"kmeans.Train: the dataset is nil"}},
		{func(*engine.Builder, *engine.Dataset) { kmeans.Predict(nil, nil, kmeans.PredictOptions{}) }, []string{"kmeans.Predict: the dataset is nil"}},
		{func(b *engine.Builder, _ *engine.Dataset) { new(kmeans.Model).Dataset(b) }, []string{`model of kind "kmeans": dim is 0`}},
		{func(b *engine.Builder, _ *engine.Dataset) {
			scalars := operators.FromSlice(b, []float64{1})
			kmeans.Predict(scalars, scalars, kmeans.PredictOptions{})
		}, []string{"the points have no vector column"}},
		{func(b *engine.Builder, _ *engine.Dataset) {
			two := operators.FromSlice(b, []struct {
				A []float64 `column:"a,dim=1"`
				B []float64 `column:"b,dim=1"`
			}{})
			kmeans.Predict(two, two, kmeans.PredictOptions{})
		}, []string{`several vector columns, "a", "b": set VectorCol`}},
	} {
		got := built(t, c.build)
		for _, want := range c.want {
			require.Contains(t, got, want)
		}
	}
	// After a misuse, the operators that read its output must not report further errors.
	got := built(t, func(_ *engine.Builder, rows *engine.Dataset) {
		model := kmeans.Train(rows, kmeans.Params{VectorCol: "name", K: 1})
		kmeans.Train(model, kmeans.Params{VectorCol: "features", K: 1})
		kmeans.Predict(rows, model, kmeans.PredictOptions{})
		kmeans.Predict(model, model, kmeans.PredictOptions{})
	})
	require.NotContains(t, got, "errors:")
}

func TestBadRows(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	good := []float64{1, 2}
	weighted := func(w ...float64) data {
		m := data{d: 1, w: w, n: len(w)}
		for i := range w {
			m.x = append(m.x, float64(i))
		}
		return m
	}
	k := func(k int) kmeans.Params { return kmeans.Params{K: k} }
	given := func(c ...[]float64) kmeans.Params { return kmeans.Params{Init: kmeans.Given, Centers: c} }
	cosine := kmeans.Params{K: 1, Distance: kmeans.Cosine}
	empty := data{d: 2}
	emptySparse := data{d: 2, sparse: true}
	emptyWeighted := data{d: 2, w: []float64{}}
	ragged := rowsOf(good, good)
	ragged.unsized = true
	unsizedSparse := rowsOf([]float64{0, 1, 2})
	unsizedSparse.sparse, unsizedSparse.unsized = true, true
	noEntries := rowsOf([]float64{0})
	noEntries.sparse, noEntries.unsized = true, true
	for _, c := range []struct {
		m    data
		p    kmeans.Params
		want []string
	}{
		{rowsOf(good, good, []float64{1, nan}), k(1), []string{"KMeansPoints", "shard 2", `row 0 of the shard: column "features": component 1 is NaN; set NonFinite to Skip`}},
		{rowsOf([]float64{inf, 1}), k(1), []string{`component 0 is -Inf`}},
		{rowsOf([]float64{math.Inf(1), 1}), k(1), []string{`component 0 is +Inf`}},
		{data{n: 1, d: 3, x: []float64{0, 0, nan}, sparse: true}, k(1), []string{`component 2 is NaN`}},
		{data{n: 1, d: 3, x: []float64{0, nan, 1}, unsized: true}, k(1), []string{`component 1 is NaN`}},
		{rowsOf(good, []float64{0, 0}), cosine, []string{`row 0 of the shard: column "features" is a vector of zeros, which has no direction`}},
		{data{n: 1, d: 3, x: []float64{0, 0, 0}, sparse: true}, cosine, []string{"vector of zeros"}},
		{data{n: 1, d: 3, x: []float64{0, 0, 0}, unsized: true}, cosine, []string{"vector of zeros"}},
		{weighted(1, -1), k(1), []string{`row 0 of the shard: column "weight": the weight is -1; a weight is 0 or more`}},
		{weighted(1, nan), k(1), []string{"the weight is NaN"}},
		{weighted(math.Inf(1)), k(1), []string{"the weight is +Inf"}},
		{weighted(0, 0), k(1), []string{`every weight in column "weight" is 0`}},
		{weighted(0, 0), given([]float64{1}), []string{`every weight in column "weight" is 0`}},
		{weighted(math.MaxFloat64, math.MaxFloat64), k(1), []string{"exceed the range of float64"}},
		{weighted(math.MaxFloat64, math.MaxFloat64), given([]float64{1}), []string{"exceed the range of float64"}},
		{rowsOf([]float64{1e200}, []float64{-1e200}), k(2), []string{`sums over column "features" exceed the range of float64: scale`}},
		{rowsOf([]float64{1e200}, []float64{-1e200}), kmeans.Params{K: 2, Init: kmeans.KMeansPlusPlus}, []string{"exceed the range"}},
		{rowsOf([]float64{1e308}, []float64{1e308}, []float64{1.1e308}), kmeans.Params{K: 1, Init: kmeans.Random}, []string{"exceed the range"}},
		{rowsOf([]float64{1e20, 0}, []float64{2e20, 0}), kmeans.Params{K: 2, Precision: kmeans.Single}, []string{"exceed the range of float32: scale the features down, or use double precision"}},
		{rowsOf([]float64{1e8}, []float64{1e8 + 1}), kmeans.Params{K: 2, Precision: kmeans.Single}, []string{"2 clusters are more than the 1 distinct point of positive weight that float32 tells apart: lower K, or use double precision"}},
		{empty, k(1), []string{"there are no rows to cluster"}},
		{emptySparse, k(1), []string{"there are no rows to cluster"}},
		{emptyWeighted, k(1), []string{"there are no rows to cluster"}},
		{empty, given(good), []string{"there are no rows to cluster"}},
		{empty, kmeans.Params{K: 1, Init: kmeans.Random}, []string{"there are no rows to cluster"}},
		{empty, kmeans.Params{K: 1, Init: kmeans.KMeansPlusPlus}, []string{"there are no rows to cluster"}},
		{rowsOf([]float64{nan}), kmeans.Params{K: 1, NonFinite: kmeans.Skip}, []string{"there are no rows to cluster: the input is empty, or every row was skipped"}},
		{ragged, given([]float64{1}), []string{`row 0 of the shard: column "features" has 2 components, the centres have 1`}},
		{unsizedSparse, given(good), []string{`row 0 of the shard: column "features" has 3 components, the centres have 2`}},
		{noEntries, k(1), []string{"the vectors have no components"}},
	} {
		_, err := tryTrain(t, c.m, c.p, engine.Parallelism(3))
		require.Error(t, err)
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestMoreClustersThanPoints(t *testing.T) {
	m := rowsOf([]float64{1}, []float64{2}, []float64{1}, []float64{3}, []float64{2})
	m.w = []float64{1, 1, 1, 1, 1}
	extra := data{n: 6, d: 1, x: append(append([]float64(nil), m.x...), 4), w: []float64{1, 1, 1, 1, 1, 0}}
	for _, p := range []kmeans.Params{
		{K: 5}, {K: 5, Init: kmeans.KMeansPlusPlus}, {K: 5, Init: kmeans.Random},
		{Init: kmeans.Given, Centers: [][]float64{{1}, {2}, {3}, {4}, {5}}},
		{Init: kmeans.Given, Centers: [][]float64{{0}, {-1}, {-2}, {-3}, {-4}}},
	} {
		for _, points := range []data{m, extra} {
			_, err := tryTrain(t, points, p, engine.Parallelism(2))
			require.ErrorContains(t, err, "5 clusters are more than the 3 distinct points of positive weight: lower K", "%v", p.Init)
		}
	}
	same := rowsOf([]float64{1, 1}, []float64{3, 3}, []float64{0.1, 0.1})
	for _, init := range []kmeans.Init{kmeans.KMeansParallel, kmeans.KMeansPlusPlus, kmeans.Random} {
		_, err := tryTrain(t, same, kmeans.Params{K: 2, Init: init, Distance: kmeans.Cosine})
		require.ErrorContains(t, err, "2 clusters are more than the 1 distinct direction of positive weight")
		_, err = tryTrain(t, same, kmeans.Params{K: 4, Init: init})
		require.ErrorContains(t, err, "4 clusters are more than the 3 distinct points")
	}
	// Points whose squared distance is below the smallest float64 are treated as one point. The
	// message must say so.
	tiny := rowsOf([]float64{1e-170}, []float64{2e-170}, []float64{0})
	for _, p := range []kmeans.Params{
		{K: 2}, {K: 2, Init: kmeans.KMeansPlusPlus}, {Init: kmeans.Given, Centers: [][]float64{{0}, {1}}},
	} {
		_, err := tryTrain(t, tiny, p)
		require.ErrorContains(t, err, "points less than about 1e-160 apart count as one: scale such features up", "%v", p.Init)
	}
	// By rounding, the mean of equal rows may differ from the rows. One cluster then gets no
	// row and stays empty. Training must end nevertheless.
	tenths := rowsOf([]float64{0.1}, []float64{0.1}, []float64{0.1}, []float64{7})
	o, err := tryTrain(t, tenths, kmeans.Params{Init: kmeans.Given, Centers: [][]float64{{0}, {1}, {8}}})
	if err != nil {
		require.ErrorContains(t, err, "3 clusters are more than the 2 distinct points")
	} else {
		require.Contains(t, o.model.Sizes, 0.0)
		require.Less(t, o.model.Iterations, 10)
	}
}

func TestRaggedRows(t *testing.T) {
	type row struct{ Features []float64 }
	job := engine.Define("ragged", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(kmeans.Train(operators.FromSlice(b, []row{{[]float64{1, 2}}, {[]float64{1}}, {[]float64{4, 5}}}), kmeans.Params{VectorCol: "features", K: 1}), "model")
		return nil
	})
	_, err := engine.Run(context.Background(), job, struct{}{}, engine.Shards(1))
	require.ErrorContains(t, err, `row 1 of the shard: column "features" has 1 components, the centres have 2`)
}

func TestSkippedRows(t *testing.T) {
	m := rowsOf([]float64{1, 2}, []float64{math.NaN(), 2}, []float64{3, 2}, []float64{0, math.Inf(1)}, []float64{5, 5})
	m.w = []float64{1, 5, 1, 5, 0}
	for _, sparse := range []bool{false, true} {
		m.sparse = sparse
		job := engine.Define("skip", func(b *engine.Builder, _ struct{}) error {
			points := m.dataset(b)
			model := kmeans.Train(points, kmeans.Params{VectorCol: "features", WeightCol: "weight", K: 1, NonFinite: kmeans.Skip})
			engine.Collect(model, "model")
			engine.Collect(kmeans.Predict(points, model, kmeans.PredictOptions{NonFinite: kmeans.Skip}), "predictions")
			return nil
		})
		r, err := engine.Run(context.Background(), job, struct{}{}, checked(t), engine.Shards(1))
		require.NoError(t, err)
		model, err := kmeans.ModelOf(r, "model")
		require.NoError(t, err)
		require.Equal(t, [][]float64{{2, 2}}, model.Centers)
		require.Equal(t, []float64{2}, model.Sizes)
		type nullable struct {
			Cluster  *int64
			Distance *float64
		}
		rows, err := engine.Rows[nullable](r, "predictions")
		require.NoError(t, err)
		for i, row := range rows {
			require.Equal(t, i == 1 || i == 3, row.Cluster == nil)
			require.Equal(t, i == 1 || i == 3, row.Distance == nil)
		}
		require.Equal(t, 1.0, *rows[0].Distance)
		r.Release()
	}
	// Rows are numbered within their shard, regardless of the batches.
	m.sparse = false
	for _, rows := range []int{1, 2, 100} {
		options := []engine.Option{engine.Shards(1), engine.BatchRows(rows)}
		_, err := tryTrain(t, m, kmeans.Params{K: 1, NonFinite: kmeans.Skip}, options...)
		require.ErrorContains(t, err, `row 1 of the shard: column "features": component 0 is NaN; set NonFinite to Skip to give such rows no cluster`)
		_, err = tryTrain(t, m, kmeans.Params{K: 1}, options...)
		require.ErrorContains(t, err, `row 1 of the shard: column "features": component 0 is NaN; set NonFinite to Skip to train`)
	}
}
