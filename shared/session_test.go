package shared

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/shared/sharding"
)

var (
	_ AnyKey = Key[int]{}
	_ AnyKey = ShardKey[int]{}
	_ Holder = (*Objects)(nil)
)

func open(t require.TestingT, subtasks int) (*Store, *Session) {
	st := NewStore()
	s, err := st.Open("job", "kmeans", subtasks)
	require.NoError(t, err)
	return st, s
}

// accessError returns the AccessError that f panics with.
func accessError(t require.TestingT, f func()) (e *AccessError) {
	defer func() {
		var ok bool
		e, ok = recover().(*AccessError)
		require.True(t, ok, "f must panic with an *AccessError")
	}()
	f()
	return nil
}

// TestObjectsBehaveLikeMaps compares random puts and removals in two subtasks with the same
// operations on one map per subtask.
func TestObjectsBehaveLikeMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, s := open(t, 2)
		keys := []Key[int]{Replicated("r", Int()), Scratch[int]("s")}
		sharded := PerShard("p", Int())
		type place struct{ subtask, key, shard int }
		model := map[place]int{}
		small := rapid.IntRange(0, 3)
		for range rapid.IntRange(0, 60).Draw(t, "operations") {
			at := place{rapid.IntRange(0, 1).Draw(t, "subtask"), rapid.IntRange(0, 2).Draw(t, "key"), small.Draw(t, "shard")}
			o := s.Subtask(at.subtask)
			put, remove, lookup := func(v int) { sharded.Put(o, at.shard, v) },
				func() (int, bool) { return sharded.Remove(o, at.shard) },
				func() (int, bool) { return sharded.Lookup(o, at.shard) }
			if at.key < 2 {
				at.shard = -1
				k := keys[at.key]
				put, remove, lookup = func(v int) { k.Put(o, v) },
					func() (int, bool) { return k.Remove(o) },
					func() (int, bool) { return k.Lookup(o) }
			}
			want, there := model[at]
			got, ok := lookup()
			require.Equal(t, there, ok)
			require.Equal(t, want, got)
			if rapid.Bool().Draw(t, "put") {
				v := rapid.Int().Draw(t, "v")
				put(v)
				model[at] = v
			} else {
				got, ok := remove()
				require.Equal(t, there, ok)
				require.Equal(t, want, got)
				delete(model, at)
			}
			require.Equal(t, len(model), store.Len())
		}
		require.NoError(t, s.Close())
		require.Zero(t, store.Len())
	})
}

func TestGetOfNothingNamesTheKey(t *testing.T) {
	_, s := open(t, 3)
	o := s.Subtask(2)
	Replicated("centroids", Float64s()).Put(o, nil)
	Scratch[int]("buffer").Put(o, 1)
	removed := Scratch[int]("centroidz")
	removed.Put(o, 1)
	removed.Remove(o)

	e := accessError(t, func() { Replicated("centroid", Float64s()).Get(o) })
	require.ErrorIs(t, e, ErrMissing)
	require.Equal(t, `shared: get of replicated key "centroid" ([]float64) in session "kmeans", subtask 2: never put; did you mean "centroids"?`, e.Error())

	sums := PerShard("sums", Float64s())
	sums.Put(o, 4, nil)
	sums.Put(o, 9, nil)
	e = accessError(t, func() { sums.Get(o, 5) })
	require.Equal(t, `shared: get of per-shard key "sums" ([]float64) in session "kmeans", subtask 2, shard 5: never put: 2 shards between 4 and 9 have one`, e.Error())
	require.Nil(t, sums.Get(o, 9))

	e = accessError(t, func() { PerShard("none", Int()).Get(o, 5) })
	require.ErrorIs(t, e, ErrMissing)
	e = accessError(t, func() { removed.Get(o) })
	require.ErrorIs(t, e, ErrMissing)
	require.False(t, sums.Has(o, 5))
	require.True(t, sums.Has(o, 4))
	require.False(t, removed.Has(o))
}

