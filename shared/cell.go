package shared

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// cell holds the objects that a subtask has under one name. It remains when its objects are
// removed, so that a later Put allocates nothing and the name keeps its type.
type cell interface {
	declared() *declaration
	// size returns the number of objects.
	size() int
	// each calls f with every object, in shard order.
	each(f func(v any))
	// encode calls f with the bytes of every object, in shard order, until f returns false. It
	// overwrites buf with the bytes of each object in turn, and returns the buffer for further
	// use. more is false if f returned false.
	encode(buf []byte, f func(shard int, data []byte, err error) bool) (rest []byte, more bool)
	// check returns an error if the codec does not restore an object from the bytes that encode
	// yielded for it. Objects that are still encoded are not checked.
	check(shard int, data []byte) error
	// move adds the objects to the given new subtasks, as Session.Regroup describes. It returns
	// the objects that none of these subtasks takes.
	move(subtasks []*Objects) (left []any)
}

// singleCell is the cell of a Key: it holds at most one object.
type singleCell[T any] struct {
	key     *key[T]
	value   T
	present bool
}

func (c *singleCell[T]) declared() *declaration { return &c.key.declaration }

func (c *singleCell[T]) size() int {
	if c.present {
		return 1
	}
	return 0
}

// set makes v the object of the cell.
func (c *singleCell[T]) set(o *Objects, v T) {
	if !c.present {
		o.live.Add(1)
	}
	c.value, c.present = v, true
}

// clear removes the object of the cell.
func (c *singleCell[T]) clear(o *Objects) {
	if c.present {
		o.live.Add(-1)
	}
	var zero T
	c.value, c.present = zero, false
}

func (c *singleCell[T]) each(f func(v any)) {
	if c.present {
		f(c.value)
	}
}

func (c *singleCell[T]) encode(buf []byte, f func(int, []byte, error) bool) ([]byte, bool) {
	if !c.present {
		return buf, true
	}
	buf, err := encodeValue(c.key, buf, c.value)
	return buf, f(-1, buf, err)
}

func (c *singleCell[T]) check(_ int, data []byte) error { return checkCodec(c.key, c.value, data) }

// shardCell is the cell of a ShardKey: it holds at most one object per shard. A nil *shardCell
// has no objects.
type shardCell[T any] struct {
	key    *key[T]
	values map[int]T
}

func (c *shardCell[T]) declared() *declaration { return &c.key.declaration }

func (c *shardCell[T]) size() int { return len(c.values) }

func (c *shardCell[T]) get(shard int) (T, bool) {
	if c == nil {
		var zero T
		return zero, false
	}
	v, ok := c.values[shard]
	return v, ok
}

func (c *shardCell[T]) set(o *Objects, shard int, v T) {
	before := len(c.values)
	c.values[shard] = v
	if len(c.values) > before {
		o.live.Add(1)
	}
}

func (c *shardCell[T]) clear(o *Objects, shard int) {
	delete(c.values, shard)
	o.live.Add(-1)
}

// present describes, for messages, which shards have objects.
func (c *shardCell[T]) present() string {
	if c == nil || len(c.values) == 0 {
		return ""
	}
	shards := c.shards()
	return fmt.Sprintf("%d shards between %d and %d have one", len(shards), shards[0], shards[len(shards)-1])
}

func (c *shardCell[T]) shards() []int { return slices.Sorted(maps.Keys(c.values)) }

func (c *shardCell[T]) each(f func(v any)) {
	for _, s := range c.shards() {
		f(c.values[s])
	}
}

func (c *shardCell[T]) encode(buf []byte, f func(int, []byte, error) bool) ([]byte, bool) {
	for _, s := range c.shards() {
		data, err := encodeValue(c.key, buf, c.values[s])
		if !f(s, data, err) {
			return data, false
		}
		buf = data
	}
	return buf, true
}

func (c *shardCell[T]) check(shard int, data []byte) error {
	return checkCodec(c.key, c.values[shard], data)
}

// checkCodec returns an error if the codec of k does not restore v from data, which it has encoded v as:
// if it restores another value, or one that it encodes as other bytes. The second finds losses in what
// firstLoss does not compare.
func checkCodec[T any](k *key[T], v T, data []byte) error {
	restored, err := k.codec.Decode(bytes.Clone(data))
	if err != nil {
		return fmt.Errorf("its codec does not decode what it encoded: %w", err)
	}
	r := releaser{seen: make(map[identity]struct{}), name: k.name}
	defer r.release(restored)
	if l := firstLoss(v, restored); l != nil {
		return fmt.Errorf("its codec restores another object: %v", l)
	}
	again, err := k.codec.Append(nil, restored)
	switch {
	case err != nil:
		return fmt.Errorf("its codec does not encode the restored object: %w", err)
	case !bytes.Equal(again, data):
		return fmt.Errorf("its codec encodes the restored object to other bytes (%d, and %d before)", len(again), len(data))
	}
	return nil
}

// restoreValue decodes an object that was restored for k. A codec that can check whether the type
// was another when the object was saved does so.
func restoreValue[T any](k *key[T], data []byte) (T, error) {
	if c, ok := k.codec.(interface{ restore([]byte) (T, error) }); ok {
		return c.restore(data)
	}
	return k.codec.Decode(data)
}

// encodeValue encodes v with the codec of k into the memory of buf, which it overwrites.
func encodeValue[T any](k *key[T], buf []byte, v T) ([]byte, error) {
	data, err := k.codec.Append(buf[:0], v)
	if err != nil {
		return buf[:0], fmt.Errorf("shared: %v key %q: %w", k.kind, k.name, err)
	}
	return data, nil
}
