package queuetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Given holds the rows or the objects that stages find under one key.
type Given struct {
	addTo func(b *engine.Builder, q *comqueue.IterativeComQueue) error
}

// Rows returns a Given with the rows of partitioned data. The fields of T are columns. The rows
// are divided into shards as by operators.FromSlice: in order, and as evenly as possible.
func Rows[T any](key comqueue.PartitionedData, rows []T) Given {
	return Given{func(b *engine.Builder, q *comqueue.IterativeComQueue) error {
		d, err := dataset(b, func(shard int) []T {
			own := sharding.Split(len(rows), b.Shards(), shard)
			return rows[own.Lo:own.Hi]
		})
		if err == nil {
			q.InitWithPartitionedData(key, d)
		}
		return err
	}}
}

// ShardRows returns a Given with the rows of partitioned data by shard. A shard that is not in
// rows is empty.
func ShardRows[T any](key comqueue.PartitionedData, rows map[int][]T) Given {
	return Given{func(b *engine.Builder, q *comqueue.IterativeComQueue) error {
		for _, shard := range slices.Sorted(maps.Keys(rows)) {
			if shard < 0 || shard >= b.Shards() {
				return fmt.Errorf("rows of %q are given for shard %d, and there are %d shards", key.Name(), shard, b.Shards())
			}
		}
		d, err := dataset(b, func(shard int) []T { return rows[shard] })
		if err == nil {
			q.InitWithPartitionedData(key, d)
		}
		return err
	}}
}

// BroadcastRows returns a Given with the rows of broadcast data. The fields of T are columns.
func BroadcastRows[T any](key comqueue.BroadcastData, rows []T) Given {
	return Given{func(b *engine.Builder, q *comqueue.IterativeComQueue) error {
		d, err := dataset(b, func(shard int) []T {
			own := sharding.Split(len(rows), b.Shards(), shard)
			return rows[own.Lo:own.Hi]
		})
		if err == nil {
			q.InitWithBroadcastData(key, d)
		}
		return err
	}}
}

// Object returns a Given with one object per subtask, which the function make returns. For a
// replicated key, make is called once per subtask, before the first superstep, and must return
// equal objects on all subtasks. For a scratch key, make is called whenever a subtask joins.
func Object[T any](key shared.Key[T], make func(subtask int) T) Given {
	return Given{func(_ *engine.Builder, q *comqueue.IterativeComQueue) error {
		if make == nil {
			return fmt.Errorf("Object %q: the function is nil", key.Name())
		}
		put := func(ctx *comqueue.ComContext) error {
			key.Put(ctx, make(ctx.TaskID()))
			return nil
		}
		if key.Kind() == shared.KindScratch {
			q.Init(put)
		} else {
			q.Begin(put)
		}
		return nil
	}}
}

// ShardObject returns a Given with one object per shard, which the function make returns.
func ShardObject[T any](key shared.ShardKey[T], make func(shard int) T) Given {
	return Given{func(_ *engine.Builder, q *comqueue.IterativeComQueue) error {
		if make == nil {
			return fmt.Errorf("ShardObject %q: the function is nil", key.Name())
		}
		q.Begin(func(ctx *comqueue.ComContext) error {
			for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
				key.Put(ctx, shard, make(shard))
			}
			return nil
		})
		return nil
	}}
}

// dataset adds a source to the job. rowsOf returns the rows of a shard.
func dataset[T any](b *engine.Builder, rowsOf func(shard int) []T) (*engine.Dataset, error) {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	return b.Add(engine.Spec{
		Op: "Given", Schema: arrowrows.Schema(codec.Schema()),
		Source: func() engine.Source { return &source[T]{rowsOf: rowsOf, codec: codec} },
	}), nil
}

// source emits the rows that rowsOf returns for a shard.
type source[T any] struct {
	engine.BaseOperator
	rowsOf func(shard int) []T
	codec  *batch.Codec[T]
}

func (s *source[T]) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	app := s.codec.Appender(c.Allocator)
	defer app.Release()
	end := func() error {
		rows := app.NewRecord()
		defer rows.Release()
		return out.Emit(shard, arrowrows.Batch(rows))
	}
	rows := s.rowsOf(shard)
	for i := range rows {
		if err := app.AppendFrom(&rows[i]); err != nil {
			return fmt.Errorf("row %d of shard %d that is given: %w", i, shard, err)
		}
		if app.Len() == c.BatchRows {
			if err := end(); err != nil {
				return err
			}
		}
	}
	return end()
}
