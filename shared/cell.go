package shared

import (
	"fmt"
	"maps"
	"slices"
)

// cell is the place of one name among the objects of a subtask. It outlives the
// objects in it, so that putting again allocates nothing and a name keeps its
// type for the whole session.
type cell interface {
	declared() *declaration
	// size returns the number of objects.
	size() int
	// each calls f with every object the cell owns, in shard order.
	each(f func(v any))
	// encode calls f with the bytes of every object, in shard order, until f
	// is false. It appends the bytes to buf and returns it for further use.
	encode(buf []byte, f func(shard int, data []byte, err error) bool) (rest []byte, more bool)
}

// one is the cell of a Key.
type one[T any] struct {
	key     *key[T]
	value   T
	present bool
	shared  *sharedObject // the record of the value when it was shared, or nil
}

func (c *one[T]) declared() *declaration { return &c.key.declaration }

func (c *one[T]) size() int {
	if c.present {
		return 1
	}
	return 0
}

// set makes v the object; from is its record when it is shared.
func (c *one[T]) set(o *Objects, v T, from *sharedObject) {
	c.leave()
	if !c.present {
		o.live.Add(1)
	}
	c.value, c.present, c.shared = v, true, from
	if from != nil {
		from.holders.Add(1)
	}
}

// clear forgets the object.
func (c *one[T]) clear(o *Objects) {
	c.leave()
	if c.present {
		o.live.Add(-1)
	}
	var zero T
	c.value, c.present, c.shared = zero, false, nil
}

// leave tells the record of a shared object that one subtask less holds it.
func (c *one[T]) leave() {
	if c.shared != nil {
		c.shared.holders.Add(-1)
	}
}

func (c *one[T]) each(f func(v any)) {
	if c.present && c.shared == nil {
		f(c.value)
	}
}

func (c *one[T]) encode(buf []byte, f func(int, []byte, error) bool) ([]byte, bool) {
	if !c.present {
		return buf, true
	}
	buf, err := encodeValue(c.key, buf, c.value)
	return buf, f(-1, buf, err)
}

// many is the cell of a ShardKey. A nil *many has no objects.
type many[T any] struct {
	key    *key[T]
	values map[int]T
}

func (c *many[T]) declared() *declaration { return &c.key.declaration }

func (c *many[T]) size() int { return len(c.values) }

func (c *many[T]) get(shard int) (T, bool) {
	if c == nil {
		var zero T
		return zero, false
	}
	v, ok := c.values[shard]
	return v, ok
}

func (c *many[T]) set(o *Objects, shard int, v T) {
	before := len(c.values)
	c.values[shard] = v
	if len(c.values) > before {
		o.live.Add(1)
	}
}

func (c *many[T]) clear(o *Objects, shard int) {
	delete(c.values, shard)
	o.live.Add(-1)
}

// present says in words which shards have objects.
func (c *many[T]) present() string {
	if c == nil || len(c.values) == 0 {
		return ""
	}
	shards := c.shards()
	return fmt.Sprintf("%d shards between %d and %d have one", len(shards), shards[0], shards[len(shards)-1])
}

func (c *many[T]) shards() []int { return slices.Sorted(maps.Keys(c.values)) }

func (c *many[T]) each(f func(v any)) {
	for _, s := range c.shards() {
		f(c.values[s])
	}
}

func (c *many[T]) encode(buf []byte, f func(int, []byte, error) bool) ([]byte, bool) {
	for _, s := range c.shards() {
		data, err := encodeValue(c.key, buf, c.values[s])
		if !f(s, data, err) {
			return data, false
		}
		buf = data
	}
	return buf, true
}

// encodeValue encodes v over buf.
func encodeValue[T any](k *key[T], buf []byte, v T) ([]byte, error) {
	data, err := k.codec.Append(buf[:0], v)
	if err != nil {
		return buf[:0], fmt.Errorf("shared: %v key %q: %w", k.kind, k.name, err)
	}
	return data, nil
}
