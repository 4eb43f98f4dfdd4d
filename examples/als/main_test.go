package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// table has the ratings as a dense matrix, with NaN for missing ratings. Users and items count
// from 1.
type table [][]float64

func readTable(t *testing.T, path string) table {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return v
	}
	users, items := 0, 0
	for _, l := range lines[1:] {
		users, items = max(users, int(number(l[0]))), max(items, int(number(l[1])))
	}
	all := make(table, users)
	for u := range all {
		all[u] = make([]float64, items)
		for i := range all[u] {
			all[u][i] = math.NaN()
		}
	}
	for _, l := range lines[1:] {
		all[int(number(l[0]))-1][int(number(l[1]))-1] = number(l[2])
	}
	return all
}

func (x table) transposed() table {
	y := make(table, len(x[0]))
	for i := range y {
		for _, row := range x {
			y[i] = append(y[i], row[i])
		}
	}
	return y
}

// fit returns the factors of the rows of x for given factors of the columns, computed by
// Gaussian elimination. Rows without ratings keep their factors, which are in old.
func (x table) fit(old, columns [][]float64, lambda float64) [][]float64 {
	rows := make([][]float64, len(x))
	for u, ratings := range x {
		k := len(columns[0])
		a := make([][]float64, k)
		for i := range a {
			a[i] = make([]float64, k+1)
		}
		n := 0
		for c, r := range ratings {
			if math.IsNaN(r) {
				continue
			}
			n++
			for i, f := range columns[c] {
				for j, g := range columns[c] {
					a[i][j] += f * g
				}
				a[i][i] += lambda
				a[i][k] += f * r
			}
		}
		if rows[u] = old[u]; n > 0 {
			rows[u] = eliminate(a)
		}
	}
	return rows
}

func eliminate(a [][]float64) []float64 {
	k := len(a)
	for i := range k {
		for j := range k {
			if j == i {
				continue
			}
			f := a[j][i] / a[i][i]
			for c := i; c <= k; c++ {
				a[j][c] -= f * a[i][c]
			}
		}
	}
	x := make([]float64, k)
	for i := range x {
		x[i] = a[i][k] / a[i][i]
	}
	return x
}

func product(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// reference does the whole computation sequentially on dense matrices. It returns the
// recommendations by user, and the squared misfit after each step.
func reference(x table, a args) (best map[int64]recommendation, squares []float64) {
	draws := sharding.NewRandom(a.Seed, "first factors", -1, 0)
	items, users := make([][]float64, len(x[0])), make([][]float64, len(x))
	for i := range items {
		for range a.Factors {
			items[i] = append(items[i], draws.NormFloat64())
		}
	}
	for range a.Steps {
		users = x.fit(users, items, a.Lambda)
		items = x.transposed().fit(items, users, a.Lambda)
		sum := 0.0
		for u := range x {
			for i, r := range x[u] {
				if !math.IsNaN(r) {
					sum += math.Pow(r-product(users[u], items[i]), 2)
				}
			}
		}
		squares = append(squares, sum)
	}
	best = map[int64]recommendation{}
	for u := range x {
		b := recommendation{Rating: math.Inf(-1)}
		for i, r := range x[u] {
			if guess := product(users[u], items[i]); math.IsNaN(r) && users[u] != nil && guess > b.Rating {
				b = recommendation{int64(u) + 1, int64(i) + 1, guess}
			}
		}
		if b.Item > 0 {
			best[b.User] = b
		}
	}
	return best, squares
}

func run(t *testing.T, a args, p int) ([]recommendation, []float64) {
	t.Helper()
	r, err := engine.Run(t.Context(), job, a, engine.Parallelism(p))
	require.NoError(t, err)
	defer r.Release()
	rows, err := engine.Rows[recommendation](r, "recommendations")
	require.NoError(t, err)
	return rows, r.Series("als", "squares")
}

func check(t *testing.T, a args, path string) {
	t.Helper()
	rows, squares := run(t, a, 1)
	best, want := reference(readTable(t, path), a)
	require.InEpsilonSlice(t, want, squares, 1e-8)
	require.Len(t, rows, len(best))
	for _, got := range rows {
		require.Equal(t, best[got.User].Item, got.Item, "the item of user %d must equal the item of the reference", got.User)
		require.InDelta(t, best[got.User].Rating, got.Rating, 1e-8, "the rating of user %d must equal the rating of the reference", got.User)
	}
	again, series := run(t, a, 3)
	require.Equal(t, rows, again)
	require.Equal(t, squares, series)
}

func TestRatings(t *testing.T) {
	a := args{Factors: 4, Lambda: 0.05, Steps: 15, Seed: 1}
	check(t, a, "data/ratings.csv")
	_, squares := run(t, a, 2)
	require.Less(t, squares[14], 100.0) // there are 1,184 ratings, each with noise of about 0.25
	other, _ := run(t, args{Factors: 4, Lambda: 0.05, Steps: 15, Seed: 2}, 2)
	first, _ := run(t, a, 2)
	require.NotEqual(t, first, other)
}

// TestFewRatings compares the results with the reference for ratings in which one user has a
// single rating, another has rated all items, and a user id is missing.
func TestFewRatings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ratings.csv")
	require.NoError(t, os.WriteFile(path, []byte("user,item,rating\n1,1,5\n1,2,4\n1,3,1\n1,4,2\n1,5,3\n2,5,1\n4,1,4\n4,2,4.5\n4,3,2\n"), 0o600))
	check(t, args{Input: path, Factors: 2, Lambda: 0.3, Steps: 4, Seed: 9}, path)
}

func TestBadRatings(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "there are no ratings",
		"1,0,3\n":          "user 1 rates item 0",
		"1,2000000,3\n":    "want items from 1 to 1048576",
		"1,1,inf\n":        "finite ratings",
		"1,1,3\n1,one,3\n": "ratings.csv",
	} {
		path := filepath.Join(t.TempDir(), "ratings.csv")
		require.NoError(t, os.WriteFile(path, []byte("user,item,rating\n"+text), 0o600))
		_, err := engine.Run(t.Context(), job, args{Input: path, Factors: 2, Lambda: 0.1, Steps: 2})
		require.ErrorContains(t, err, want, text)
	}
	for _, a := range []args{{Factors: 0, Lambda: 1, Steps: 1}, {Factors: 1, Lambda: 0, Steps: 1}, {Factors: 1, Lambda: math.NaN(), Steps: 1}, {Factors: 1, Lambda: 1}} {
		require.ErrorContains(t, a.Validate(), "must be")
	}
}

// TestState requires that the kept keys hold the whole state of the queue: the result must not
// change if all other objects are dropped between supersteps.
func TestState(t *testing.T) {
	a := args{Factors: 3, Lambda: 0.05, Steps: 3, Seed: 1}
	want, _ := run(t, a, 2)
	r, err := engine.Run(t.Context(), job, a, engine.Parallelism(2), engine.CheckState(true))
	require.NoError(t, err)
	defer r.Release()
	got, err := engine.Rows[recommendation](r, "recommendations")
	require.NoError(t, err)
	require.Equal(t, want, got)
}
