package operators

import (
	"math"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Range makes a dataset of the integers lo, lo+1, …, hi-1 in one column "value" of type int64,
// which Map[int64, …] can read. With n = hi-lo, shard i of S holds the integers from lo+i·n/S
// up to lo+(i+1)·n/S, in order. If hi equals lo, the dataset is empty.
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
		Schema: arrowrows.Schema(codec.Schema()),
		Source: func() engine.Source {
			return &rangeSource{lo: lo, n: hi - lo, schema: codec.Schema(), cols: make([]arrow.Array, 1)}
		},
	})
}

// rangeSource is the source behind Range.
type rangeSource struct {
	engine.BaseOperator
	lo, n   int64
	schema  *arrow.Schema
	numbers numbers
	cols    []arrow.Array // working space
}

func (s *rangeSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	lo, hi := cut(s.n, c.Shards, shard)
	for lo < hi {
		rows := min(hi-lo, int64(c.BatchRows))
		if err := s.emit(c, shard, s.lo+lo, rows, out); err != nil {
			return err
		}
		lo += rows
	}
	return nil
}

// emit emits a batch of the integers first, first+1 and so on; rows is their number.
func (s *rangeSource) emit(c *engine.Context, shard int, first, rows int64, out engine.Output) error {
	s.cols[0] = s.numbers.column(c, first, rows)
	defer s.cols[0].Release()
	return emitColumns(shard, s.schema, s.cols, rows, out)
}

// numbers makes columns of consecutive integers.
type numbers struct{ values []int64 } // working space

// column returns a column with the n values first, first+1 and so on. The caller owns it.
func (x *numbers) column(c *engine.Context, first, n int64) arrow.Array {
	x.values = x.values[:0]
	for i := range n {
		x.values = append(x.values, first+i)
	}
	b := array.NewInt64Builder(c.Allocator)
	defer b.Release()
	b.AppendValues(x.values, nil)
	return b.NewArray()
}
