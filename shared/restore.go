package shared

import (
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// Forget drops all objects of the subtask except those under a name for which keep returns
// true. Dropped objects with a method Release() are released only when the session closes,
// because other subtasks may hold them too.
func (o *Objects) Forget(keep func(name string) bool) {
	for _, name := range o.names() {
		if keep(name) {
			continue
		}
		c := o.cells[name]
		o.live.Add(-int64(c.size()))
		c.each(o.forgetLater)
		delete(o.cells, name)
	}
}

// CheckCodecs returns an error that names the first of the given objects, which Encode yielded,
// that its codec does not decode, or decodes to an object that differs or that it encodes differently.
// The error says where the first difference is. Such an object cannot be restored. Objects that are
// restored and not used yet are not checked.
func (o *Objects) CheckCodecs(saved []Encoded) error {
	if o.closed() {
		return fmt.Errorf("shared: check codecs of session %q, subtask %d: %w", o.session.Name(), o.subtask, ErrClosed)
	}
	for _, e := range saved {
		c := o.cells[e.Name]
		if c == nil {
			return fmt.Errorf("shared: check codecs of session %q, subtask %d: there is no object %q", o.session.Name(), o.subtask, e.Name)
		}
		if err := c.check(e.Shard, e.Data); err != nil {
			where := ""
			if e.Kind == KindPerShard {
				where = fmt.Sprintf(" of shard %d", e.Shard)
			}
			return fmt.Errorf("the %v object %q%s cannot be restored: %w", e.Kind, e.Name, where, err)
		}
	}
	return nil
}

// forgetLater makes the session release an object when it closes, if the object has a method
// Release().
func (o *Objects) forgetLater(v any) {
	if _, ok := v.(interface{ Release() }); ok {
		o.forgotten = append(o.forgotten, v)
	}
}

// Restore gives the subtask the objects that Encode yielded. An object stays encoded until a
// key of its name is used, so keys may be made after Restore. Until the key is used, the caller
// must not change the object's bytes. Restore returns an error and restores nothing if the
// subtask already has objects under the name of an object, if it does not own the shard of an
// object, or if an object is a scratch object.
func (o *Objects) Restore(saved []Encoded) error {
	if o.closed() {
		return fmt.Errorf("shared: restore session %q, subtask %d: %w", o.session.Name(), o.subtask, ErrClosed)
	}
	cells := make(map[string]*pendingCell)
	type place struct {
		name  string
		shard int
	}
	taken := make(map[place]bool, len(saved))
	for _, e := range saved {
		c := cells[e.Name]
		var err error
		switch {
		case e.Kind != KindReplicated && e.Kind != KindPerShard:
			err = fmt.Errorf("%v objects are not restored", e.Kind)
		case e.Kind == KindReplicated && e.Shard != -1, e.Kind == KindPerShard && (e.Shard < 0 || e.Shard >= sharding.MaxShards):
			err = fmt.Errorf("a %v object of shard %d", e.Kind, e.Shard)
		case e.Kind == KindPerShard && o.owned != nil && !o.owned.Contains(e.Shard):
			err = fmt.Errorf("shard %d: the subtask owns shards %d to %d", e.Shard, o.owned.Lo, o.owned.Hi-1)
		case c == nil && o.cells[e.Name] != nil:
			err = errors.New("the subtask has it already")
		case c != nil && c.kind != e.Kind:
			err = fmt.Errorf("both %v and %v", c.kind, e.Kind)
		case taken[place{e.Name, e.Shard}]:
			err = errors.New("it comes twice")
		}
		if err != nil {
			return fmt.Errorf("shared: restore %q in session %q, subtask %d: %w", e.Name, o.session.Name(), o.subtask, err)
		}
		if c == nil {
			c = &pendingCell{declaration: declaration{name: e.Name, kind: e.Kind}}
			cells[e.Name] = c
		}
		c.objects, taken[place{e.Name, e.Shard}] = append(c.objects, e), true
	}
	for name, c := range cells {
		slices.SortFunc(c.objects, func(a, b Encoded) int { return a.Shard - b.Shard })
		o.cells[name] = c
		o.live.Add(int64(len(c.objects)))
	}
	return nil
}

// pendingCell is the cell of restored objects that no key has decoded yet.
type pendingCell struct {
	declaration
	objects []Encoded // in shard order
}

func (c *pendingCell) declared() *declaration { return &c.declaration }
func (c *pendingCell) size() int              { return len(c.objects) }
func (c *pendingCell) each(func(v any))       {}

func (c *pendingCell) check(int, []byte) error { return nil }

func (c *pendingCell) encode(buf []byte, f func(int, []byte, error) bool) ([]byte, bool) {
	for _, e := range c.objects {
		buf = append(buf[:0], e.Data...)
		if !f(e.Shard, buf, nil) {
			return buf, false
		}
	}
	return buf, true
}

// reachPending decodes the objects of found if found is a pending cell of k's kind, and
// otherwise returns an error. It calls put to add each object to the new cell, which is passed
// as replaced. Then it stores the new cell instead of found.
func reachPending[T any](o *Objects, k *key[T], op string, shard int, found, replaced cell, put func(shard int, v T)) *AccessError {
	c, isPending := found.(*pendingCell)
	if !isPending || c.kind != k.kind {
		return o.mismatch(&k.declaration, op, shard, found)
	}
	for _, e := range c.objects {
		v, err := restoreValue(k, e.Data)
		if err != nil {
			return o.fault(&k.declaration, op, e.Shard, ErrRestored, err.Error())
		}
		put(e.Shard, v)
	}
	o.live.Add(-int64(len(c.objects))) // put has counted the objects again
	o.cells[k.name] = replaced
	return nil
}