func TestOneNameOneKey(t *testing.T) {
	for _, first := range []func(h Holder){
		func(h Holder) { Replicated("x", Float64s()).Put(h, nil) },
		func(h Holder) { Scratch[[]float64]("x").Put(h, nil) },
		func(h Holder) { Replicated("x", Int()).Put(h, 1) },
		func(h Holder) { PerShard("x", Float64s()).Put(h, 0, nil) },
	} {
		_, s := open(t, 1)
		o := s.Subtask(0)
		first(o)
		faults := 0
		for _, second := range []func(){
			func() { Replicated("x", Float64s()).Get(o) },
			func() { Scratch[[]float64]("x").Put(o, nil) },
			func() { Replicated("x", Int()).Lookup(o) },
			func() { PerShard("x", Float64s()).Put(o, 0, nil) },
		} {
			func() {
				defer func() {
					if e, ok := recover().(*AccessError); ok {
						require.ErrorIs(t, e, ErrMismatch)
						faults++
					}
				}()
				second()
			}()
		}
		require.Equal(t, 3, faults, "every key but the first one used must be refused")
	}
	_, s := open(t, 1)
	Replicated("x", Float64s()).Put(s.Subtask(0), nil)
	e := accessError(t, func() { PerShard("x", Int()).Remove(s.Subtask(0), 3) })
	require.Equal(t, `shared: remove of per-shard key "x" (int) in session "kmeans", subtask 0, shard 3: the name belongs to another key: replicated key "x" ([]float64)`, e.Error())
}

func TestUnusableKeys(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	var zero Key[int]
	var zeroShard ShardKey[int]
	require.ErrorContains(t, zero.Err(), "was not made by")
	require.ErrorContains(t, zeroShard.Err(), "was not made by")
	require.ErrorContains(t, Scratch[int]("").Err(), "needs a name")
	require.ErrorContains(t, Replicated[int]("x", nil).Err(), "needs a codec")
	require.ErrorContains(t, PerShard[int]("x", nil).Err(), "needs a codec")
	require.NoError(t, Scratch[int]("x").Err())
	for _, f := range []func(){
		func() { zero.Get(o) },
		func() { zeroShard.Put(o, 0, 1) },
		func() { Scratch[int]("").Put(o, 1) },
		func() { Replicated[int]("x", nil).Lookup(o) },
		func() { PerShard("x", Int()).Put(o, -1, 1) },
		func() { PerShard("x", Int()).Get(o, sharding.MaxShards) },
	} {
		require.ErrorIs(t, accessError(t, f), ErrKey)
	}
	require.ErrorIs(t, accessError(t, func() { Scratch[int]("x").Get(nil) }), ErrClosed)

	k := PerShard("model", Float64s())
	require.Equal(t, []string{"model", "per-shard", "[]float64"}, []string{k.Name(), k.Kind().String(), k.Type().String()})
	require.Equal(t, "replicated", Replicated("x", Int()).Kind().String())
	require.Equal(t, "scratch", Scratch[int]("x").Kind().String())
	require.Equal(t, "Kind(0)", zero.Kind().String())
}

func TestOpenRefuses(t *testing.T) {
	st, s := open(t, 1)
	_, err := st.Open("job", "kmeans", 1)
	require.ErrorContains(t, err, "open already")
	_, err = st.Open("job", "", 1)
	require.Error(t, err)
	_, err = st.Open("job", "other", 0)
	require.ErrorContains(t, err, "0 subtasks")
	_, err = st.Open("job", "other", sharding.MaxShards+1)
	require.Error(t, err)
	require.NoError(t, s.Close())
	again, err := st.Open("job", "kmeans", 2)
	require.NoError(t, err, "after Close, a session with the same name must be possible")
	require.NoError(t, s.Close(), "closing the old session again must not close the new session")
	Scratch[int]("x").Put(again.Subtask(1), 1)
	require.Equal(t, 1, st.Len())
	require.Panics(t, func() { again.Subtask(2) })
	require.Equal(t, []any{"kmeans", 2, "kmeans", 1}, []any{again.Name(), again.Subtasks(), again.Subtask(1).Session(), again.Subtask(1).Subtask()})
}

// resource is an object that appends its name to log when it is released.
type resource struct {
	name string    `msgpack:"-"`
	log  *[]string `msgpack:"-"`
}

