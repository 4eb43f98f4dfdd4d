package operators

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// flower is the row that most tests use. It has the kinds of columns on which most operators
// depend; one column is nullable.
type flower struct {
	ID    int64
	Name  string
	Width *float64
	Size  []float64 `column:"size,dim=2"`
}

// flowers returns n distinct rows; the width of every fifth row is null.
func flowers(n int) []flower {
	rows := make([]flower, n)
	for i := range rows {
		rows[i] = flower{ID: int64(i), Name: fmt.Sprintf("flower %d", i*i), Size: []float64{float64(i) / 4, -float64(i)}}
		if i%5 != 4 {
			w := float64(i) / 8
			rows[i].Width = &w
		}
	}
	return rows
}

const flowerColumns = "id int64 | name utf8 | width float64 null | size vector[2]"

// text returns the line that outcome returns for the flower in the given shard.
func (f flower) text(shard int) string {
	var width any
	if f.Width != nil {
		width = *f.Width
	}
	return line(shard, f.ID, f.Name, width, fmt.Sprintf("[%v %v]", f.Size[0], f.Size[1]))
}

type petal struct {
	Key  string
	Area float64
}

func toPetal(f flower) petal {
	p := petal{Key: f.Name + "!", Area: f.Size[0]}
	if f.Width != nil {
		p.Area += *f.Width
	}
	return p
}

func TestMap(t *testing.T) {
	for _, n := range []int{0, 1, 5, 100} {
		var want []string
		for i, f := range flowers(n) {
			p := toPetal(f)
			want = append(want, line(place(i, n), p.Key, p.Area))
		}
		requireRows(t, "key utf8 | area float64", want, func(b *engine.Builder) *engine.Dataset {
			return Map(FromSlice(b, flowers(n)), toPetal)
		})
		requireRows(t, "key utf8 | area float64", want, func(b *engine.Builder) *engine.Dataset {
			return MapErr(FromSlice(b, flowers(n)), func(f flower) (petal, error) { return toPetal(f), nil })
		})
	}
}

func TestMapOfSingleColumn(t *testing.T) {
	requireRows(t, "value float64", []string{"2 | 0.5", "5 | 1", "7 | 1.5"}, func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, []int64{1, 2, 3}), func(v int64) float64 { return float64(v) / 2 })
	})
}

var errBoom = errors.New("boom")

func TestMapErrTellsTheRow(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		// Row 37 of the 100 rows is the first row of shard 3, so row 42 has index 5 within the
		// shard.
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return MapErr(FromSlice(b, flowers(100)), func(f flower) (petal, error) {
				if f.ID == 42 {
					return petal{}, errBoom
				}
				return petal{}, nil
			})
		}, opts...)
		require.ErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "MapErr (map_test.go:")
		require.ErrorContains(t, err, "shard 3: row 5 of the shard: boom")
	})
}

func TestMapPanics(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return Map(FromSlice(b, flowers(100)), func(f flower) petal {
				if f.ID == 42 {
					panic("user code gave up")
				}
				return petal{}
			})
		}, opts...)
		require.ErrorContains(t, err, "user code gave up")
		require.ErrorContains(t, err, "shard 3")
	})
}

func TestMapRefusesNullsAndBadVectors(t *testing.T) {
	type needsWidth struct{ Width float64 }
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return Map(FromSlice(b, flowers(5)), func(w needsWidth) needsWidth { return w })
		}, opts...)
		require.ErrorContains(t, err, `shard 7: row 0 of the shard: column "width" is null, which operators.needsWidth cannot hold`)
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return Map(FromSlice(b, flowers(40)), func(f flower) flower {
				if f.ID == 11 {
					f.Size = f.Size[:1]
				}
				return f
			})
		}, opts...)
		require.ErrorContains(t, err, `shard 2: row 1 of the shard: column "size"`)
	})
}

func TestMapMisuse(t *testing.T) {
	type misspelt struct{ Widht float64 }
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, flowers(3)), func(misspelt) petal { return petal{} })
	}, "map_test.go:", `Map: operators.misspelt wants`, `did you mean "width"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, flowers(3)), func(struct{ Name float64 }) petal { return petal{} })
	}, `column "name" is utf8`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Map(FromSlice(b, flowers(3)), func(flower) map[string]int { return nil })
	}, "Map: map[string]int")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Map[flower, petal](FromSlice(b, flowers(3)), nil)
	}, "Map: the function is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapErr[flower, petal](FromSlice(b, flowers(3)), nil)
	}, "MapErr: the function is nil")
	requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset { return Map(d, toPetal) })
	requireNilDataset(t, func(d *engine.Dataset) *engine.Dataset { return Map(d, toPetal) })
}

// TestMapAllocatesPerBatchOnly requires about the same number of allocations in a run over many
// rows and in a run over few rows, if both have the same number of batches.
func TestMapAllocatesPerBatchOnly(t *testing.T) {
	run := func(rows int) float64 {
		values := make([]float64, rows)
		return testing.AllocsPerRun(3, func() {
			runOnly(t, func(b *engine.Builder) *engine.Dataset {
				return Map(FromSlice(b, values), func(v float64) float64 { return v + 1 })
			}, engine.Parallelism(1), engine.Shards(1), engine.BatchRows(rows))
		})
	}
	few, many := run(100), run(10000)
	require.Less(t, many-few, 1000.0, "%v allocations for 100 rows, %v for 10000: the number must not grow with the rows", few, many)
}
