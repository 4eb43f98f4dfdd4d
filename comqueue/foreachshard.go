package comqueue

import (
	"context"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ForEachShard calls f once for each shard of the subtask that has rows. The buffer out is as
// long as the buffer under key, and filled with the identity of the operator of the AllReduce
// or ReduceScatter that follows on key. For a sum these are zeros. f adds the shard's part to
// out, and must not keep out. The buffers are folded up the tree over shards, in which a shard
// without rows is absent.
//
// The key's own buffer, which a compute function has put before, determines the length and
// receives the result of the AllReduce. A ReduceScatter also uses it as working memory, which
// saves each subtask a buffer.
func ForEachShard[T Number](key shared.Key[[]T], f func(ctx *ComContext, shard int, out []T) error, options ...ShardOption[T]) Stage {
	s := &forEachShard[T]{key: key, f: f, name: functionName(f)}
	for _, o := range options {
		s.fold, s.nilOption = o.fold, s.nilOption || o.fold == nil
	}
	return s
}

// ShardOption changes a ForEachShard.
type ShardOption[T Number] struct {
	fold func(ctx *ComContext, shards sharding.Range, out []T) (bool, error)
}

// FoldedBy makes ForEachShard call fold, which folds the parts of several shards itself.
// FoldedBy pays if fold is faster than filling and folding a buffer for each shard, such as for
// parts that are 0 nearly everywhere.
//
// fold is called once for each node of the tree over shards to which the subtask contributes a
// buffer. These are the fewest aligned nodes that cover its shards, without nodes that have no
// rows. fold must add to out the same bits as folding, up the tree, the parts that f gives for
// the shards with rows; otherwise the result depends on parallelism. fold returns true if it
// has done so. It may return false without having changed out, and f is then called for these
// shards.
func FoldedBy[T Number](fold func(ctx *ComContext, shards sharding.Range, out []T) (bool, error)) ShardOption[T] {
	return ShardOption[T]{fold}
}

type forEachShard[T Number] struct {
	key       shared.Key[[]T]
	f         func(ctx *ComContext, shard int, out []T) error
	fold      func(ctx *ComContext, shards sharding.Range, out []T) (bool, error)
	nilOption bool // an option is nil
	name      string
	named     bool // by Named; otherwise name is that of f
}

// label returns the stage with another name, for Named.
func (s *forEachShard[T]) label(name string) Stage {
	named := *s
	named.name, named.named = name, true
	return &named
}

func (s *forEachShard[T]) misuse() error {
	if s.f == nil {
		return fmt.Errorf("ForEachShard(%q): the function is nil", s.key.Name())
	}
	if s.nilOption {
		return fmt.Errorf("ForEachShard(%q): the function of FoldedBy is nil", s.key.Name())
	}
	return s.key.Err()
}

// fills returns the key of the buffer that is filled.
func (s *forEachShard[T]) fills() shared.AnyKey { return s.key }

func (s *forEachShard[T]) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{
		Kind: engine.StageCompute, Name: s.name, NamedAfterFunc: !s.named, Func: s.f, Order: engine.ShardTree,
		Attrs: []engine.Attr{{Key: "each shard into", Value: s.key.Name()}},
	}}
}

func (s *forEachShard[T]) bind(b *body, position int) ([]engine.Stage, error) {
	consumer := b.layout.stages[b.layout.feeds[position]].(interface{ folds() (operator[T], error) }) // cannot panic, as newLayout has compared the types
	op, err := consumer.folds()
	if err != nil {
		return nil, err
	}
	lender, _ := b.layout.stages[b.layout.feeds[position]].(interface{ lends() bool })
	lent := lender != nil && lender.lends()
	fo := newForest(op, b.context.Shards())
	b.forests[position] = fo
	c := &b.context
	perShard := func(shard int) error {
		out := fo.take()
		if err := s.f(c, shard, out); err != nil {
			return err
		}
		fo.folder.Push(shard, out)
		return c.takeMisuse(nil)
	}
	cover := sharding.Cover(c.Shards())
	run := func() error {
		buffer := s.key.Get(c)
		length := len(buffer)
		fo.reset(length)
		if lent {
			fo.borrow(buffer)
		}
		if s.fold == nil {
			return c.ForShards(perShard)
		}
		for _, node := range cover {
			if err := s.runNode(c, fo, node.Range(), perShard); err != nil {
				return err
			}
		}
		return nil
	}
	return []engine.Stage{{Node: b.takeNode(), Run: run, Shard: c.currentShard}}, nil
}

