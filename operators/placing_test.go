package operators

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch"
)

// moved returns the expected rows, as text, if each of n flowers is sent to the shard that the
// function to returns for it. Within a shard they are in the order of their source shards.
func moved(n int, to func(f flower) int) []string {
	var want []string
	for s := range testShards {
		for _, f := range flowers(n) {
			if to(f) == s {
				want = append(want, f.text(s))
			}
		}
	}
	return want
}

// TestPartitionByHash computes the expected shards from the documented encoding. The key of an
// integer is the tag 2 and 8 bytes; the key of a text is the tag 4, its length in 8 bytes and
// the text.
func TestPartitionByHash(t *testing.T) {
	integer := func(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(append(b, 2), uint64(v)) }
	text := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint64(append(b, 4), uint64(len(s))), s...)
	}
	for _, n := range sizes {
		requireRows(t, flowerColumns, moved(n, func(f flower) int {
			return int(xxh3.Hash(integer(nil, f.ID)) % testShards)
		}), func(b *engine.Builder) *engine.Dataset {
			return PartitionByHash(FromSlice(b, flowers(n)), "id")
		})
		requireRows(t, flowerColumns, moved(n, func(f flower) int {
			return int(xxh3.Hash(integer(text(nil, f.Name), f.ID)) % testShards)
		}), func(b *engine.Builder) *engine.Dataset {
			return PartitionByHash(FromSlice(b, flowers(n)), "name", "id")
		})
	}
}

func TestPartitionByHashMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return PartitionByHash(FromSlice(b, flowers(3)), "idd")
	}, "PartitionByHash", `did you mean "id"`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return PartitionByHash(FromSlice(b, flowers(3)), "id", "id")
	}, `PartitionByHash: key "id" is named twice`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return PartitionByHash(FromSlice(b, flowers(3)))
	}, "PartitionByHash", "key columns")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return PartitionByHash(FromSlice(b, flowers(3)), "size")
	}, "PartitionByHash", `"size" of type vector[2]`)
	operator := func(d *engine.Dataset) *engine.Dataset { return PartitionByHash(d, "id") }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func lastDigit(f struct{ ID int64 }, shards int) int { return int(f.ID) % 10 % shards }

func TestPartitionByCustom(t *testing.T) {
	for _, n := range sizes {
		requireRows(t, flowerColumns, moved(n, func(f flower) int { return int(f.ID) % 10 % testShards }), func(b *engine.Builder) *engine.Dataset {
			return PartitionByCustom(FromSlice(b, flowers(n)), lastDigit)
		})
	}
}

