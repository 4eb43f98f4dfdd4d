package comqueue

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// AllReduceObject merges the objects that the subtasks have under key and gives every subtask a
// copy of the result, under the same key. The objects may be of any type: sketches, sets of
// candidates, statistics. The key's codec encodes them, so a scratch key is an error. A subtask
// without an object contributes nothing. If no subtask has an object, there is no result. The
// result replaces a subtask's own object, which is released if it has a Release method.
//
// merge folds two values; left comes from the subtasks with lower numbers. Both are copies,
// which merge may change and keep. The result of merge must depend only on left and right. All
// subtasks gather all objects, so AllReduceObject is for objects of moderate size. The objects
// are merged in the fold tree over subtasks; a subtask without an object is an absent leaf of
// the tree. So the result depends on parallelism, and the plan says so. AllReduceShardObjects
// avoids this.
func AllReduceObject[V any](key shared.Key[V], merge func(left, right V) V) Stage {
	return &reduceObject[V]{key: key, merge: merge}
}

type reduceObject[V any] struct {
	key   shared.Key[V]
	merge func(left, right V) V
}

func (s *reduceObject[V]) misuse() error {
	if err := usable(s.key); err != nil {
		return err
	}
	if s.merge == nil {
		return fmt.Errorf("AllReduceObject(%q): the function that merges is nil", s.key.Name())
	}
	return hasCodec("AllReduceObject", s.key, s.key.Codec())
}

func (s *reduceObject[V]) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{
		Kind: engine.StageCommunicate, Op: "AllReduceObject", Name: s.key.Name(), Func: s.merge, Order: engine.RankTree,
		Attrs: []engine.Attr{{Key: "merge", Value: functionName(s.merge)}},
	}}
}

func (s *reduceObject[V]) bind(b *body, _ int) ([]engine.Stage, error) {
	c := &b.context
	request := collective.ObjectReduction[V]{Name: s.key.Name(), Codec: s.key.Codec(), Merge: s.merge, Context: c.Context()}
	return b.communicate(func() error {
		if v, ok := s.key.Lookup(c); ok {
			request.Value = &v
		}
		result, present, err := collective.AllReduceObject(b.comm, &request)
		request.Value = nil
		if err == nil && present {
			replace(c, s.key, result)
		}
		return err
	}, gathered), nil
}

// gathered names the algorithm and executor of a reduction of objects.
func gathered(c *communication) string { return "all-gather and merge, " + c.latest.String() }

// AllReduceShardObjects merges the objects that all shards have under from, up the tree over
// shards, and gives every subtask a copy of the result under into. The result is the same at
// any parallelism. Shards without an object are absent from the tree. If no shard has an
// object, an object under into is removed. The objects of the shards are not changed. See
// AllReduceObject for merge.
func AllReduceShardObjects[V any](from shared.ShardKey[V], into shared.Key[V], merge func(left, right V) V) Stage {
	return &reduceShardObjects[V]{from: from, into: into, merge: merge}
}

type reduceShardObjects[V any] struct {
	from  shared.ShardKey[V]
	into  shared.Key[V]
	merge func(left, right V) V
}

func (s *reduceShardObjects[V]) misuse() error {
	err := distinct(s.from, s.into)
	if err == nil && s.merge == nil {
		err = fmt.Errorf("the function that merges is nil")
	}
	if err != nil {
		return fmt.Errorf("AllReduceShardObjects(%q, %q): %w", s.from.Name(), s.into.Name(), err)
	}
	return nil
}

func (s *reduceShardObjects[V]) describe(*layout, int) []engine.StageSpec {
	return []engine.StageSpec{{
		Kind: engine.StageCommunicate, Op: "AllReduceShardObjects", Name: s.from.Name(), Func: s.merge, Order: engine.ShardTree,
		Attrs: []engine.Attr{{Key: "into", Value: s.into.Name()}, {Key: "merge", Value: functionName(s.merge)}},
	}}
}

func (s *reduceShardObjects[V]) bind(b *body, _ int) ([]engine.Stage, error) {
	c := &b.context
	folder := sharding.NewFolder(c.Shards(), s.merge, nil)
	request := collective.ObjectReduction[V]{
		Name: s.from.Name(), Codec: s.from.Codec(), Merge: s.merge, Shards: c.TotalShards(), Context: c.Context(),
	}
	var encoded []byte
	return b.communicate(func() error {
		folder.Reset(c.Shards())
		err := c.eachShard(func(shard int) error {
			v, ok := s.from.Lookup(c, shard)
			if !ok {
				return nil
			}
			// merge may change its operands, so it gets a copy of the shard's object.
			var err error
			if encoded, err = s.from.Codec().Append(encoded[:0], v); err == nil {
				v, err = s.from.Codec().Decode(encoded)
			}
			if err != nil {
				return fmt.Errorf("object %q: %w", s.from.Name(), err)
			}
			folder.Push(shard, v)
			return nil
		})
		if err != nil {
			return err
		}
		request.Forest = folder.Forest()
		result, present, err := collective.AllReduceObject(b.comm, &request)
		request.Forest = nil
		if err != nil {
			return err
		}
		putOrRemove(c, s.into, result, present)
		return nil
	}, gathered), nil
}

// eachShard calls f for each shard of the subtask, including shards without rows. Errors name
// the shard.
func (c *ComContext) eachShard(f func(shard int) error) error {
	for shard := c.task.Range.Lo; shard < c.task.Range.Hi; shard++ {
		c.shard.Store(int32(shard))
		if err := f(shard); err != nil {
			return err
		}
	}
	c.shard.Store(-1)
	return nil
}

// putOrRemove puts result under into, or removes the previous result if present is false.
func putOrRemove[V any](c *ComContext, into shared.Key[V], result V, present bool) {
	if present {
		replace(c, into, result)
		return
	}
	if old, had := into.Remove(c); had {
		release(old)
	}
}