func (r *resource) Release() { *r.log = append(*r.log, r.name) }

func TestCloseReleasesEachObjectOnce(t *testing.T) {
	store, s := open(t, 3)
	var log []string
	make := func(name string) *resource { return &resource{name, &log} }

	inAll := make("in all subtasks")
	for i := range s.Subtasks() {
		Scratch[*resource]("broadcast").Put(s.Subtask(i), inAll)
	}
	Scratch[*resource]("broadcast").Put(s.Subtask(1), make("in place of the broadcast"))
	inTwo := make("in two subtasks")
	Scratch[*resource]("a").Put(s.Subtask(0), inTwo)
	Scratch[*resource]("b").Put(s.Subtask(0), inTwo)
	Scratch[*resource]("a").Put(s.Subtask(2), inTwo)
	byShard := PerShard("z", Msgpack[*resource]())
	for _, shard := range []int{7, 3} {
		byShard.Put(s.Subtask(0), shard, make(fmt.Sprint("shard ", shard)))
	}
	Scratch[*resource]("replaced").Put(s.Subtask(0), make("given back by Put"))
	Scratch[*resource]("replaced").Put(s.Subtask(0), nil)
	Scratch[any]("removed").Put(s.Subtask(0), make("given back by Remove"))
	Scratch[any]("removed").Remove(s.Subtask(0))

	require.Equal(t, 3+3+2+1, store.Len())
	require.NoError(t, s.Close())
	require.Equal(t, []string{"in two subtasks", "in all subtasks", "shard 3", "shard 7", "in place of the broadcast"}, log)
	require.Zero(t, store.Len())
	require.NoError(t, s.Close())
	require.Len(t, log, 5, "closing the session again must release nothing")
}

type fragile struct{}

func (*fragile) Release() { panic("broken") }

func TestCloseGoesOnAfterAPanic(t *testing.T) {
	_, s := open(t, 1)
	var log []string
	Scratch[*fragile]("a").Put(s.Subtask(0), &fragile{})
	Scratch[*resource]("b").Put(s.Subtask(0), &resource{"b", &log})
	require.ErrorContains(t, s.Close(), `release of "a" (*shared.fragile): panic: broken`)
	require.Equal(t, []string{"b"}, log)
}

