package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ReduceScatter combines a buffer of all subtasks element by element, as AllReduce does. Under
// into, each subtask gets only its block of the result: the range sharding.Split(n,
// ctx.NumTask(), ctx.TaskID()) of n elements, or the block whose length the option Blocks
// gives. So each subtask can continue with its own part of an index range, such as the features
// of a histogram.
//
// A buffer filled by ForEachShard is reduced up the tree over shards, so that each element is
// the same at any parallelism. This does not hold with an Algorithm that does not accept parts
// of shards. The buffer under from is working memory, to which parts of shards are added. Each
// subtask sends every other subtask the parts that it has of the other's block, one for each
// node of the tree; results are not sent. Any other buffer is taken as one operand per subtask,
// is not changed, and is reduced in the fold tree over subtasks. The plan marks the result
// "depends on parallelism". The buffer under into is overwritten, and grown if it is too short.
// As subtasks hold different blocks, into cannot be replicated.
func ReduceScatter[T Number](from, into shared.Key[[]T], options ...ReduceOption) Stage {
	s := &reduceScatter[T]{from: from, into: into}
	s.config, s.err = newReduceConfig("ReduceScatter", options)
	return s
}

type reduceScatter[T Number] struct {
	from, into shared.Key[[]T]
	config     reduceConfig
	err        error
}

func (s *reduceScatter[T]) misuse() error {
	err := distinct(s.from, s.into)
	if err == nil {
		err = s.err
	}
	if err == nil {
		err = checkOwnResult(s.into)
	}
	if err == nil {
		err = misuseOf[T](s.config, program.ReduceScatter)
	}
	return s.located(err)
}

// located adds the stage's name to an error.
func (s *reduceScatter[T]) located(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ReduceScatter(%q, %q): %w", s.from.Name(), s.into.Name(), err)
}

// reduces returns the key of the buffer that is reduced.
func (s *reduceScatter[T]) reduces() shared.AnyKey { return s.from }

func (s *reduceScatter[T]) function() string { return "ReduceScatter" }

// folds returns the operator that folds the buffers of shards.
func (s *reduceScatter[T]) folds() (operator[T], error) { return resolve[T](s.config) }

func (s *reduceScatter[T]) describe(l *layout, position int) []engine.StageSpec {
	_, perShard := l.forestOf[position]
	return []engine.StageSpec{{
		Kind: engine.StageCommunicate, Op: "ReduceScatter", Name: s.from.Name(),
		Attrs: append([]engine.Attr{{Key: "into", Value: s.into.Name()}}, s.config.attrs()...),
		Order: orderOf[T](s.config, program.ReduceScatter, perShard),
	}}
}

func (s *reduceScatter[T]) bind(b *body, position int) ([]engine.Stage, error) {
	producer, perShard := b.layout.forestOf[position]
	algorithm, _, err := s.config.algorithm.find(program.ReduceScatter)
	if err != nil {
		return nil, s.located(err)
	}
	if perShard && s.config.algorithm == nil {
		return s.bindBlocks(b, position)
	}
	if perShard && inShardTree(algorithm) {
		return s.bindTree(b, position)
	}
	op, err := resolve[T](s.config)
	if err == nil && s.config.sparse {
		err = fmt.Errorf("WithoutZeros is given for a buffer that ForEachShard does not fill")
	}
	if err == nil {
		err = s.config.algorithm.checkSupports(program.ReduceScatter, b.context.NumTask(), 0, s.config.opName(), s.config.commutes())
	}
	if err != nil {
		return nil, s.located(err)
	}
	var parts *forest[T]
	if perShard {
		parts = b.forests[producer].(*forest[T])
	}
	c, options := &b.context, b.options(s.from.Name(), s.config.algorithm)
	return b.communicate(func() error {
		buffer := s.from.Get(c)
		n, err := s.config.prefix(c, s.from.Name(), len(buffer))
		if err != nil {
			return err
		}
		if parts != nil {
			if err := s.foldParts(parts, buffer, n); err != nil {
				return err
			}
		}
		lengths, err := s.config.lengths(c, s.from.Name(), n)
		if err != nil {
			return err
		}
		block := s.block(c, buffer, share(c, lengths, n).Len())
		if lengths == nil {
			err = collective.ReduceScatter(b.comm, op.op, buffer[:n], block, options...)
		} else {
			err = collective.ReduceScatterV(b.comm, op.op, buffer[:n], block, lengths, options...)
		}
		if err != nil {
			return err
		}
		s.into.Put(c, block)
		return nil
	}, nil), nil
}

