package shared

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Kind says how checkpoints and rescaling treat an object.
type Kind int

const (
	// KindReplicated objects are the same on every subtask. A checkpoint has one copy, which is
	// restored to every subtask.
	KindReplicated Kind = iota + 1
	// KindPerShard objects belong to a shard, and move with it when another subtask becomes its
	// owner.
	KindPerShard
	// KindScratch objects belong to one subtask. They are neither saved nor moved: the subtask
	// makes them again.
	KindScratch
)

// String returns "replicated", "per-shard" or "scratch".
func (k Kind) String() string {
	switch k {
	case KindReplicated:
		return "replicated"
	case KindPerShard:
		return "per-shard"
	case KindScratch:
		return "scratch"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// AnyKey has the methods that keys of objects of every type have.
type AnyKey interface {
	Name() string
	Kind() Kind
	Type() reflect.Type // type of the objects
	Err() error         // why the key is unusable, or nil
}

// Holder gives access to the objects of one subtask. The context of a stage is a Holder.
type Holder interface{ Objects() *Objects }

// declaration holds the properties that all keys with one name must have in common.
type declaration struct {
	name string
	kind Kind
	typ  reflect.Type
	err  error
}

// key holds the properties of a Key or ShardKey. All copies of a Key or ShardKey point to the
// same key, which never changes.
type key[T any] struct {
	declaration
	codec Codec[T]
}

func newKey[T any](kind Kind, name string, c Codec[T]) *key[T] {
	k := &key[T]{declaration{name, kind, reflect.TypeFor[T](), nil}, c}
	switch {
	case name == "":
		k.err = errors.New("a key needs a name")
	case c == nil && kind != KindScratch:
		k.err = fmt.Errorf("%v key %q (%v) needs a codec; only scratch keys go without", kind, name, k.typ)
	default:
		if of, ok := c.(interface{ usable() error }); ok {
			if err := of.usable(); err != nil {
				k.err = fmt.Errorf("%v key %q (%v): %w", kind, name, k.typ, err)
			}
		}
	}
	return k
}

// Key names one object of type T per subtask: replicated or scratch. A Key is made once,
// usually as a package variable next to the stages that use it, and may be copied. The zero Key
// is unusable.
//
// Get, Put and the other methods that take a Holder must be called in the goroutine of the
// holder's subtask. They panic with an *AccessError if the name is in use by a key of another
// kind or type, if the session is closed, or if the key is unusable.
type Key[T any] struct{ *key[T] }

// Replicated makes the key of an object that is the same on every subtask.
func Replicated[T any](name string, c Codec[T]) Key[T] {
	return Key[T]{newKey(KindReplicated, name, c)}
}

// Scratch makes the key of an object that a subtask can make again at any time.
func Scratch[T any](name string) Key[T] {
	return Key[T]{newKey[T](KindScratch, name, nil)}
}

// Name returns the name of the key.
func (k Key[T]) Name() string { return k.declared().name }

// Kind returns KindReplicated or KindScratch.
func (k Key[T]) Kind() Kind { return k.declared().kind }

// Type returns the type of the objects.
func (k Key[T]) Type() reflect.Type { return reflect.TypeFor[T]() }

// Err returns why the key is unusable (it has no name, or no codec, or one that loses fields, or
// was not made by Replicated or Scratch), or nil.
func (k Key[T]) Err() error { return k.declared().err }

// Codec returns the codec that the key was made with, nil for a scratch key.
func (k Key[T]) Codec() Codec[T] {
	if k.key == nil {
		return nil
	}
	return k.key.codec
}

// Get returns the object. It panics with an *AccessError if there is no object. The session
// owns the object. A stage may change the object only if the other stages that use the key
// expect that, and never if other subtasks hold the same object.
func (k Key[T]) Get(h Holder) T {
	c, err := k.cell(h, "get", false)
	if err == nil && (c == nil || !c.present) {
		err = h.Objects().missing(k.declared(), -1, "")
	}
	if err != nil {
		panic(err)
	}
	return c.value
}

// Lookup returns the object, or false if there is none.
func (k Key[T]) Lookup(h Holder) (T, bool) {
	c, err := k.cell(h, "lookup", false)
	if err != nil {
		panic(err)
	}
	if c == nil {
		var zero T
		return zero, false
	}
	return c.value, c.present
}

// Has reports whether there is an object.
func (k Key[T]) Has(h Holder) bool {
	_, ok := k.Lookup(h)
	return ok
}

// Put makes v the object of the subtask. The session then owns v, and the caller owns the
// object that v replaces. Replacing an object allocates nothing.
//
// The same object may be put into several subtasks, as after a broadcast. Then nobody may
// change the object, and the session releases it only once.
func (k Key[T]) Put(h Holder, v T) {
	c, err := k.cell(h, "put", true)
	if err != nil {
		panic(err)
	}
	c.set(h.Objects(), v)
}

// Remove removes the object and returns it. The caller then owns it. Remove returns false if
// there was no object.
func (k Key[T]) Remove(h Holder) (T, bool) {
	c, err := k.cell(h, "remove", false)
	if err != nil {
		panic(err)
	}
	var zero T
	if c == nil || !c.present {
		return zero, false
	}
	v := c.value
	c.clear(h.Objects())
	return v, true
}

// declared returns the key's declaration. For the zero Key it returns a declaration with an
// error.
func (k Key[T]) declared() *declaration {
	if k.key == nil {
		return &unmadeKey
	}
	return &k.key.declaration
}

var unmadeKey = declaration{err: errors.New("the key was not made by Replicated, PerShard or Scratch")}

// cell returns the key's cell in h. If there is no such cell yet, it makes one if create is
// true, and otherwise returns nil.
func (k Key[T]) cell(h Holder, op string, create bool) (*singleCell[T], *AccessError) {
	o, err := reach(h, k.declared(), op, -1)
	if err != nil {
		return nil, err
	}
	found, ok := o.cells[k.key.name]
	if !ok {
		if !create {
			return nil, nil
		}
		c := &singleCell[T]{key: k.key}
		o.cells[k.key.name] = c
		return c, nil
	}
	c, ok := found.(*singleCell[T])
	switch {
	case !ok:
		c = &singleCell[T]{key: k.key}
		if err := reachPending(o, k.key, op, -1, found, c, func(_ int, v T) { c.set(o, v) }); err != nil {
			return nil, err
		}
	case c.key.kind != k.key.kind:
		return nil, o.mismatch(k.declared(), op, -1, found)
	}
	return c, nil
}

// ShardKey names one object of type T for each shard of a subtask. It is made and used like a
// Key, and its methods panic in the same cases. They also panic with an *AccessError if the
// shard does not exist or belongs to another subtask.
type ShardKey[T any] struct{ *key[T] }

// PerShard makes the key of objects of which each belongs to a shard and moves with it.
func PerShard[T any](name string, c Codec[T]) ShardKey[T] {
	return ShardKey[T]{newKey(KindPerShard, name, c)}
}

// Name returns the name of the key.
func (k ShardKey[T]) Name() string { return k.declared().name }

// Kind returns KindPerShard.
func (k ShardKey[T]) Kind() Kind { return k.declared().kind }

// Type returns the type of the objects.
func (k ShardKey[T]) Type() reflect.Type { return reflect.TypeFor[T]() }

// Err returns why the key is unusable (it has no name, or no codec, or one that loses fields, or
// was not made by PerShard), or nil.
func (k ShardKey[T]) Err() error { return k.declared().err }

// Codec returns the codec that the key was made with, nil for the zero ShardKey.
func (k ShardKey[T]) Codec() Codec[T] {
	if k.key == nil {
		return nil
	}
	return k.key.codec
}

// Get returns the object of a shard. It panics with an *AccessError if the shard has no object.
func (k ShardKey[T]) Get(h Holder, shard int) T {
	c, err := k.cell(h, "get", shard, false)
	if err == nil {
		if v, ok := c.get(shard); ok {
			return v
		}
		err = h.Objects().missing(k.declared(), shard, c.present())
	}
	panic(err)
}

// Lookup returns the object of a shard, or false if there is none.
func (k ShardKey[T]) Lookup(h Holder, shard int) (T, bool) {
	c, err := k.cell(h, "lookup", shard, false)
	if err != nil {
		panic(err)
	}
	return c.get(shard)
}

// Has reports whether the shard has an object.
func (k ShardKey[T]) Has(h Holder, shard int) bool {
	_, ok := k.Lookup(h, shard)
	return ok
}

// Put makes v the object of a shard. The session then owns v, and the caller owns the object
// that v replaces. Replacing an object allocates nothing.
func (k ShardKey[T]) Put(h Holder, shard int, v T) {
	c, err := k.cell(h, "put", shard, true)
	if err != nil {
		panic(err)
	}
	c.set(h.Objects(), shard, v)
}

// Remove removes the object of a shard and returns it. The caller then owns it. Remove returns
// false if the shard had no object.
func (k ShardKey[T]) Remove(h Holder, shard int) (T, bool) {
	c, err := k.cell(h, "remove", shard, false)
	if err != nil {
		panic(err)
	}
	v, ok := c.get(shard)
	if ok {
		c.clear(h.Objects(), shard)
	}
	return v, ok
}

func (k ShardKey[T]) declared() *declaration {
	if k.key == nil {
		return &unmadeKey
	}
	return &k.key.declaration
}

// cell returns the key's cell in h. If there is no such cell yet, it makes one if create is
// true, and otherwise returns nil, which is a valid *many without objects.
func (k ShardKey[T]) cell(h Holder, op string, shard int, create bool) (*shardCell[T], *AccessError) {
	o, err := reach(h, k.declared(), op, shard)
	if err != nil {
		return nil, err
	}
	if shard < 0 || shard >= sharding.MaxShards {
		return nil, o.fault(k.declared(), op, shard, ErrKey, fmt.Sprintf("shard %d does not exist", shard))
	}
	if o.owned != nil && !o.owned.Contains(shard) {
		return nil, o.fault(k.declared(), op, shard, ErrKey, fmt.Sprintf("the subtask owns shards %d to %d", o.owned.Lo, o.owned.Hi-1))
	}
	found, ok := o.cells[k.key.name]
	if !ok {
		if !create {
			return nil, nil
		}
		c := &shardCell[T]{key: k.key, values: make(map[int]T)}
		o.cells[k.key.name] = c
		return c, nil
	}
	c, ok := found.(*shardCell[T])
	if !ok {
		c = &shardCell[T]{key: k.key, values: make(map[int]T)}
		if err := reachPending(o, k.key, op, shard, found, c, func(shard int, v T) { c.set(o, shard, v) }); err != nil {
			return nil, err
		}
	}
	return c, nil
}