// runNode folds the parts of a node's shards by s.fold, or up the tree if s.fold returns false.
func (s *forEachShard[T]) runNode(c *ComContext, fo *forest[T], shards sharding.Range, perShard func(shard int) error) error {
	first := shards.Lo
	for ; first < shards.Hi && c.Empty(first); first++ {
	}
	if first == shards.Hi {
		return nil
	}
	if err := c.Context().Err(); err != nil {
		return context.Cause(c.Context())
	}
	out := fo.take()
	done, err := s.fold(c, shards, out)
	if err == nil {
		err = c.takeMisuse(nil)
	}
	switch {
	case err != nil:
		return err
	case done:
		// out is pushed as the value of the first shard: a node has the value of its only shard
		// if its other shards are absent.
		fo.folder.Push(first, out)
		return nil
	}
	fo.free = append(fo.free, out)
	return c.ForShardsWithin(shards, perShard)
}

// forest folds the buffers of one subtask's shards and reuses them. The number of buffers that
// it needs is about the height of the tree.
type forest[T Number] struct {
	op     operator[T]
	shards sharding.Range
	folder *sharding.Folder[[]T]
	length int
	free   [][]T
	lent   []T // the borrowed buffer, which is in free or in the folder; nil if there is none
	cut    []sharding.Entry[[]T]
}

func newForest[T Number](op operator[T], shards sharding.Range) *forest[T] {
	f := &forest[T]{op: op, shards: shards}
	merge := func(left, right []T) []T {
		f.op.apply(left, right)
		return left
	}
	f.folder = sharding.NewFolder(shards, merge, func(done []T) { f.free = append(f.free, done) })
	return f
}

// reset begins a superstep, and makes the buffers of the previous superstep available again.
func (f *forest[T]) reset(length int) {
	for _, e := range f.folder.Forest() {
		f.free = append(f.free, e.Value)
	}
	f.folder.Reset(f.shards)
	if length != f.length {
		f.free, f.lent, f.length = nil, nil, length
	}
}

// forget drops all buffers.
func (f *forest[T]) forget() {
	f.folder.Reset(f.shards)
	f.free, f.lent, f.cut, f.length = nil, nil, nil, -1
}

// borrow lends buffer, which the caller owns, to the forest: the next call of take returns it.
// It removes the buffer that was borrowed for the previous superstep. It is called after reset.
func (f *forest[T]) borrow(buffer []T) {
	if len(buffer) == 0 {
		return
	}
	if f.lent != nil {
		f.free = slices.DeleteFunc(f.free, func(b []T) bool { return &b[0] == &f.lent[0] })
	}
	f.lent = buffer
	f.free = append(f.free, buffer)
}

// take returns a buffer filled with the operator's identity.
func (f *forest[T]) take() []T {
	if n := len(f.free); n > 0 {
		buffer := f.free[n-1]
		f.free = f.free[:n-1]
		fill(buffer, f.op.op.Identity())
		return buffer
	}
	buffer := make([]T, f.length)
	if f.op.op.Identity() != 0 {
		fill(buffer, f.op.op.Identity())
	}
	return buffer
}

func fill[T Number](buffer []T, v T) {
	if v == 0 {
		clear(buffer)
		return
	}
	for i := range buffer {
		buffer[i] = v
	}
}

// entries returns the nodes of the forest, with their buffers cut to n elements.
func (f *forest[T]) entries(n int) []sharding.Entry[[]T] {
	f.cut = f.cut[:0]
	for _, e := range f.folder.Forest() {
		f.cut = append(f.cut, sharding.Entry[[]T]{Node: e.Node, Value: e.Value[:n]})
	}
	return f.cut
}