func TestPartitionByCustomFailures(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		for _, bad := range []int{-1, testShards} {
			err := runError(t, func(b *engine.Builder) *engine.Dataset {
				return PartitionByCustom(FromSlice(b, flowers(100)), func(f flower, shards int) int {
					if f.ID == 42 {
						return bad
					}
					return 0
				})
			}, opts...)
			require.ErrorContains(t, err, "PartitionByCustom")
			require.ErrorContains(t, err, fmt.Sprintf("shard 3: row 5 of the shard: the function names shard %d; want 0 to 7", bad))
		}
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return PartitionByCustom(FromSlice(b, flowers(100)), func(f flower, shards int) int {
				if f.ID == 42 {
					panic("user code gave up")
				}
				return 0
			})
		}, opts...)
		require.ErrorContains(t, err, "user code gave up")
	})
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return PartitionByCustom[flower](FromSlice(b, flowers(3)), nil)
	}, "PartitionByCustom: the function is nil")
	operator := func(d *engine.Dataset) *engine.Dataset { return PartitionByCustom(d, lastDigit) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

type price struct {
	Name  string
	Price float64
}

func TestMapWith(t *testing.T) {
	for _, n := range sizes {
		for _, m := range sizes {
			var prices []price
			for i := range m {
				prices = append(prices, price{fmt.Sprint("p", i), float64(i) / 2})
			}
			var want []string
			for i, f := range flowers(n) {
				if m == 0 {
					want = append(want, line(place(i, n), "none", 0))
					continue
				}
				p := prices[i%m]
				want = append(want, line(place(i, n), f.Name+p.Name, p.Price))
			}
			requireRows(t, "name utf8 | price float64", want, func(b *engine.Builder) *engine.Dataset {
				return MapWith(FromSlice(b, flowers(n)), FromSlice(b, prices), func(f flower, side []price) (price, error) {
					if len(side) == 0 {
						return price{Name: "none"}, nil
					}
					p := side[int(f.ID)%len(side)]
					return price{f.Name + p.Name, p.Price}, nil
				})
			})
		}
	}
}

// TestSideRowsAreGivenUp requires that the last release of the rows of a side input drops the
// process's copy of the rows and releases their memory.
func TestSideRowsAreGivenUp(t *testing.T) {
	recs := flowerRecords(t, 2, 3)
	codec, err := batch.NewCodec[flower]()
	require.NoError(t, err)
	s := sideRows[flower]{codec: codec}
	require.NoError(t, s.read(&engine.Context{}, recs))
	require.Equal(t, flowers(5), s.rows)
	require.Positive(t, s.bytes)
	s.users = 2
	s.release()
	require.Len(t, s.rows, 5)
	s.release()
	require.Nil(t, s.rows)
	require.Zero(t, s.bytes)
}

// TestMapWithItself uses the same dataset as the rows and as the side input of MapWith.
func TestMapWithItself(t *testing.T) {
	requireRows(t, "value int64", []string{"2 | 1", "5 | 2", "7 | 3"}, func(b *engine.Builder) *engine.Dataset {
		d := FromSlice(b, []string{"c", "a", "b"})
		return MapWith(d, d, func(row string, side []string) (int64, error) {
			for i, s := range side {
				if s == row {
					return int64(i) + 1, nil
				}
			}
			return 0, nil
		})
	})
}

func TestMapWithFailures(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		err := runError(t, func(b *engine.Builder) *engine.Dataset {
			return MapWith(FromSlice(b, flowers(100)), FromSlice(b, []int64{1}), func(f flower, side []int64) (int64, error) {
				if f.ID == 42 {
					return 0, errBoom
				}
				return 0, nil
			})
		}, opts...)
		require.ErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "shard 3: row 5 of the shard: boom")
		err = runError(t, func(b *engine.Builder) *engine.Dataset {
			return MapWith(FromSlice(b, []int64{1}), FromSlice(b, flowers(20)), func(i int64, side []struct{ Width float64 }) (int64, error) { return i, nil })
		}, opts...)
		require.ErrorContains(t, err, `the rows to broadcast: row 4: column "width" is null`)
	})
	small := func(i int64, side []int64) (int64, error) { return i, nil }
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapWith(FromSlice(b, []int64{1}), nil, small)
	}, "MapWith: the dataset to broadcast is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapWith(FromSlice(b, []int64{1}), FromSlice(b, flowers(2)), small)
	}, "MapWith: int64 wants value int64")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapWith[int64, int64, int64](FromSlice(b, []int64{1}), FromSlice(b, []int64{1}), nil)
	}, "MapWith: the function is nil")
	requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset { return MapWith(FromSlice(d.Builder(), []int64{1}), d, small) })
	requireNilDataset(t, func(d *engine.Dataset) *engine.Dataset { return MapWith(d, d, small) })
}

func TestMapBatchWith(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i := range n {
			want = append(want, line(place(i, n), i+n*(n-1)/2))
		}
		requireRows(t, "value int64", want, func(b *engine.Builder) *engine.Dataset {
			d := Range(b, 0, int64(n))
			return MapBatchWith(d, d, engine.Schema{}, addTotal)
		})
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapBatchWith(nil, FromSlice(b, []int64{1}), engine.Schema{}, addTotal)
	}, "MapBatchWith: the dataset is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return MapBatchWith(FromSlice(b, []int64{1}), FromSlice(b, []int64{1}), engine.Schema{}, nil)
	}, "MapBatchWith: the function is nil")
	requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset {
		return MapBatchWith(d, FromSlice(d.Builder(), []int64{1}), engine.Schema{}, addTotal)
	})
	requireNilDataset(t, func(d *engine.Dataset) *engine.Dataset { return MapBatchWith(d, d, engine.Schema{}, addTotal) })
}

// addTotal adds the sum of all numbers in side to each number in rows.
func addTotal(c *engine.Context, rows engine.Batch, side []engine.Batch) (engine.Batch, error) {
	total := int64(0)
	for _, rec := range side {
		values, err := columnar.Get[[]int64](rec, "value")
		if err != nil {
			return engine.Batch{}, err
		}
		for _, v := range values {
			total += v
		}
	}
	values, err := columnar.Get[[]int64](rows, "value")
	made := slices.Clone(values)
	for i := range made {
		made[i] += total
	}
	if err != nil {
		return engine.Batch{}, err
	}
	return columnar.NewBatch(c.Allocator, rows.Schema(), made)
}
