package operators

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// keepOdd returns the rows of a batch that have an odd id.
func keepOdd(c *engine.Context, rows arrow.Record) (arrow.Record, error) {
	ids := rows.Column(0).(*array.Int64)
	var kept []int32
	for i := range ids.Len() {
		if ids.Value(i)%2 == 1 {
			kept = append(kept, int32(i))
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return batch.Take(c.Allocator, rows, kept)
}

func TestMapBatch(t *testing.T) {
	for _, n := range sizes {
		var odd, all, ids []string
		for i, f := range flowers(n) {
			if i%2 == 1 {
				odd = append(odd, f.text(place(i, n)))
			}
			all = append(all, f.text(place(i, n)))
			ids = append(ids, line(place(i, n), i))
		}
		requireRows(t, flowerColumns, odd, func(b *engine.Builder) *engine.Dataset {
			return MapBatch(FromSlice(b, flowers(n)), engine.Schema{}, ofRecords(keepOdd))
		})
		requireRows(t, flowerColumns, all, func(b *engine.Builder) *engine.Dataset {
			return MapBatch(FromSlice(b, flowers(n)), engine.Schema{}, func(_ *engine.Context, in engine.Batch) (engine.Batch, error) {
				rows := arrowrows.Record(in)
				rows.Retain()
				return arrowrows.Batch(rows), nil
			})
		})
		requireRows(t, "id int64", ids, func(b *engine.Builder) *engine.Dataset {
			return MapBatch(FromSlice(b, flowers(n)), arrowrows.Schema(batchtest.Schema(t, "id int64")), func(_ *engine.Context, in engine.Batch) (engine.Batch, error) {
				made, err := batch.Select(arrowrows.Record(in), []int{0})
				return arrowrows.Batch(made), err
			})
		})
	}
}

func TestMapBatchFailures(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		fails := func(f func(*engine.Context, arrow.Record) (arrow.Record, error)) error {
			return runError(t, func(b *engine.Builder) *engine.Dataset {
				return MapBatch(FromSlice(b, []int64{7}), engine.Schema{}, ofRecords(f))
			}, opts...)
		}
		err := fails(func(_ *engine.Context, rows arrow.Record) (arrow.Record, error) {
			rows.Retain()
			return rows, errBoom // the operator releases the batch in spite of the error
		})
		require.ErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "shard 7: batch from row 0 of the shard on: boom")
		err = fails(func(_ *engine.Context, rows arrow.Record) (arrow.Record, error) {
			fields := rows.Schema().Fields()
			fields[0].Name = "other"
			return array.NewRecord(arrow.NewSchema(fields, nil), rows.Columns(), rows.NumRows()), nil
		})
		require.ErrorContains(t, err, `column 1 is "other int64" instead of "value int64"`)
		err = fails(func(_ *engine.Context, rows arrow.Record) (arrow.Record, error) {
			panic("user code gave up")
		})
		require.ErrorContains(t, err, "user code gave up")
	})
}

func TestMapBatchMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapBatch(FromSlice(b, flowers(3)), arrowrows.Schema(arrow.NewSchema([]arrow.Field{{Name: "x", Type: &arrow.MonthIntervalType{}}}, nil)), ofRecords(keepOdd))
	}, "MapBatch: the result", `column "x"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapBatch(FromSlice(b, flowers(3)), engine.Schema{}, nil)
	}, "MapBatch: the function is nil")
	operator := func(d *engine.Dataset) *engine.Dataset { return MapBatch(d, engine.Schema{}, ofRecords(keepOdd)) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

type shardMean struct {
	Index, Rows int64
	Mean        float64
	Above       int64 // number of rows above the mean; to count them, the function must read the rows a second time
}

func describeShard(s *Shard[float64], emit func(shardMean)) error {
	m := shardMean{Index: int64(s.Index), Rows: s.Len()}
	for v := range s.Rows() {
		m.Mean += v / float64(s.Len())
	}
	for v := range s.Rows() {
		if v > m.Mean {
			m.Above++
		}
	}
	for range s.Rows() {
		break // a function may stop reading before the last row
	}
	emit(m)
	return nil
}

func TestMapPartition(t *testing.T) {
	for _, n := range sizes {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i*i%17) / 16
		}
		var want []string
		for s := range testShards {
			m := shardMean{Index: int64(s)}
			var mine []float64
			for i, v := range values {
				if place(i, n) == s {
					mine = append(mine, v)
				}
			}
			for _, v := range mine {
				m.Mean += v / float64(len(mine))
			}
			for _, v := range mine {
				if v > m.Mean {
					m.Above++
				}
			}
			want = append(want, line(s, s, len(mine), m.Mean, m.Above))
		}
		requireRows(t, "index int64 | rows int64 | mean float64 | above int64", want, func(b *engine.Builder) *engine.Dataset {
			return MapPartition(FromSlice(b, values), describeShard)
		})
	}
}

func TestMapPartitionFailures(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return MapPartition(FromSlice(b, flowers(100)), func(s *Shard[flower], emit func(flower)) error {
				for f := range s.Rows() {
					if f.ID == 42 {
						return errBoom
					}
					emit(f)
				}
				return nil
			})
		}, opts...)
		require.ErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "shard 3: boom")
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return MapPartition(FromSlice(b, flowers(5)), func(s *Shard[struct{ Width float64 }], emit func(float64)) error {
				for range s.Rows() {
				}
				return errBoom
			})
		}, append(opts, engine.Parallelism(1), engine.Shards(1))...)
		require.ErrorContains(t, err, `row 4 of the shard: column "width" is null`)
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return MapPartition(FromSlice(b, flowers(100)), func(s *Shard[flower], emit func(flower)) error {
				for f := range s.Rows() {
					if f.ID == 42 {
						panic("user code gave up")
					}
				}
				return nil
			})
		}, opts...)
		require.ErrorContains(t, err, "user code gave up")
	})
}

func TestMapPartitionBeyondTheBudget(t *testing.T) {
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return MapPartition(FromSlice(b, make([]float64, 100_000)), describeShard)
	}, engine.MemoryBudget(50_000))
	require.ErrorContains(t, err, "hold the rows of a shard: out of memory")
}

func TestMapPartitionMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapPartition[float64, float64](FromSlice(b, []float64{1}), nil)
	}, "MapPartition: the function is nil")
	operator := func(d *engine.Dataset) *engine.Dataset { return MapPartition(d, describeShard) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

type mixed struct {
	F64  float64
	F32  *float32
	I    int64
	B    bool
	U    uint8
	Vec  []float64 `column:"vec,dim=2"`
	V32  []float32 `column:"v32,dim=1"`
	Text string
}

func mixedRows(n int) []mixed {
	rows := make([]mixed, n)
	for i := range rows {
		f := float32(i) / 2
		rows[i] = mixed{F64: -float64(i), F32: &f, I: int64(10 * i), B: i%3 == 0, U: uint8(i),
			Vec: []float64{float64(i) + 0.25, 7}, V32: []float32{0.5}, Text: fmt.Sprint(i)}
	}
	return rows
}

func TestVectorize(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i, r := range mixedRows(n) {
			one := 0
			if r.B {
				one = 1
			}
			want = append(want, line(place(i, n), r.Text,
				fmt.Sprintf("[%v %v %v %v %v %v %v %v]", r.U, r.Vec[0], r.Vec[1], one, r.I, *r.F32, 0.5, r.F64)))
		}
		requireRows(t, "text utf8 | features vector[8]", want, func(b *engine.Builder) *engine.Dataset {
			return Select(Vectorize(FromSlice(b, mixedRows(n)), "features", "u", "vec", "b", "i", "f32", "v32", "f64"), "text", "features")
		})
	}
	requireRows(t, "value float64 | twice vector[2]", []string{"7 | 3 | [3 3]"}, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(FromSlice(b, []float64{3}), "twice", "value", "value")
	})
}

func TestVectorizeAllNumbers(t *testing.T) {
	type ints struct {
		A int8
		B int16
		C int32
		D uint16
		E uint32
		F uint64
	}
	requireRows(t, "v vector[6]", []string{"7 | [-1 -2 -3 4 5 18446744073709552000]"}, func(b *engine.Builder) *engine.Dataset {
		return Select(Vectorize(FromSlice(b, []ints{{-1, -2, -3, 4, 5, 1<<64 - 1}}), "v", "a", "b", "c", "d", "e", "f"), "v")
	})
}

func TestVectorizeTellsTheNull(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			rows := mixedRows(100)
			rows[42].F32 = nil
			return Vectorize(FromSlice(b, rows), "features", "f64", "f32")
		}, opts...)
		require.ErrorContains(t, err, `shard 3: row 5 of the shard: column "f32" is null`)
		// If several values are null, the error must name the first row with a null, however
		// rows are divided into batches.
		type two struct{ A, B *float64 }
		one := 1.0
		rows := make([]two, 100)
		for i := range rows {
			rows[i] = two{&one, &one}
		}
		rows[44].A, rows[42].B, rows[43].B = nil, nil, nil
		for _, columns := range [][]string{{"a", "b"}, {"b", "a"}} {
			err = runError(t, func(b *engine.Builder) *engine.Dataset {
				return Vectorize(FromSlice(b, rows), "features", columns...)
			}, opts...)
			require.ErrorContains(t, err, `shard 3: row 5 of the shard: column "b" is null`)
		}
	})
}

func TestVectorizeMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(FromSlice(b, mixedRows(3)), "x", "f64", "txet")
	}, `Vectorize: no column "txet"; did you mean "text"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(FromSlice(b, mixedRows(3)), "x", "text")
	}, `Vectorize: column "text" is utf8; want numbers`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(FromSlice(b, mixedRows(3)), "x")
	}, "Vectorize: no column is named")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Vectorize(FromSlice(b, mixedRows(3)), "vec", "f64")
	}, `column "vec" exists already`)
	operator := func(d *engine.Dataset) *engine.Dataset { return Vectorize(d, "x", "id") }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

