package operators

import (
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Range makes a dataset of the integers lo, lo+1, …, hi-1 in one column, "value"
// of type int64, so that Map[int64, …] takes them. Of n numbers, shard i of S
// holds those from lo+i·n/S up to lo+(i+1)·n/S, in order. With hi equal to lo it
// is empty.
func Range(b *engine.Builder, lo, hi int64) *engine.Dataset {
	const op = "Range"
	needBuilder(op, b)
	if hi < lo || uint64(hi)-uint64(lo) > math.MaxInt64 {
		b.Errorf("%s: from %d up to %d: want an end that is not below the beginning, and at most %d numbers", op, lo, hi, int64(math.MaxInt64))
		return b.Poisoned(op)
	}
	codec, ok := outputRows[int64](op, b)
	if !ok {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op: op,
		Attrs: []engine.Attr{
			{Key: "from", Value: strconv.FormatInt(lo, 10)},
			{Key: "to", Value: strconv.FormatInt(hi, 10)},
		},
		Schema: codec.Schema(),
		Source: func() engine.Source {
			return newNumbered(hi-lo, codec, func(_ *engine.Context, i int64) int64 { return lo + i })
		},
	})
}

// numbered is a source of n rows that are a function of their number.
type numbered[T any] struct {
	noop
	n   int64
	row func(c *engine.Context, i int64) T
	out rowWriter[T]
}

func newNumbered[T any](n int64, codec *batch.Codec[T], row func(c *engine.Context, i int64) T) *numbered[T] {
	return &numbered[T]{n: n, row: row, out: rowWriter[T]{codec: codec}}
}

func (s *numbered[T]) Open(c *engine.Context) error {
	s.out.open(c)
	return nil
}

func (s *numbered[T]) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	lo, hi := cut(s.n, c.Shards, shard)
	for i := lo; i < hi; i++ {
		s.out.row = s.row(c, i)
		if err := s.out.push(shard, out); err != nil {
			return rowOfInput(i, err)
		}
	}
	return s.out.flush(shard, out)
}

func (s *numbered[T]) Close() error {
	s.out.close()
	return nil
}
