package algorithm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// factorisations returns all ways to write p as a product of numbers above 1, in all orders.
func factorisations(p int) [][]int {
	if p == 1 {
		return [][]int{{}}
	}
	var all [][]int
	for d := 2; d <= p; d++ {
		if p%d == 0 {
			for _, rest := range factorisations(p / d) {
				all = append(all, append([]int{d}, rest...))
			}
		}
	}
	return all
}

// provedWith proves the programs of an algorithm with the parameters pr, and reports whether
// they fold in the canonical tree.
func provedWith(t *testing.T, a *algorithm.Algorithm, pr algorithm.Params) bool {
	report, err := check.InspectAlgorithm(a, pr)
	require.NoError(t, err)
	return report.Canonical
}

// TestBlueConnectOnEveryGrid requires that BlueConnect claims the canonical tree for p ranks if
// and only if it folds in that tree on every grid.
func TestBlueConnectOnEveryGrid(t *testing.T) {
	a := find(t, program.AllReduce, "blueconnect")
	most := 24
	if testsize.Soak {
		most = 64
	}
	for p := 1; p <= most; p++ {
		canonical := true
		for _, dims := range factorisations(p) {
			canonical = provedWith(t, a, algorithm.Params{P: p, Dims: dims}) && canonical
		}
		require.Equal(t, canonical, a.Canonical(p), p)
	}
	require.NoError(t, check.Algorithm(a, algorithm.Params{P: 12, Dims: []int{1, 3, 1, 4}}))
}

func TestTorusOfEveryShape(t *testing.T) {
	a := find(t, program.AllReduce, "torus")
	for p := 1; p <= upTo(30); p++ {
		canonical := true
		for x := 1; x <= p; x++ {
			if p%x == 0 {
				canonical = provedWith(t, a, algorithm.Params{P: p, Dims: []int{x, p / x}}) && canonical
			}
		}
		require.Equal(t, canonical, a.Canonical(p), p)
	}
}

func TestHierarchyOfEveryGroupSize(t *testing.T) {
	a := find(t, program.AllReduce, "hierarchical")
	most := 18
	if testsize.Soak {
		most = 60
	}
	for p := 1; p <= most; p++ {
		canonical := true
		for k := 1; k <= p; k++ {
			canonical = provedWith(t, a, algorithm.Params{P: p, Dims: []int{k}}) && canonical
		}
		require.Equal(t, canonical, a.Canonical(p), p)
	}
}

func TestDefaultDimensions(t *testing.T) {
	dims := func(name string, p int) []int {
		return find(t, program.AllReduce, name).Generate(algorithm.Params{P: p}, 0).Dims
	}
	require.Equal(t, []int{3, 4}, dims("torus", 12))
	require.Equal(t, []int{64, 64}, dims("torus", 4096))
	require.Equal(t, []int{1, 3}, dims("torus", 3))
	require.Equal(t, []int{2, 2, 3}, dims("blueconnect", 12))
	require.Equal(t, []int{4}, dims("hierarchical", 12))
	require.Equal(t, []int{3}, dims("hierarchical", 9))
}

func TestDimensionsThatDoNotFit(t *testing.T) {
	for _, x := range []struct {
		name, message string
		p             int
		dims          []int
	}{
		{"torus", "7 ranks make no torus, for the number is prime", 7, nil},
		{"torus", "dimensions [2 3] do not make a grid of 8 ranks", 8, []int{2, 3}},
		{"torus", "3 dimensions [2 2 2]", 8, []int{2, 2, 2}},
		{"torus", "a dimension of -2 among 8 ranks", 8, []int{-2, -4}},
		{"blueconnect", "dimensions [2 2] do not make a grid of 6 ranks", 6, []int{2, 2}},
		{"blueconnect", "dimensions [6 6 6", 6, []int{6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}},
		{"blueconnect", "a dimension of 0 among 6 ranks", 6, []int{0}},
		{"hierarchical", "want one, the size of a group, from 1 to 6", 6, []int{7}},
		{"hierarchical", "want one, the size of a group", 6, []int{2, 3}},
	} {
		err := find(t, program.AllReduce, x.name).Supports(algorithm.Params{P: x.p, Dims: x.dims})
		require.ErrorContains(t, err, x.message)
	}
}

// TestDimensionsAreAgreedOn requires that programs with different dimensions have different
// group hashes. By these hashes ranks detect that they were given different dimensions.
func TestDimensionsAreAgreedOn(t *testing.T) {
	a := find(t, program.AllReduce, "torus")
	x := a.Generate(algorithm.Params{P: 12, Dims: []int{2, 6}}, 0)
	y := a.Generate(algorithm.Params{P: 12, Dims: []int{4, 3}}, 1)
	require.NotEqual(t, x.GroupHash(), y.GroupHash())
	z := a.Generate(algorithm.Params{P: 12}, 0)
	require.Equal(t, a.Generate(algorithm.Params{P: 12, Dims: []int{3, 4}}, 1).GroupHash(), z.GroupHash())
}