// TestConsolidate requires unchanged rows, and at most one batch per shard.
func TestConsolidate(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i, f := range flowers(n) {
			if i%2 == 1 {
				want = append(want, f.text(place(i, n)))
			}
		}
		build := func(b *engine.Builder) *engine.Dataset {
			return Consolidate(MapBatch(FromSlice(b, flowers(n)), engine.Schema{}, ofRecords(keepOdd)))
		}
		requireRows(t, flowerColumns, want, build)
		forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
			result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
				d := build(b)
				engine.Collect(d, "a")
				engine.Collect(d, "b")
				return nil
			}), struct{}{}, append(opts, engine.Workers(0))...) // without workers, as workers would send copies of the batches
			require.NoError(t, err)
			defer result.Release()
			a, err := recordsOf(result, "a")
			require.NoError(t, err)
			b, err := recordsOf(result, "b")
			require.NoError(t, err)
			require.LessOrEqual(t, len(a), testShards, "a shard must have at most one batch")
			require.Equal(t, len(a), len(b))
			for i := range a {
				require.Same(t, a[i].Column(0).Data().Buffers()[1], b[i].Column(0).Data().Buffers()[1], "both results must share the memory of the batch")
				require.Equal(t, 8*int(a[i].NumRows()), a[i].Column(0).Data().Buffers()[1].Len(), "the memory of a batch must have exactly the size of its rows")
			}
		})
	}
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return Consolidate(FromSlice(b, make([]float64, 100_000)))
	}, engine.MemoryBudget(50_000))
	require.ErrorContains(t, err, "hold the rows of a shard: out of memory")
	requirePoisonSpreads(t, Consolidate)
	requireNilDataset(t, Consolidate)
}
