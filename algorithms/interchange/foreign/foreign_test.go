package foreign_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/foreign"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// stump returns a tree with one split of feature 0.
func stump(output int32, threshold, left, right float64) tree.Tree {
	return tree.Tree{Output: output, Weight: 1, Nodes: []tree.Node{{Left: 1, Right: 2, Threshold: threshold}, {Value: left}, {Value: right}}}
}

func ensemble(outputs int, trees ...tree.Tree) *tree.Ensemble {
	return &tree.Ensemble{Features: []string{"f0"}, Outputs: outputs, Base: make([]float64, outputs), Trees: trees}
}

// This example passes notes about a model through the files of both libraries.
func Example() {
	e := ensemble(1, stump(0, 0, 1, -1))
	notes := foreign.Notes{Kind: "gbdt", LabelType: "utf8", Classes: []string{"no: 1", "yes = 2"}, Inputs: []model.Input{{Column: "my age", Type: "float64"}}}
	x, _ := xgboost.New(e, "binary:logistic", 0)
	l, _ := lightgbm.New(e, "binary", 0)
	x, err := notes.XGBoost(x)
	fmt.Println(err)
	l, err = notes.LightGBM(l)
	fmt.Println(err)
	file, _ := x.Encode()
	x, _ = xgboost.Decode(file)
	of, err := foreign.OfXGBoost(x, "gbdt")
	fmt.Println(of.Classes, err)
	file, _ = l.Encode()
	l, _ = lightgbm.Decode(file)
	of, err = foreign.OfLightGBM(l, "gbdt")
	fmt.Println(of.Inputs[0].Column, err)
	// Output:
	// <nil>
	// <nil>
	// [no: 1 yes = 2] <nil>
	// my age <nil>
}

// TestSingle requires that rounding thresholds to float32 does not change the leaves that rows
// of float32 reach.
func TestSingle(t *testing.T) {
	r := sharding.NewRandom(1, "thresholds", 0, 0)
	thresholds := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64}
	for range 2000 {
		x := r.NormFloat64() * math.Ldexp(1, r.IntN(300)-150)
		thresholds = append(thresholds, x, float64(float32(x)))
	}
	for _, v := range thresholds {
		e := ensemble(1, stump(0, v, 1, -1))
		s := foreign.Single(e)
		require.NoError(t, s.Validate())
		require.False(t, e.Single, "Single must not change its argument")
		at := float32(v)
		for _, x := range []float32{at, math.Nextafter32(at, float32(math.Inf(1))), math.Nextafter32(at, float32(math.Inf(-1))), 0} {
			if x != x {
				continue
			}
			require.Equal(t, float64(x) < v, s.Trees[0].Left(0, float64(x), true), "%v below %v", x, v)
		}
		require.Same(t, s, foreign.Single(s))
	}
}

func TestInRounds(t *testing.T) {
	e := ensemble(2, stump(1, 0, 3, 4), stump(0, 0, 1, 2), stump(0, 0, 5, 6), stump(1, 0, 7, 8))
	e.Average = true
	made, err := foreign.InRounds(e)
	require.NoError(t, err)
	a, b := make([]float64, 2), make([]float64, 2)
	for i, o := range []int32{0, 1, 0, 1} {
		require.Equal(t, o, made.Trees[i].Output)
	}
	for _, x := range []float64{-1, 1} {
		e.Scorer().Scores([]float64{x}, a)
		made.Scorer().Scores([]float64{x}, b)
		require.InDeltaSlice(t, a, b, 1e-15)
		foreign.Scaled(made, 3).Scorer().Scores([]float64{x}, b)
		require.InDeltaSlice(t, []float64{3 * a[0], 3 * a[1]}, b, 1e-14)
	}
	require.Equal(t, 1.0, e.Trees[0].Weight, "InRounds must not change its argument")
	e.Trees = e.Trees[:3]
	_, err = foreign.InRounds(e)
	require.ErrorContains(t, err, "output 1 has 1 trees, output 0 2")
	e.Trees[1].Values = make([]float64, 6)
	_, err = foreign.InRounds(e)
	require.ErrorContains(t, err, "tree 1 has values for several outputs")
	none, err := foreign.InRounds(ensemble(2))
	require.NoError(t, err)
	require.Empty(t, none.Trees)
}
