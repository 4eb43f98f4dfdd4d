package shared

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Store holds the open sessions of one process, indexed by job and queue. It is safe for
// concurrent use.
type Store struct {
	mu       sync.Mutex
	sessions map[sessionKey]*Session
}

// sessionKey identifies a session in a store.
type sessionKey struct{ job, queue string }

// NewStore returns an empty Store.
func NewStore() *Store { return &Store{sessions: make(map[sessionKey]*Session)} }

// Open begins the session of a queue with the given number of subtasks. The name of the job may
// be empty. After the session is closed, Open can be called with the same names again.
func (st *Store) Open(job, queue string, subtasks int) (*Session, error) {
	if queue == "" {
		return nil, errors.New("shared: open: a session needs a name")
	}
	if subtasks < 1 || subtasks > sharding.MaxShards {
		return nil, fmt.Errorf("shared: open session %q with %d subtasks: want 1 to %d", queue, subtasks, sharding.MaxShards)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	key := sessionKey{job, queue}
	if _, ok := st.sessions[key]; ok {
		return nil, fmt.Errorf("shared: open session %q: it is open already", queue)
	}
	s := &Session{key: key, store: st, subtasks: make([]*Objects, subtasks)}
	for i := range s.subtasks {
		s.subtasks[i] = &Objects{session: s, subtask: i, cells: make(map[string]cell)}
	}
	st.sessions[key] = s
	return s, nil
}

// Find returns the open session of a queue, or nil if there is none.
func (st *Store) Find(job, queue string) *Session {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.sessions[sessionKey{job, queue}]
}

// Close closes the sessions of a job that are still open, in the order of their queues.
func (st *Store) Close(job string) error {
	st.mu.Lock()
	var left []*Session
	for key, s := range st.sessions {
		if key.job == job {
			left = append(left, s)
		}
	}
	st.mu.Unlock()
	slices.SortFunc(left, func(a, b *Session) int { return cmp.Compare(a.Name(), b.Name()) })
	var errs []error
	for _, s := range left {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Len returns the number of live objects in all sessions. An object that several subtasks hold
// counts once for each subtask. After all sessions were closed, Len is 0.
func (st *Store) Len() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := int64(0)
	for _, s := range st.sessions {
		for _, o := range s.subtasks {
			n += o.live.Load()
		}
	}
	return int(n)
}

// forget removes the session s from the store when s is closed.
func (st *Store) forget(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.sessions[s.key] == s {
		delete(st.sessions, s.key)
	}
}

// Session holds the objects of the subtasks of one queue until it is closed. Regroup replaces
// the subtasks within the same session.
type Session struct {
	key      sessionKey
	store    *Store
	subtasks []*Objects // Regroup replaces it while it holds the store's mutex
	closed   atomic.Bool

	forgotten []any // objects of former subtasks, to be released when the session closes
}

// Name returns the name of the session, which is the name of its queue.
func (s *Session) Name() string { return s.key.queue }

// Subtasks returns the number of subtasks.
func (s *Session) Subtasks() int { return len(s.subtasks) }

// Subtask returns the objects of subtask i. It panics if there is no such subtask.
func (s *Session) Subtask(i int) *Objects {
	if i < 0 || i >= len(s.subtasks) {
		panic(fmt.Sprintf("shared: session %q has no subtask %d: it has %d", s.Name(), i, len(s.subtasks)))
	}
	return s.subtasks[i]
}

// Close ends the session. It removes all objects, and later accesses fail with ErrClosed. It
// calls Release() once on every object that has this method, even if several subtasks or keys
// hold the object. Two pointers, maps or slices count as one object if they refer to the same
// memory. Objects are released in the order of subtask, name and shard. If the release of some
// objects panics, the others are still released, and the error names the objects that panicked.
//
// Close must be called only after the subtasks have ended. Calling it again does nothing.
func (s *Session) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	r := releaser{seen: make(map[identity]struct{})}
	for _, o := range s.subtasks {
		for _, name := range o.names() {
			r.name = name
			o.cells[name].each(r.release)
		}
		r.name = "a forgotten object"
		for _, v := range o.forgotten {
			r.release(v)
		}
		o.cells, o.forgotten = nil, nil
		o.live.Store(0)
	}
	for _, v := range s.forgotten {
		r.release(v)
	}
	s.forgotten = nil
	s.store.forget(s)
	if err := errors.Join(r.errs...); err != nil {
		return fmt.Errorf("shared: close session %q: %w", s.Name(), err)
	}
	return nil
}

// Objects holds the objects of one subtask in one session. Only the goroutine of the subtask
// may use it, so it takes no lock.
type Objects struct {
	session *Session
	subtask int
	cells   map[string]cell
	live    atomic.Int64    // number of objects in cells; atomic because Store.Len reads it
	owned   *sharding.Range // shards of the subtask, set by Own or Regroup; nil means any shard

	forgotten []any // dropped objects, to be released when the session closes
	refusal   func(Kind) string
}

// Refuse makes later calls of Put fail for the kinds of keys for which reason returns a text,
// which is any string but "". Refuse(nil) allows Put for all kinds again.
func (o *Objects) Refuse(reason func(Kind) string) { o.refusal = reason }

// Own sets the shards that the subtask owns. Afterwards an access through a per-shard key to
// another shard fails with ErrKey.
func (o *Objects) Own(shards sharding.Range) { o.owned = &shards }

// Objects returns o. With this method, *Objects is itself a Holder.
func (o *Objects) Objects() *Objects { return o }

// Session returns the name of the session.
func (o *Objects) Session() string { return o.session.Name() }

// closed reports whether the session has ended, or Regroup has replaced the subtask.
func (o *Objects) closed() bool { return o.session.closed.Load() || o.cells == nil }

// Subtask returns the number of the subtask.
func (o *Objects) Subtask() int { return o.subtask }

// Encoded is one object, encoded by the codec of its key.
type Encoded struct {
	Name  string
	Kind  Kind
	Shard int    // -1 unless Kind is KindPerShard
	Data  []byte // valid until Encode yields the next object
}

// Encode iterates over the replicated and per-shard objects, sorted by name and then by shard.
// It leaves out scratch objects, and objects for whose key's name and kind except returns true;
// except may be nil. If a codec fails or the session is closed, Encode yields the error and ends.
func (o *Objects) Encode(except func(name string, kind Kind) bool) iter.Seq2[Encoded, error] {
	return func(yield func(Encoded, error) bool) {
		if o.closed() {
			yield(Encoded{Shard: -1}, fmt.Errorf("shared: encode session %q, subtask %d: %w", o.session.Name(), o.subtask, ErrClosed))
			return
		}
		var buf []byte
		more := true
		for _, name := range o.names() {
			c := o.cells[name]
			kind := c.declared().kind
			if kind == KindScratch || except != nil && except(name, kind) {
				continue
			}
			buf, more = c.encode(buf, func(shard int, data []byte, err error) bool {
				if err != nil {
					yield(Encoded{Name: name, Kind: kind, Shard: shard}, err)
					return false
				}
				return yield(Encoded{name, kind, shard, data}, nil)
			})
			if !more {
				return
			}
		}
	}
}

// names returns the names of the cells, sorted.
func (o *Objects) names() []string { return slices.Sorted(maps.Keys(o.cells)) }

// reach returns the Objects of h. It returns an error if operation op cannot be performed on
// them with a key that has declaration d.
func reach(h Holder, d *declaration, op string, shard int) (*Objects, *AccessError) {
	var o *Objects
	if h != nil {
		o = h.Objects()
	}
	switch {
	case d.err != nil:
		return nil, o.fault(d, op, shard, ErrKey, d.err.Error())
	case o == nil:
		return nil, o.fault(d, op, shard, ErrClosed, "there are no objects here")
	case o.closed():
		return nil, o.fault(d, op, shard, ErrClosed, "")
	case o.refusal != nil && op == "put":
		if why := o.refusal(d.kind); why != "" {
			return nil, o.fault(d, op, shard, ErrRefused, why)
		}
	}
	return o, nil
}

// fault returns the error of a failed access; o may be nil.
func (o *Objects) fault(d *declaration, op string, shard int, cause error, detail string) *AccessError {
	e := &AccessError{Op: op, Key: d.name, Kind: d.kind, Type: d.typ, Subtask: -1, Shard: shard, Detail: detail, Err: cause}
	if o != nil {
		e.Session, e.Subtask = o.session.Name(), o.subtask
	}
	return e
}

// missing returns the error of a Get of an object that does not exist.
func (o *Objects) missing(d *declaration, shard int, detail string) *AccessError {
	e := o.fault(d, "get", shard, ErrMissing, detail)
	var present []string
	for name, c := range o.cells {
		if name != d.name && c.size() > 0 {
			present = append(present, name)
		}
		if _, pending := c.(*pendingCell); pending {
			e.Unused = append(e.Unused, name)
		}
	}
	slices.Sort(e.Unused)
	e.Near = spelling.Near(d.name, present)
	return e
}

// mismatch returns the error of using a key with declaration d if the cell of its name, found,
// belongs to a key of another kind or type.
func (o *Objects) mismatch(d *declaration, op string, shard int, found cell) *AccessError {
	other := found.declared()
	typ := "restored"
	if other.typ != nil {
		typ = other.typ.String()
	}
	return o.fault(d, op, shard, ErrMismatch, fmt.Sprintf("%v key %q (%s)", other.kind, other.name, typ))
}

// releaser releases objects. It releases an object that it is given several times only once.
type releaser struct {
	seen map[identity]struct{}
	name string // name of the key of the object being released, for errors
	errs []error
}

// identity identifies an object that is a pointer, map or slice.
type identity struct {
	typ     reflect.Type
	pointer uintptr
	length  int
}

func (r *releaser) release(v any) {
	object, ok := v.(interface{ Release() })
	if !ok {
		return
	}
	if rv := reflect.ValueOf(v); slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func}, rv.Kind()) {
		if rv.IsNil() {
			return
		}
		id := identity{typ: rv.Type(), pointer: rv.Pointer()}
		if rv.Kind() == reflect.Slice {
			id.length = rv.Len()
		}
		if _, again := r.seen[id]; again {
			return
		}
		r.seen[id] = struct{}{}
	}
	defer func() {
		if p := recover(); p != nil {
			r.errs = append(r.errs, fmt.Errorf("release of %q (%T): panic: %v", r.name, v, p))
		}
	}()
	object.Release()
}
