package plan

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// exercise calls every function of this package on an arbitrary graph. No function may panic.
// If Validate accepts the graph, Compile must return a plan that passes all checks.
func exercise(t require.TestingT, g *Graph, parallelism int) {
	valid := g.Validate()
	require.NotEmpty(t, g.Text()+g.DOT()+g.Fingerprint()+Diff(g, &Graph{Job: g.Job + "'"}))
	p, err := Compile(g, parallelism)
	if valid != nil {
		require.Error(t, err)
		require.NotEmpty(t, Misuses(valid))
		require.LessOrEqual(t, len(Misuses(valid)), maxMisuses+1)
		return
	}
	if parallelism < 1 || parallelism > g.Shards {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	require.NoError(t, p.check())
	require.NoError(t, waitingCycle(p))
	checkChains(t, g, p)
	checkEdges(t, g, p)
	checkShares(t, g, p)
	require.NotEmpty(t, p.Text()+p.DOT())
}

// TestHostileGraphs damages valid graphs in a few places, which it finds by reflection. The
// damaged graphs are almost valid, so they test the limits of every rule of Validate.
func TestHostileGraphs(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		g := clone(t, randomGraph(t))
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			damage(t, reflect.ValueOf(g).Elem())
		}
		if g.Validate() == nil {
			accepted++
		}
		exercise(t, g, rapid.IntRange(0, 5).Draw(t, "parallelism"))
	})
	require.Positive(t, accepted, "Validate must accept some damaged graphs, or Compile is not tested with them")
}

// damage changes one leaf or one list within v.
func damage(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		damage(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")))
	case reflect.Slice:
		n := v.Len()
		if n == 0 {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			return
		}
		i := rapid.IntRange(0, n-1).Draw(t, "index")
		switch rapid.IntRange(0, 9).Draw(t, "list") {
		case 0:
			v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, n)))
		case 1:
			v.Set(reflect.Append(v, v.Index(i)))
		case 2:
			j := rapid.IntRange(0, n-1).Draw(t, "other")
			x, y := reflect.ValueOf(v.Index(i).Interface()), reflect.ValueOf(v.Index(j).Interface())
			v.Index(i).Set(y)
			v.Index(j).Set(x)
		default:
			damage(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "queue 0", "queue 1", "k", "x", "v", "Collect", "\xff", "int64", "vector[2]"}).Draw(t, "text"))
	case reflect.Int:
		v.SetInt(rapid.SampledFrom([]int64{-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1 << 40, -1 << 63}).Draw(t, "number"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}
