package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// size is a row of the dataset with the sizes of queries.
type size struct{ Size int32 }

// unnumbered is a row without a column for its query, which follows from its position.
type unnumbered struct{ A, B, Label float64 }

// inPlace returns the rows of queries of a few rows each in two forms: named has a column with
// the query; placed lacks this column, and sizes has the number of rows of each query.
func inPlace() (named []ranked, placed []unnumbered, sizes []size) {
	table := made(22, 90, 3)
	for i, query := 0, int64(0); i < table.N; query++ {
		n := min(int(query%5)+1, table.N-i)
		sizes = append(sizes, size{int32(n)})
		for range n {
			x := table.Row(i)
			label := math.Floor(min(4, max(0, 4*x[0])))
			named = append(named, ranked{query, x[0], x[2], label})
			placed = append(placed, unnumbered{x[0], x[2], label})
			i++
		}
	}
	return named, placed, sizes
}

// TestGroupsBySize requires that sizes of queries give the same groups as a column of queries,
// at any parallelism and with batches that end within queries.
func TestGroupsBySize(t *testing.T) {
	named, placed, sizes := inPlace()
	p := gbdt.Params{Objective: gbdt.LambdaMART, FeatureCols: []string{"a", "b"}, LabelCol: "label", GroupCol: "query", NumTrees: 3, MaxDepth: 3}
	want := trainRows(t, named, p)
	type numbered struct {
		Query int64
		A     float64
	}
	for _, options := range [][]engine.Option{nil, {engine.Parallelism(3), engine.BatchRows(4)}, {engine.Parallelism(8), engine.BatchRows(1)}} {
		r := trial.Run(t, func(b *engine.Builder) {
			d := gbdt.WithGroups(operators.FromSlice(b, placed), operators.FromSlice(b, sizes), "query")
			engine.Collect(d, "rows")
			engine.Collect(gbdt.Train(d, p), "model")
		}, options...)
		rows, err := engine.Rows[numbered](r, "rows")
		require.NoError(t, err)
		for i, row := range rows {
			require.Equal(t, numbered{named[i].Query, named[i].A}, row)
		}
		require.Len(t, rows, len(named))
		m, err := gbdt.ModelOf(r, "model")
		require.NoError(t, err)
		sameTrees(t, want, m)
	}
}

func TestGroupsThatAreWrong(t *testing.T) {
	_, placed, sizes := inPlace()
	fails := func(column string, sizes any, texts ...string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			var of *engine.Dataset
			switch s := sizes.(type) {
			case []size:
				of = operators.FromSlice(b, s)
			case []struct{ Size *int64 }:
				of = operators.FromSlice(b, s)
			case []struct{ Size uint64 }:
				of = operators.FromSlice(b, s)
			case []struct{ Size float64 }:
				of = operators.FromSlice(b, s)
			}
			engine.Collect(gbdt.WithGroups(operators.FromSlice(b, placed), of, column), "rows")
		}, texts...)
	}
	fails("query", sizes[1:], "sum to 89 rows, and there are 90")
	fails("query", append(sizes, size{3}), "sum to 93 rows, and there are 90")
	fails("query", []size{}, "the sizes of 0 queries sum to 0 rows")
	fails("query", []size{{91}, {-1}}, "the size of query 1 is -1")
	fails("query", []size{{90}, {0}}, "the size of query 1 is 0")
	fails("query", []struct{ Size *int64 }{{nil}}, "row 0 is null")
	fails("query", []struct{ Size uint64 }{{math.MaxUint64}}, "exceeds 63 bits")
	fails("query", []struct{ Size uint64 }{{math.MaxInt64}, {math.MaxInt64}}, "exceed 64 bits at query 1")
	fails("query", []struct{ Size float64 }{{90}}, "groups_test.go", "want one column, of integers")
	fails("query", nil, "groups_test.go", "the sizes are nil")
	fails("a", sizes, "groups_test.go", `column "a" exists already`)
}
