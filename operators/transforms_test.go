package operators

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// sizes has the numbers of rows that tests of operators use: no rows, fewer rows than shards,
// and many rows.
var sizes = []int{0, 3, 100}

func TestFilter(t *testing.T) {
	type named struct{ ID int64 }
	for name, keep := range map[string]func(named) bool{
		"some": func(f named) bool { return f.ID%3 == 1 || f.ID > 70 && f.ID < 80 },
		"none": func(named) bool { return false },
		"all":  func(named) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range sizes {
				var want []string
				for i, f := range flowers(n) {
					if keep(named{f.ID}) {
						want = append(want, f.text(place(i, n)))
					}
				}
				requireRows(t, flowerColumns, want, func(b *engine.Builder) *engine.Dataset {
					return Filter(FromSlice(b, flowers(n)), keep)
				})
			}
		})
	}
}

func TestFilterMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Filter(FromSlice(b, flowers(3)), func(struct{ Idd int64 }) bool { return true })
	}, "transforms_test.go:", "Filter", `did you mean "id"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Filter[flower](FromSlice(b, flowers(3)), nil)
	}, "Filter: the function is nil")
	operator := func(d *engine.Dataset) *engine.Dataset { return Filter(d, func(flower) bool { return true }) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

// repeat emits a row ID modulo 4 times, and returns an error if the ID is -1.
func repeat(f flower, emit func(petal)) error {
	for k := range f.ID % 4 {
		emit(petal{f.Name, float64(k)})
	}
	return nil
}

func TestFlatMap(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i, f := range flowers(n) {
			for k := range i % 4 {
				want = append(want, line(place(i, n), f.Name, k))
			}
		}
		requireRows(t, "key utf8 | area float64", want, func(b *engine.Builder) *engine.Dataset {
			return FlatMap(FromSlice(b, flowers(n)), repeat)
		})
	}
}

// TestFlatMapReusesSlices requires that f may emit the same slice several times, with different
// values each time.
func TestFlatMapReusesSlices(t *testing.T) {
	requireRows(t, "value vector", []string{"7 | [0 0]", "7 | [1 2]", "7 | [2 4]"}, func(b *engine.Builder) *engine.Dataset {
		return FlatMap(FromSlice(b, []int64{3}), func(n int64, emit func([]float64)) error {
			v := make([]float64, 2)
			for i := range n {
				v[0], v[1] = float64(i), float64(2*i)
				emit(v)
			}
			return nil
		})
	})
}

// TestFlatMapBoundsBatches requires that many rows that replace one row are emitted in several
// batches.
func TestFlatMapBoundsBatches(t *testing.T) {
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(FlatMap(FromSlice(b, []int64{1000}), func(n int64, emit func(int64)) error {
			for i := range n {
				emit(i)
			}
			return nil
		}), "out")
		return nil
	}), struct{}{}, engine.BatchRows(7), engine.Allocator(batchtest.Allocator(t)))
	require.NoError(t, err)
	defer result.Release()
	recs, err := recordsOf(result, "out")
	require.NoError(t, err)
	require.Len(t, recs, 143)
	for _, rec := range recs {
		require.LessOrEqual(t, rec.NumRows(), int64(7))
	}
}

func TestFlatMapFailures(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return FlatMap(FromSlice(b, flowers(100)), func(f flower, emit func(petal)) error {
				if f.ID == 42 {
					return errBoom
				}
				return nil
			})
		}, opts...)
		require.ErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "shard 3: row 5 of the shard: boom")
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return FlatMap(FromSlice(b, flowers(100)), func(f flower, emit func(flower)) error {
				emit(f)
				if f.ID == 42 {
					f.Size = nil
					emit(f)
					emit(f)
				}
				return nil
			})
		}, opts...)
		require.ErrorContains(t, err, `shard 3: row 5 of the shard: column "size"`)
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return FlatMap(FromSlice(b, flowers(100)), func(f flower, emit func(flower)) error {
				if f.ID == 42 {
					panic("user code gave up")
				}
				return nil
			})
		}, opts...)
		require.ErrorContains(t, err, "user code gave up")
	})
}

// TestEmitOutsideTheCall requires that emit panics outside of a call of the function, as it
// cannot return an error.
func TestEmitOutsideTheCall(t *testing.T) {
	codec, ok := outputRows[petal]("FlatMap", nil)
	require.True(t, ok)
	e := emitter[petal]{out: rowWriter[petal]{codec: codec}}
	e.open(&engine.Context{BatchRows: 10, Allocator: batchtest.Allocator(t)})
	e.begin(0, nil)
	require.NoError(t, e.end(nil))
	require.PanicsWithError(t, "a row was emitted outside the call that may emit it", func() { e.emit(petal{}) })
}

func TestFlatMapMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FlatMap[flower, petal](FromSlice(b, flowers(3)), nil)
	}, "FlatMap: the function is nil")
	operator := func(d *engine.Dataset) *engine.Dataset { return FlatMap(d, repeat) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func TestSelect(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i, f := range flowers(n) {
			var width any
			if f.Width != nil {
				width = *f.Width
			}
			want = append(want, line(place(i, n), width, f.ID))
		}
		requireRows(t, "width float64 null | id int64", want, func(b *engine.Builder) *engine.Dataset {
			return Select(FromSlice(b, flowers(n)), "width", "id")
		})
	}
}

func TestSelectMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Select(FromSlice(b, flowers(3)), "id", "widht")
	}, "transforms_test.go:", "Select", `no column "widht"; did you mean "width"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Select(FromSlice(b, flowers(3)), "id", "name", "id")
	}, `Select: column "id" is named twice`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Select(FromSlice(b, flowers(3)))
	}, "Select: no column is named")
	operator := func(d *engine.Dataset) *engine.Dataset { return Select(d, "id") }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func TestRename(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i, f := range flowers(n) {
			want = append(want, f.text(place(i, n)))
		}
		requireRows(t, "id int64 | title utf8 | width float64 null | size vector[2]", want, func(b *engine.Builder) *engine.Dataset {
			return Rename(Rename(FromSlice(b, flowers(n)), "name", "title"), "id", "id")
		})
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Rename(FromSlice(b, flowers(3)), "nam", "title")
	}, `Rename: no column "nam"; did you mean "name"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Rename(FromSlice(b, flowers(3)), "name", "id")
	}, `Rename: column "id" exists already`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Rename(FromSlice(b, flowers(3)), "name", "")
	}, "Rename: the new column has no name")
	operator := func(d *engine.Dataset) *engine.Dataset { return Rename(d, "id", "key") }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func TestWithColumn(t *testing.T) {
	type sized struct{ Size []float64 }
	for _, n := range sizes {
		var added, replaced []string
		for i, f := range flowers(n) {
			added = append(added, f.text(place(i, n))+" | "+line(f.Size[0]+f.Size[1]))
			f.Name = ""
			text := f.text(place(i, n))
			if i%2 == 1 {
				text = line(place(i, n), f.ID, nil) + text[len(line(place(i, n), f.ID, "")):]
			} else {
				text = line(place(i, n), f.ID, f.Size[0]) + text[len(line(place(i, n), f.ID, "")):]
			}
			replaced = append(replaced, text)
		}
		requireRows(t, flowerColumns+" | sum float64", added, func(b *engine.Builder) *engine.Dataset {
			return WithColumn(FromSlice(b, flowers(n)), "sum", func(s sized) float64 { return s.Size[0] + s.Size[1] })
		})
		requireRows(t, "id int64 | name float64 null | width float64 null | size vector[2]", replaced, func(b *engine.Builder) *engine.Dataset {
			return WithColumn(FromSlice(b, flowers(n)), "name", func(f flower) *float64 {
				if f.ID%2 == 1 {
					return nil
				}
				return &f.Size[0]
			})
		})
	}
}

func TestWithColumnMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return WithColumn(FromSlice(b, flowers(3)), "p", toPetal)
	}, "WithColumn: operators.petal has fields")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return WithColumn(FromSlice(b, flowers(3)), "", func(f flower) int64 { return f.ID })
	}, "WithColumn: the new column has no name")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return WithColumn[flower, int64](FromSlice(b, flowers(3)), "x", nil)
	}, "WithColumn: the function is nil")
	operator := func(d *engine.Dataset) *engine.Dataset {
		return WithColumn(d, "x", func(f flower) int64 { return f.ID })
	}
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func TestUnion(t *testing.T) {
	type other struct { // has the columns of flower, but other columns are nullable
		ID    *int64
		Name  string
		Width float64
		Size  []float64 `column:"size,dim=2"`
	}
	for _, n := range sizes {
		var want []string
		for s := range testShards {
			for i, f := range flowers(n) {
				if place(i, n) == s {
					want = append(want, f.text(s))
				}
			}
			if s == testShards-1 {
				want = append(want, line(s, nil, "x", 1.5, "[1 2]"))
			}
			for i, f := range flowers(n) {
				if place(i, n) == s {
					want = append(want, f.text(s))
				}
			}
		}
		requireRows(t, "id int64 null | name utf8 | width float64 null | size vector[2]", want, func(b *engine.Builder) *engine.Dataset {
			a := FromSlice(b, flowers(n))
			return Union(a, FromSlice(b, []other{{nil, "x", 1.5, []float64{1, 2}}}), a)
		})
		var alone []string
		for i, f := range flowers(n) {
			alone = append(alone, f.text(place(i, n)))
		}
		requireRows(t, flowerColumns, alone, func(b *engine.Builder) *engine.Dataset {
			return Union(FromSlice(b, flowers(n)))
		})
	}
}

func TestUnionMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		a := FromSlice(b, flowers(3))
		return Union(a, a, Rename(a, "name", "title"))
	}, `Union: dataset 3 has other columns than dataset 1: column 2 is "title utf8" instead of "name utf8"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		a := FromSlice(b, flowers(3))
		return Union(a, Select(a, "id"))
	}, "there are 1 columns instead of 4")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Union(FromSlice(b, flowers(3)), nil)
	}, "Union: dataset 2 is nil")
	requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset {
		return Union(FromSlice(d.Builder(), flowers(3)), d)
	})
	requireNilDataset(t, func(d *engine.Dataset) *engine.Dataset { return Union(d, d) })
}

func TestRebalance(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for to := range testShards {
			for from := range testShards {
				j := 0
				for i, f := range flowers(n) {
					if place(i, n) != from {
						continue
					}
					if (from+j)%testShards == to {
						want = append(want, f.text(to))
					}
					j++
				}
			}
		}
		requireRows(t, flowerColumns, want, func(b *engine.Builder) *engine.Dataset {
			return Rebalance(FromSlice(b, flowers(n)))
		})
	}
	requirePoisonSpreads(t, Rebalance)
	requireNilDataset(t, Rebalance)
}
