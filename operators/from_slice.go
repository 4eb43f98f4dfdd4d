package operators

import (
	"reflect"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// FromSlice makes a dataset of the rows of a slice. If the slice has n rows, shard i of S holds
// the rows from i·n/S up to (i+1)·n/S, in order.
//
// The rows are not copied and must not change until the run ends. A hash of the rows is
// recorded in the graph, so that a job is refused if two builds of it have different rows. As
// every process of a run builds all rows, large data should be read from files.
func FromSlice[T any](b *engine.Builder, rows []T) *engine.Dataset {
	const op = "FromSlice"
	needBuilder(op, b)
	codec, ok := outputRows[T](op, b)
	if !ok {
		return b.Poisoned(op)
	}
	content, err := hashSlice(codec, rows)
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op: op,
		Attrs: []engine.Attr{
			{Key: "type", Value: reflect.TypeFor[T]().String()},
			{Key: "rows", Value: strconv.Itoa(len(rows))},
			{Key: "content", Value: content},
		},
		Schema: arrowrows.Schema(codec.Schema()),
		Source: func() engine.Source {
			return &sliceSource[T]{rows: rows, out: rowWriter[T]{codec: codec}}
		},
	})
}

// hashSlice returns a hash of the rows, or an error that names an invalid row. The rows are
// encoded block by block in temporary memory.
func hashSlice[T any](codec *batch.Codec[T], rows []T) (string, error) {
	var h contentHash
	app := codec.Appender(memory.NewGoAllocator())
	defer app.Release()
	end := func() error {
		rec := app.NewRecord()
		defer rec.Release()
		return h.add(rec)
	}
	for i := range rows {
		if err := app.AppendFrom(&rows[i]); err != nil {
			return "", rowOfInput(int64(i), err)
		}
		if app.Len() == hashRows {
			if err := end(); err != nil {
				return "", err
			}
		}
	}
	err := end()
	return h.String(), err
}

// sliceSource is the source behind FromSlice.
type sliceSource[T any] struct {
	engine.BaseOperator
	rows []T
	out  rowWriter[T]
}

func (s *sliceSource[T]) Open(c *engine.Context) error {
	s.out.open(c)
	return nil
}

func (s *sliceSource[T]) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	lo, hi := cut(int64(len(s.rows)), c.Shards, shard)
	for i := lo; i < hi; i++ {
		s.out.row = s.rows[i]
		if err := s.out.push(shard, out); err != nil {
			return rowOfInput(i, err)
		}
	}
	return s.out.flush(shard, out)
}

func (s *sliceSource[T]) Close() error {
	s.out.close()
	return nil
}
