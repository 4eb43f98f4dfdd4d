package operators

import (
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// maxGenerated bounds the number of rows of Generate. The row number is used as the step of
// sharding.NewRandom, which has 40 bits.
const maxGenerated = 1 << 40

// Generate makes a dataset for tests and benchmarks. f computes row i, for i from 0 to rows-1,
// from i and from random numbers that no other row gets. Shard s of S holds the rows from
// s·rows/S up to (s+1)·rows/S, in order.
//
// The random numbers of a row depend on the job's seed, on the row's number, and on how many
// times the job called Generate before. They do not depend on the number of shards, on names,
// or on other operators.
func Generate[T any](b *engine.Builder, rows int64, f func(draws sharding.Random, i int64) T) *engine.Dataset {
	const op = "Generate"
	needBuilder(op, b)
	codec, ok := outputRows[T](op, b)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	if rows < 0 || rows > maxGenerated {
		b.Errorf("%s: %d rows: want 0 to %d", op, rows, int64(maxGenerated))
		return b.Poisoned(op)
	}
	purpose := b.OwnDrawPurpose(op, nil)
	return b.Add(engine.Spec{
		Op:     op,
		Attrs:  []engine.Attr{{Key: "rows", Value: strconv.FormatInt(rows, 10)}},
		Schema: arrowrows.Schema(codec.Schema()),
		Func:   f,
		Source: func() engine.Source {
			return &generator[T]{n: rows, f: f, purpose: purpose, out: rowWriter[T]{codec: codec}}
		},
	})
}

// generator is the source behind Generate.
type generator[T any] struct {
	engine.BaseOperator
	n       int64
	f       func(sharding.Random, int64) T
	purpose string
	out     rowWriter[T]
}

func (s *generator[T]) Open(c *engine.Context) error {
	s.out.open(c)
	return nil
}

func (s *generator[T]) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	lo, hi := cut(s.n, c.Shards, shard)
	for i := lo; i < hi; i++ {
		// Shard -1 means that the random numbers do not depend on the shard.
		s.out.row = s.f(sharding.NewRandom(c.Seed, s.purpose, -1, int(i)), i)
		if err := s.out.push(shard, out); err != nil {
			return rowOfInput(i, err)
		}
	}
	return s.out.flush(shard, out)
}

func (s *generator[T]) Close() error {
	s.out.close()
	return nil
}
