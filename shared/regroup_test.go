package shared

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// counted is an object that counts how often it is released.
type counted struct{ released *int }

func (c *counted) Release() { *c.released++ }

// carried is the codec of objects that no test encodes.
type carried struct{}

func (carried) Append(dst []byte, _ *counted) ([]byte, error) { return dst, nil }
func (carried) Decode([]byte) (*counted, error)               { return &counted{new(int)}, nil }

// TestRegroup requires that Regroup passes objects of shards to the new owners without a copy,
// passes replicated objects to all subtasks, and drops all others. Each object must be released
// once, when the session closes.
func TestRegroup(t *testing.T) {
	const shards = 8
	rows, all := PerShard[*counted]("rows", carried{}), Replicated[*counted]("all", carried{})
	gone, room := PerShard("gone", Int()), Scratch[*counted]("room")
	for _, from := range []int{1, 2, 3, 8} {
		for _, to := range []int{1, 2, 5, 8} {
			st := NewStore()
			s, err := st.Open("job", "q", from)
			require.NoError(t, err)
			released := make([]int, shards+2)
			held := make([]*counted, shards)
			one := &counted{&released[shards]}
			for i := range from {
				o := s.Subtask(i)
				o.Own(sharding.Split(shards, from, i))
				all.Put(o, one)
				room.Put(o, &counted{&released[shards+1]})
				for shard := o.owned.Lo; shard < o.owned.Hi; shard++ {
					held[shard] = &counted{&released[shard]}
					rows.Put(o, shard, held[shard])
					gone.Put(o, shard, shard)
				}
			}
			before := s.Subtask(0)
			owned := make([]sharding.Range, to)
			for i := range owned {
				owned[i] = sharding.Split(shards, to, i)
			}
			require.NoError(t, s.Regroup(owned, func(name string) bool { return name != "gone" }))
			require.Equal(t, to, s.Subtasks())
			require.Equal(t, shards+to, st.Len())
			for i, r := range owned {
				o := s.Subtask(i)
				require.Same(t, one, all.Get(o))
				require.False(t, room.Has(o))
				for shard := r.Lo; shard < r.Hi; shard++ {
					require.Same(t, held[shard], rows.Get(o, shard))
					require.False(t, gone.Has(o, shard))
				}
				if r.Lo > 0 {
					require.ErrorIs(t, accessOf(func() { rows.Has(o, 0) }), ErrKey)
				}
			}
			require.ErrorIs(t, accessOf(func() { all.Get(before) }), ErrClosed)
			for _, n := range released {
				require.Zero(t, n)
			}
			require.NoError(t, s.Close())
			want := []int{1, 1, 1, 1, 1, 1, 1, 1, 1, from}
			require.Equal(t, want, released)
			require.Zero(t, st.Len())
		}
	}
}

// accessOf returns the error that an access panics with.
func accessOf(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

// TestRegroupRefuses requires that a Regroup that fails changes nothing.
func TestRegroupRefuses(t *testing.T) {
	st := NewStore()
	s, err := st.Open("job", "q", 2)
	require.NoError(t, err)
	keep := func(string) bool { return true }
	require.ErrorContains(t, s.Regroup(nil, keep), `regroup session "q" among 0 subtasks: want 1 to`)
	n := Replicated("n", Int())
	require.NoError(t, s.Restore([]Encoded{{Name: "n", Kind: KindReplicated, Shard: -1, Data: []byte{5, 0, 0, 0, 0, 0, 0, 0}}}))
	require.Equal(t, 5, n.Get(s.Subtask(0)))
	require.ErrorContains(t, s.Regroup([]sharding.Range{{Lo: 0, Hi: 8}}, keep), `"n" of subtask 1 has restored objects that no key has decoded`)
	require.Equal(t, 5, n.Get(s.Subtask(1)))
	require.NoError(t, s.Regroup([]sharding.Range{{Lo: 0, Hi: 8}}, keep))
	require.Equal(t, 5, n.Get(s.Subtask(0)))
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Regroup([]sharding.Range{{Lo: 0, Hi: 8}}, keep), ErrClosed)
}

// TestRegroupDropsShardsOfNobody requires that an object of a shard that no new subtask owns is
// dropped, and released when the session closes.
func TestRegroupDropsShardsOfNobody(t *testing.T) {
	st := NewStore()
	s, err := st.Open("job", "q", 1)
	require.NoError(t, err)
	rows, released := PerShard[*counted]("rows", carried{}), 0
	rows.Put(s.Subtask(0), 3, &counted{&released})
	require.NoError(t, s.Regroup([]sharding.Range{{Lo: 0, Hi: 3}, {Lo: 4, Hi: 8}}, func(string) bool { return true }))
	require.Zero(t, st.Len())
	require.NoError(t, s.Close())
	require.Equal(t, 1, released)
}

// TestSessionRestore requires that Session.Restore gives objects of a shard to the owner of the
// shard, and replicated objects to all subtasks.
func TestSessionRestore(t *testing.T) {
	five := []byte{5, 0, 0, 0, 0, 0, 0, 0}
	st := NewStore()
	s, err := st.Open("job", "q", 1)
	require.NoError(t, err)
	require.NoError(t, s.Regroup([]sharding.Range{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 8}}, func(string) bool { return true }))
	require.NoError(t, s.Restore([]Encoded{
		{Name: "all", Kind: KindReplicated, Shard: -1, Data: five},
		{Name: "each", Kind: KindPerShard, Shard: 1, Data: five},
		{Name: "each", Kind: KindPerShard, Shard: 2, Data: five},
	}))
	all, each := Replicated("all", Int()), PerShard("each", Int())
	for i := range 2 {
		require.Equal(t, 5, all.Get(s.Subtask(i)))
		require.Equal(t, 5, each.Get(s.Subtask(i), i+1))
	}
	require.Equal(t, 4, st.Len())
	require.NoError(t, s.Regroup([]sharding.Range{{Lo: 0, Hi: 2}}, func(string) bool { return false }))
	require.ErrorContains(t, s.Restore([]Encoded{{Name: "each", Kind: KindPerShard, Shard: 2, Data: five}}), `restore "each" in session "q": no subtask owns shard 2`)
	require.ErrorContains(t, s.Restore([]Encoded{{Name: "x", Kind: KindScratch, Shard: -1}}), `scratch objects are not restored`)
}

// TestStoreOfJobs opens sessions of several jobs with the same queue name.
func TestStoreOfJobs(t *testing.T) {
	st := NewStore()
	a, err := st.Open("a", "q", 1)
	require.NoError(t, err)
	b, err := st.Open("b", "q", 1)
	require.NoError(t, err)
	other, err := st.Open("a", "p", 1)
	require.NoError(t, err)
	require.Same(t, a, st.Find("a", "q"))
	require.Same(t, b, st.Find("b", "q"))
	require.Nil(t, st.Find("c", "q"))
	Scratch[int]("n").Put(other.Subtask(0), 1)
	require.Equal(t, 1, st.Len())
	require.NoError(t, st.Close("a"))
	require.Zero(t, st.Len())
	require.Nil(t, st.Find("a", "q"))
	require.Nil(t, st.Find("a", "p"))
	require.Same(t, b, st.Find("b", "q"))
	require.NoError(t, st.Close("a"))
	_, err = st.Open("a", "q", 3)
	require.NoError(t, err)
	require.NoError(t, st.Close("a"))
	require.NoError(t, st.Close("b"))
}
