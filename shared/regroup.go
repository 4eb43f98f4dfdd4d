package shared

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Regroup replaces the subtasks of the session by len(owned) new subtasks. New subtask i owns
// the shards in owned[i]. Objects under names for which keep returns true are passed on without
// a copy. An object of a shard goes to the shard's new owner. A replicated object goes from the
// first old subtask that has it to all new subtasks. All other objects are dropped, as by
// Objects.Forget.
//
// The old subtasks must have ended, and nobody may use the session during the call. Afterwards
// access to their Objects fails with ErrClosed. If several ranges contain a shard, the subtask
// with the first of these ranges gets the shard's object. Objects of shards in no range are
// dropped. Restored objects that no key has decoded have no type yet and cannot be kept. If
// keep selects such objects, Regroup returns an error and changes nothing.
func (s *Session) Regroup(owned []sharding.Range, keep func(name string) bool) error {
	switch {
	case s.closed.Load():
		return fmt.Errorf("shared: regroup session %q: %w", s.Name(), ErrClosed)
	case len(owned) < 1 || len(owned) > sharding.MaxShards:
		return fmt.Errorf("shared: regroup session %q among %d subtasks: want 1 to %d", s.Name(), len(owned), sharding.MaxShards)
	}
	for _, o := range s.subtasks {
		for _, name := range o.names() {
			if _, waits := o.cells[name].(*pendingCell); waits && keep(name) {
				return fmt.Errorf("shared: regroup session %q: %q of subtask %d has restored objects that no key has decoded", s.Name(), name, o.subtask)
			}
		}
	}
	fresh := make([]*Objects, len(owned))
	for i, shards := range owned {
		fresh[i] = &Objects{session: s, subtask: i, cells: make(map[string]cell), owned: &shards}
	}
	s.store.mu.Lock() // because Store.Len reads s.subtasks
	defer s.store.mu.Unlock()
	for _, o := range s.subtasks {
		o.Forget(keep)
		for _, name := range o.names() {
			switch c := o.cells[name]; c.declared().kind {
			case KindScratch:
				c.each(o.forgetLater)
			default:
				for _, v := range c.move(fresh) {
					o.forgetLater(v)
				}
			}
		}
		s.forgotten = append(s.forgotten, o.forgotten...)
		o.cells, o.forgotten = nil, nil
		o.live.Store(0)
	}
	s.subtasks = fresh
	return nil
}

// Restore gives the subtasks the objects that Objects.Encode yielded. Objects of a shard go to
// the owner of the shard, and replicated objects to all subtasks. Objects.Restore describes
// when objects are decoded and which objects are refused.
func (s *Session) Restore(saved []Encoded) error {
	for _, e := range saved {
		if e.Kind == KindPerShard && ownerOf(s.subtasks, e.Shard) == nil {
			return fmt.Errorf("shared: restore %q in session %q: no subtask owns shard %d", e.Name, s.Name(), e.Shard)
		}
	}
	for _, o := range s.subtasks {
		var own []Encoded
		for _, e := range saved {
			if e.Kind != KindPerShard || o.owned == nil || o.owned.Contains(e.Shard) {
				own = append(own, e)
			}
		}
		if err := o.Restore(own); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf returns the element of subtasks that owns a shard, or nil if none does. An element
// without a range owns all shards.
func ownerOf(subtasks []*Objects, shard int) *Objects {
	i := slices.IndexFunc(subtasks, func(o *Objects) bool { return o.owned == nil || o.owned.Contains(shard) })
	if i < 0 {
		return nil
	}
	return subtasks[i]
}

func (c *singleCell[T]) move(subtasks []*Objects) (left []any) {
	if !c.present {
		return nil
	}
	for _, o := range subtasks {
		if o.cells[c.key.name] != nil {
			return []any{c.value} // a previous subtask had the same object
		}
		own := &singleCell[T]{key: c.key}
		own.set(o, c.value)
		o.cells[c.key.name] = own
	}
	return nil
}

func (c *shardCell[T]) move(subtasks []*Objects) (left []any) {
	for _, shard := range c.shards() {
		o := ownerOf(subtasks, shard)
		if o == nil {
			left = append(left, c.values[shard])
			continue
		}
		own, there := o.cells[c.key.name].(*shardCell[T])
		if !there {
			own = &shardCell[T]{key: c.key, values: make(map[int]T)}
			o.cells[c.key.name] = own
		}
		own.set(o, shard, c.values[shard])
	}
	return left
}

// move is never called, because Regroup refuses to keep pending objects.
func (c *pendingCell) move([]*Objects) (left []any) { return nil }
