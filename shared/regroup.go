package shared

import (
	"fmt"
	"slices"
)

// Regroup makes the session one of other subtasks: of as many as there are ranges, each of
// which owns the shards of one. What is under names for which keep is true goes to them as it
// is: an object of a shard to the subtask that owns the shard now, a replicated one, as the
// first subtask that has it holds it, to all. Everything else is dropped, as Forget does.
//
// The subtasks of before have ended, and nobody uses the session meanwhile: access to their
// Objects fails with ErrClosed from now on. Where ranges overlap the first one owns the shard;
// objects of shards that none has are dropped. Restored objects that no key has reached cannot
// be kept, as they have no type yet: then nothing changes.
func (s *Session) Regroup(owned []Range, keep func(name string) bool) error {
	switch {
	case s.closed.Load():
		return fmt.Errorf("shared: regroup session %q: %w", s.Name(), ErrClosed)
	case len(owned) < 1 || len(owned) > MaxShards:
		return fmt.Errorf("shared: regroup session %q among %d subtasks: want 1 to %d", s.Name(), len(owned), MaxShards)
	}
	for _, o := range s.subtasks {
		for _, name := range o.names() {
			if _, waits := o.cells[name].(*pending); waits && keep(name) {
				return fmt.Errorf("shared: regroup session %q: %q of subtask %d still waits in its bytes", s.Name(), name, o.subtask)
			}
		}
	}
	fresh := make([]*Objects, len(owned))
	for i, shards := range owned {
		fresh[i] = &Objects{session: s, subtask: i, cells: make(map[string]cell), owned: &shards}
	}
	s.store.mu.Lock() // for Len
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

// Restore makes saved objects, as Encode gave them, those of the subtasks: those of a shard
// of the one that owns it, replicated ones of each. See Objects.Restore.
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

// ownerOf returns the objects of the subtask that owns a shard, or nil.
func ownerOf(subtasks []*Objects, shard int) *Objects {
	i := slices.IndexFunc(subtasks, func(o *Objects) bool { return o.owned == nil || o.owned.Contains(shard) })
	if i < 0 {
		return nil
	}
	return subtasks[i]
}

func (c *one[T]) move(to []*Objects) (left []any) {
	if !c.present {
		return nil
	}
	for _, o := range to {
		if o.cells[c.key.name] != nil {
			return []any{c.value} // a subtask before had one, which is the same
		}
		own := &one[T]{key: c.key}
		own.set(o, c.value)
		o.cells[c.key.name] = own
	}
	return nil
}

func (c *many[T]) move(to []*Objects) (left []any) {
	for _, shard := range c.shards() {
		o := ownerOf(to, shard)
		if o == nil {
			left = append(left, c.values[shard])
			continue
		}
		own, there := o.cells[c.key.name].(*many[T])
		if !there {
			own = &many[T]{key: c.key, values: make(map[int]T)}
			o.cells[c.key.name] = own
		}
		own.set(o, shard, c.values[shard])
	}
	return left
}

// move gives nothing: Regroup refuses names under which something waits.
func (c *pending) move([]*Objects) (left []any) { return nil }
