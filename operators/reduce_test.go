package operators

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
)

// expression is a row whose text shows how rows were combined.
type expression struct{ Text string }

func combine(left, right expression) expression {
	return expression{"(" + left.Text + " " + right.Text + ")"}
}

// expressionOf returns the expected expression of the rows in the shards [lo, hi), if n rows in
// memory are divided into shards. Within a shard, rows are combined in order; the results of
// several shards are combined from those of the lower and the upper half of the shards.
func expressionOf(shards, n, lo, hi int) string {
	if hi-lo > 1 {
		left, right := expressionOf(shards, n, lo, (lo+hi)/2), expressionOf(shards, n, (lo+hi)/2, hi)
		if left == "" || right == "" {
			return left + right
		}
		return "(" + left + " " + right + ")"
	}
	text := ""
	for i := lo * n / shards; i < hi*n/shards; i++ {
		if text == "" {
			text = fmt.Sprint(i)
		} else {
			text = fmt.Sprintf("(%s %d)", text, i)
		}
	}
	return text
}

func expressions(n int) []expression {
	rows := make([]expression, n)
	for i := range rows {
		rows[i].Text = fmt.Sprint(i)
	}
	return rows
}

func TestReduce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 5, 8, 100} {
		var want []string
		if n > 0 {
			want = []string{line(testShards-1, expressionOf(testShards, n, 0, testShards))}
		}
		requireRows(t, "text utf8", want, func(b *engine.Builder) *engine.Dataset {
			return Reduce(FromSlice(b, expressions(n)), combine)
		})
	}
}

func TestReduceProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shards := 1 << rapid.IntRange(0, 7).Draw(rt, "log shards")
		n := rapid.IntRange(1, 200).Draw(rt, "rows")
		p := rapid.IntRange(1, min(shards, 9)).Draw(rt, "parallelism")
		got := groupOutcome[expression](rt, func(b *engine.Builder) *engine.Dataset {
			return Reduce(FromSlice(b, expressions(n)), combine)
		}, engine.Shards(shards), engine.Parallelism(p), engine.BatchRows(rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "batch rows")), drawWorkers(rt))
		require.Equal(rt, []expression{{expressionOf(shards, n, 0, shards)}}, got)
	})
}

func TestReduceOfPlainValues(t *testing.T) {
	requireRows(t, "value int64", []string{"7 | 5050"}, func(b *engine.Builder) *engine.Dataset {
		values := make([]int64, 100)
		for i := range values {
			values[i] = int64(i + 1)
		}
		return Reduce(FromSlice(b, values), func(x, y int64) int64 { return x + y })
	})
}

func TestReduceMisuse(t *testing.T) {
	add := func(x, y float64) float64 { return x + y }
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Reduce(FromSlice(b, flowers(2)), add)
	}, "Reduce", `"value"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Reduce[float64](FromSlice(b, []float64{1}), nil)
	}, "Reduce: the function is nil")
	requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset { return Reduce(d, add) })
	requireNilDataset(t, func(d *engine.Dataset) *engine.Dataset { return Reduce(d, add) })
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return Reduce(FromSlice(b, []float64{1, 2}), func(x, y float64) float64 { panic("no idea") })
	})
	require.ErrorContains(t, err, "no idea")
}
