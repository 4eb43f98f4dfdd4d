package operators

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// leftRow and rightRow are the rows of tables that tests join by columns of every kind. Some
// columns of the two tables differ in width or name.
type leftRow struct {
	ID   int64
	Int  *int64
	Text *string
	Real *float64
	Flag *bool
}

type rightRow struct {
	ID    int64
	Int   *uint16
	Text  *string
	Real  *float32
	Flag  *bool
	Other *int8
}

// joinedKeys has the keys by which tests join tables, with functions that return the key values
// of a row.
var joinedKeys = []struct {
	on    JoinKeys
	left  func(r leftRow) []any
	right func(r rightRow) []any
}{
	{On("int"), func(r leftRow) []any { return []any{deref(r.Int)} }, func(r rightRow) []any { return []any{asInt(r.Int)} }},
	{On("text"), func(r leftRow) []any { return []any{deref(r.Text)} }, func(r rightRow) []any { return []any{deref(r.Text)} }},
	{On("real"), func(r leftRow) []any { return []any{deref(r.Real)} }, func(r rightRow) []any { return []any{doubled(r.Real)} }},
	{On("flag"), func(r leftRow) []any { return []any{deref(r.Flag)} }, func(r rightRow) []any { return []any{deref(r.Flag)} }},
	{On().Equal("int", "other"), func(r leftRow) []any { return []any{deref(r.Int)} }, func(r rightRow) []any { return []any{asInt(r.Other)} }},
	{On("text", "flag"), func(r leftRow) []any { return []any{deref(r.Text), deref(r.Flag)} },
		func(r rightRow) []any { return []any{deref(r.Text), deref(r.Flag)} }},
	{On("real").Equal("int", "other"), func(r leftRow) []any { return []any{deref(r.Real), deref(r.Int)} },
		func(r rightRow) []any { return []any{doubled(r.Real), asInt(r.Other)} }},
}

// deref returns *p, or nil if p is nil.
func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func asInt[T int8 | uint16](p *T) any {
	if p == nil {
		return nil
	}
	return int64(*p)
}

func doubled(p *float32) any {
	if p == nil {
		return nil
	}
	return float64(*p)
}

// joinTables returns two random tables. Many rows have the same key, and some keys are null.
func joinTables(r *rand.Rand) (left []leftRow, right []rightRow) {
	distinct := []int{1, 3, 20}[r.IntN(3)]
	number := func() int64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return int64(r.IntN(distinct))
	}
	real := func() float64 {
		return []float64{0, math.Copysign(0, -1), math.NaN(), 0.5, -3, float64(number())}[r.IntN(6)]
	}
	text := func() string { return []string{"", "a", "ab", "b\x00", "ä"}[number()%5] }
	left, right = make([]leftRow, []int{0, 1, 9, 40}[r.IntN(4)]), make([]rightRow, []int{0, 1, 9, 40}[r.IntN(4)])
	some := func() bool { return r.IntN(6) > 0 }
	for i := range left {
		left[i] = leftRow{int64(i), maybe(some(), number()), maybe(some(), text()), maybe(some(), real()), maybe(some(), r.IntN(2) == 0)}
	}
	for i := range right {
		right[i] = rightRow{int64(i), maybe(some(), uint16(number())), maybe(some(), text()), maybe(some(), float32(real())), maybe(some(), r.IntN(2) == 0), maybe(some(), int8(number()))}
	}
	return left, right
}

func maybe[T any](have bool, v T) *T {
	if !have {
		return nil
	}
	return &v
}

// shardOfKey returns the shard of the key with the given values, which it computes by an
// independent implementation of the documented encoding. key is the same text for equal keys.
// null is true if a value is null.
func shardOfKey(values []any, shards int) (shard int, key string, null bool) {
	var text []byte
	add := func(tag byte, body uint64) { text = binary.LittleEndian.AppendUint64(append(text, tag), body) }
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			text, null = append(text, 0), true
		case bool:
			body := uint64(0)
			if v {
				body = 1
			}
			add(1, body)
		case int64:
			add(2, uint64(v))
		case float64:
			switch {
			case v == 0:
				add(3, 0)
			case v != v:
				add(3, 0x7ff8000000000000)
			default:
				add(3, math.Float64bits(v))
			}
		case string:
			add(4, uint64(len(v)))
			text = append(text, v...)
		default:
			panic(fmt.Sprintf("no key: %T", v))
		}
	}
	return int(xxh3.Hash(text) % uint64(shards)), string(text), null
}

// joinOutcomes runs a job that builds named datasets and returns the rows of each as text.
func joinOutcomes(t *testing.T, build func(b *engine.Builder) map[string]*engine.Dataset, opts ...engine.Option) map[string][]string {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	names := []string{}
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		names = names[:0]
		built := build(b)
		for _, name := range sortedKeys(built) {
			names = append(names, name)
			engine.Collect(withShard(built[name]), name)
		}
		return nil
	}), struct{}{}, append([]engine.Option{engine.Shards(testShards), engine.Allocator(mem), engine.SpillDir(t.TempDir())}, opts...)...)
	require.NoError(t, err)
	defer result.Release()
	lines := map[string][]string{}
	for _, name := range names {
		recs, err := recordsOf(result, name)
		require.NoError(t, err)
		lines[name] = []string{}
		for _, rec := range recs {
			lines[name] = append(lines[name], batchtest.Rows(rec)...)
		}
	}
	return lines
}