// foldParts folds the parts of the subtask's shards into its buffer.
func (s *reduceScatter[T]) foldParts(parts *forest[T], buffer []T, n int) error {
	if len(buffer) != parts.length {
		return fmt.Errorf("buffer %q has %d elements, and had %d when ForEachShard filled its parts", s.from.Name(), len(buffer), parts.length)
	}
	entries := parts.entries(n)
	if len(entries) == 0 {
		fill(buffer[:n], parts.op.op.Identity())
		return nil
	}
	copy(buffer, entries[0].Value)
	for _, e := range entries[1:] {
		parts.op.apply(buffer[:n], e.Value)
	}
	return nil
}

// block returns a buffer of n elements for the subtask's block, which does not share memory
// with buffer.
func (s *reduceScatter[T]) block(c *ComContext, buffer []T, n int) []T {
	old, _ := s.into.Lookup(c)
	return sized(apart(old, buffer), n)
}

// lends reports whether the forest may use the buffer under from for a shard's part.
func (s *reduceScatter[T]) lends() bool { return s.config.algorithm == nil }

// bindBlocks binds a stage that reduces up the tree over shards and sends each subtask only
// what its block needs.
func (s *reduceScatter[T]) bindBlocks(b *body, position int) ([]engine.Stage, error) {
	r, err := newReduction(b, position, s.from, s.config)
	if err != nil {
		return nil, s.located(err)
	}
	c := &b.context
	even := make([]int, c.NumTask())
	run := func() error {
		buffer := s.from.Get(c)
		n, err := s.config.prefix(c, s.from.Name(), len(buffer))
		if err != nil {
			return err
		}
		lengths, err := s.config.lengths(c, s.from.Name(), n)
		if err != nil {
			return err
		}
		if lengths == nil {
			for t := range even {
				even[t] = sharding.Split(n, c.NumTask(), t).Len()
			}
			lengths = even
		}
		block := s.block(c, buffer, lengths[c.TaskID()])
		r.request.Blocks, r.request.Out = lengths, block
		for _, step := range []func() error{r.send, r.sum, r.recv} {
			if err := step(); err != nil {
				return err
			}
		}
		s.into.Put(c, block)
		return nil
	}
	return b.communicate(run, func(*communication) string { return r.program() }), nil
}

// bindTree binds a stage that reduces up the tree over shards by a given algorithm of
// AllReduce: every subtask gets the whole result, and copies its block.
func (s *reduceScatter[T]) bindTree(b *body, position int) ([]engine.Stage, error) {
	r, err := newReduction(b, position, s.from, s.config)
	if err != nil {
		return nil, s.located(err)
	}
	c := &b.context
	run := func() error {
		for _, step := range []func() error{r.send, r.sum, r.recv} {
			if err := step(); err != nil {
				return err
			}
		}
		result := r.request.Out
		lengths, err := s.config.lengths(c, s.from.Name(), len(result))
		if err != nil {
			return err
		}
		own := share(c, lengths, len(result))
		block := s.block(c, s.from.Get(c), own.Len())
		copy(block, result[own.Lo:own.Hi])
		s.into.Put(c, block)
		return nil
	}
	return b.communicate(run, func(*communication) string { return "AllReduce, " + r.program() }), nil
}