func TestAccessAfterClose(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	k, sharded := Replicated("x", Int()), PerShard("y", Int())
	k.Put(o, 1)
	require.NoError(t, s.Close())
	for _, f := range []func(){
		func() { k.Get(o) }, func() { k.Put(o, 1) }, func() { k.Lookup(o) }, func() { k.Remove(o) },
		func() { sharded.Get(o, 0) }, func() { sharded.Put(o, 0, 1) }, func() { sharded.Has(o, 0) },
	} {
		require.ErrorIs(t, accessError(t, f), ErrClosed)
	}
	require.ErrorIs(t, o.Restore(nil), ErrClosed)
	_, err := o.Fingerprints(nil, nil)
	require.ErrorIs(t, err, ErrClosed)
	for _, err := range o.Encode(nil) {
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	_, s := open(t, 2)
	var h Holder = s.Subtask(1)
	whole, sharded := Replicated("x", Float64s()), PerShard("y", Float64s())
	v := make([]float64, 8)
	var sum float64
	round := func() {
		whole.Put(h, v)
		sharded.Put(h, 3, v)
		sum += whole.Get(h)[0] + sharded.Get(h, 3)[0]
		if _, ok := whole.Lookup(h); ok {
			whole.Remove(h)
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

// TestSubtasksAreIndependent requires that the race detector reports nothing when subtasks use
// their objects concurrently without a lock.
func TestSubtasksAreIndependent(t *testing.T) {
	store, s := open(t, 8)
	shared, data := Replicated("data", Float64s()), []float64{1, 2, 3}
	for i := range s.Subtasks() {
		shared.Put(s.Subtask(i), data)
	}
	own := Scratch[int]("own")
	var wg sync.WaitGroup
	for i := range s.Subtasks() {
		wg.Go(func() {
			o := s.Subtask(i)
			for step := range 200 {
				own.Put(o, own0(own, o)+step+len(shared.Get(o)))
				store.Len()
			}
		})
	}
	wg.Wait()
	for i := range s.Subtasks() {
		require.Equal(t, 199*200/2+3*200, own.Get(s.Subtask(i)))
	}
	require.Equal(t, 16, store.Len())
}

func own0(k Key[int], o *Objects) int {
	v, _ := k.Lookup(o)
	return v
}

func TestEncodeAndRestore(t *testing.T) {
	_, s := open(t, 2)
	o, to := s.Subtask(0), s.Subtask(1)
	sharded, whole := PerShard("b", Int64s()), Replicated("c", String())
	first := Replicated("a", Msgpack[map[string]int]())
	for _, shard := range []int{30, 2, 100} {
		sharded.Put(o, shard, []int64{int64(shard), -1})
	}
	whole.Put(o, "text")
	first.Put(o, map[string]int{"x": 1})
	Scratch[func()]("aa").Put(o, func() {})
	Replicated("removed", Int()).Put(o, 1)
	Replicated("removed", Int()).Remove(o)

	var order []string
	saved := encoded(t, o)
	for _, e := range saved {
		order = append(order, fmt.Sprint(e.Name, " ", e.Kind, " ", e.Shard))
	}
	require.NoError(t, to.Restore(saved))
	require.Equal(t, []string{"a replicated -1", "b per-shard 2", "b per-shard 30", "b per-shard 100", "c replicated -1"}, order)
	require.Equal(t, map[string]int{"x": 1}, first.Get(to))
	require.Equal(t, []int64{30, -1}, sharded.Get(to, 30))
	require.Equal(t, "text", whole.Get(to))

	n := 0
	for range o.Encode(nil) {
		n++
		if n == 3 {
			break
		}
	}
	require.Equal(t, 3, n, "the iteration must stop when the loop does")
}

func TestEncodeReportsTheKey(t *testing.T) {
	_, s := open(t, 1)
	Replicated("name", String()).Put(s.Subtask(0), "\xff")
	var errs []error
	for _, err := range s.Subtask(0).Encode(nil) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], `replicated key "name"`)
}

func TestAccessErrorUnwraps(t *testing.T) {
	var e *AccessError
	_, s := open(t, 1)
	require.NoError(t, s.Close())
	err := fmt.Errorf("stage assign: %w", accessError(t, func() { Replicated("x", Int()).Get(s.Subtask(0)) }))
	require.True(t, errors.As(err, &e))
	require.Equal(t, "x", e.Key)
	require.Equal(t, -1, e.Shard)
}

func BenchmarkKey(b *testing.B) {
	_, s := open(b, 1)
	var h Holder = s.Subtask(0)
	k, sharded := Replicated("centroidAllReduce", Float64s()), PerShard("assignments", Float64s())
	v := make([]float64, 8)
	for i := range 16 {
		sharded.Put(h, i, v)
		Scratch[int](fmt.Sprint("other", i)).Put(h, i)
	}
	b.Run("Put", func(b *testing.B) {
		for b.Loop() {
			k.Put(h, v)
		}
	})
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			_ = k.Get(h)
		}
	})
	b.Run("GetShard", func(b *testing.B) {
		for b.Loop() {
			_ = sharded.Get(h, 5)
		}
	})
}

func TestOwnedShards(t *testing.T) {
	session, err := NewStore().Open("job", "s", 2)
	require.NoError(t, err)
	key := PerShard("state", Int64s())
	o := session.Subtask(1)
	o.Own(sharding.Range{Lo: 4, Hi: 8})
	key.Put(o, 4, []int64{1})
	require.Equal(t, []int64{1}, key.Get(o, 4))
	for _, use := range []func(){func() { key.Put(o, 8, nil) }, func() { key.Get(o, 3) }} {
		require.PanicsWithError(t, panicText(use), use)
		require.Contains(t, panicText(use), "the subtask owns shards 4 to 7")
	}
	require.NoError(t, session.Close())
}

// panicText returns the text of the error that f panics with.
func panicText(f func()) (text string) {
	defer func() { text = recover().(error).Error() }()
	f()
	return ""
}
