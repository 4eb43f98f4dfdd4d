package shared

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// encoded returns the objects that Encode yields for a subtask, with copies of their bytes.
func encoded(t require.TestingT, o *Objects) (all []Encoded) {
	for e, err := range o.Encode(nil) {
		require.NoError(t, err)
		e.Data = bytes.Clone(e.Data)
		all = append(all, e)
	}
	return all
}

// TestForgetAndRestore requires that replicated and per-shard objects are the same after any
// number of saves and restores, whether or not they were decoded in between. Scratch objects
// must be dropped.
func TestForgetAndRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, s := open(t, 1)
		o := s.Subtask(0)
		whole := []Key[[]float64]{Replicated("a", Float64s()), Replicated("b", Float64s())}
		parts, scratch := PerShard("c", String()), Scratch[int]("d")
		values := map[string]string{}
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			switch at := rapid.IntRange(0, 5).Draw(t, "operation"); at {
			case 0, 1:
				v := []float64{rapid.Float64().Draw(t, "value")}
				whole[at].Put(o, v)
				values[whole[at].Name()] = fmt.Sprint(v)
			case 2, 3:
				shard := rapid.IntRange(0, 3).Draw(t, "shard")
				v := rapid.StringN(0, 3, -1).Draw(t, "value")
				parts.Put(o, shard, v)
				values[fmt.Sprint("c", shard)] = v
			case 4:
				scratch.Put(o, 1)
			case 5:
				before := encoded(t, o)
				prints, err := o.Fingerprints(nil, nil)
				require.NoError(t, err)
				o.Forget(func(string) bool { return false })
				require.Zero(t, store.Len())
				require.NoError(t, o.Restore(before))
				require.Equal(t, before, encoded(t, o), "a pending object must be encoded as the bytes that were restored")
				again, err := o.Fingerprints(nil, nil)
				require.NoError(t, err)
				require.Equal(t, prints, again)
				require.False(t, scratch.Has(o))
				require.Equal(t, len(values), store.Len())
			}
		}
		for name, want := range values {
			if name[0] == 'c' {
				require.Equal(t, want, parts.Get(o, int(name[1]-'0')))
			} else {
				require.Equal(t, want, fmt.Sprint(whole[name[0]-'a'].Get(o)))
			}
		}
		require.NoError(t, s.Close())
		require.Zero(t, store.Len())
	})
}

// TestRestoreRefuses requires that Restore restores no object if one of them is invalid.
func TestRestoreRefuses(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	o.Own(sharding.Range{Lo: 2, Hi: 4})
	Replicated("there", Int()).Put(o, 1)
	good := Encoded{Name: "good", Kind: KindReplicated, Shard: -1}
	for want, bad := range map[string][]Encoded{
		"scratch objects are not restored":     {{Name: "x", Kind: KindScratch, Shard: -1}},
		"Kind(0) objects are not restored":     {{Name: "x", Shard: -1}},
		"a replicated object of shard 3":       {{Name: "x", Kind: KindReplicated, Shard: 3}},
		"a per-shard object of shard -1":       {{Name: "x", Kind: KindPerShard, Shard: -1}},
		"the subtask owns shards 2 to 3":       {{Name: "x", Kind: KindPerShard, Shard: 4}},
		"the subtask has it already":           {{Name: "there", Kind: KindReplicated, Shard: -1}},
		"both replicated and per-shard":        {{Name: "x", Kind: KindReplicated, Shard: -1}, {Name: "x", Kind: KindPerShard, Shard: 2}},
		`restore "x" in session "kmeans", sub`: {{Name: "x", Kind: KindPerShard, Shard: 2}, {Name: "x", Kind: KindPerShard, Shard: 2}},
	} {
		require.ErrorContains(t, o.Restore(append([]Encoded{good}, bad...)), want)
		require.False(t, Replicated("good", Int()).Has(o))
	}
	require.Equal(t, 1, Replicated("there", Int()).Get(o))
}

// TestKeysThatDoNotFitWhatIsRestored requires that access fails if the kind or codec of a key
// does not fit the pending objects of its name, and that the objects stay pending.
func TestKeysThatDoNotFitWhatIsRestored(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	require.NoError(t, o.Restore([]Encoded{{"x", KindPerShard, 3, []byte{1, 2}}, {"y", KindReplicated, -1, nil}}))
	e := accessError(t, func() { PerShard("x", Float64s()).Get(o, 3) })
	require.ErrorIs(t, e, ErrRestored)
	require.ErrorContains(t, e, `per-shard key "x" ([]float64) in session "kmeans", subtask 0, shard 3`)
	for _, f := range []func(){func() { Replicated("x", String()).Put(o, "") }, func() { Scratch[int]("x").Get(o) }, func() { PerShard("y", Int()).Get(o, 0) }} {
		require.ErrorIs(t, accessError(t, f), ErrMismatch)
	}
	require.Equal(t, "\x01\x02", PerShard("x", String()).Get(o, 3))
}

// TestMissingAfterRestore requires that the error of a Get names the restored objects that no key has used, as
// the key may have had another name when they were saved.
func TestMissingAfterRestore(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	saved := []Encoded{{"used", KindReplicated, -1, []byte("v")}, {"rate", KindReplicated, -1, nil}, {"margins", KindPerShard, 3, nil}, {"margins", KindPerShard, 4, nil}}
	require.NoError(t, o.Restore(saved))
	require.Equal(t, "v", Replicated("used", String()).Get(o))
	e := accessError(t, func() { Replicated("pace", Int()).Get(o) })
	require.ErrorIs(t, e, ErrMissing)
	require.ErrorContains(t, e, `subtask 0: never put; the state from which the queue continues has "margins", "rate", which no key has used so far`)
	var many []Encoded
	for i := range 6 {
		many = append(many, Encoded{fmt.Sprint("z", i), KindReplicated, -1, nil})
	}
	require.NoError(t, o.Restore(many))
	e = accessError(t, func() { PerShard("pace", Int()).Get(o, 1) })
	require.ErrorContains(t, e, `has "margins", "rate", "z0", "z1", "z2" and 3 more, which no key`)
}

// TestForgottenObjectsAreReleasedOnce requires that dropped objects are released once, when the
// session closes.
func TestForgottenObjectsAreReleasedOnce(t *testing.T) {
	_, s := open(t, 2)
	v := &released{}
	k := Scratch[*released]("x")
	k.Put(s.Subtask(0), v)
	k.Put(s.Subtask(1), v)
	s.Subtask(0).Forget(func(string) bool { return false })
	k.Put(s.Subtask(0), v)
	require.Zero(t, v.times)
	require.NoError(t, s.Close())
	require.Equal(t, 1, v.times)
}

type released struct{ times int }

func (r *released) Release() { r.times++ }

func TestRefusedPuts(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	whole, scratch := Replicated("x", Int()), Scratch[int]("y")
	o.Refuse(func(k Kind) string {
		if k == KindScratch {
			return "later"
		}
		return ""
	})
	whole.Put(o, 1)
	e := accessError(t, func() { scratch.Put(o, 1) })
	require.ErrorIs(t, e, ErrRefused)
	require.ErrorContains(t, e, "later")
	o.Refuse(nil)
	scratch.Put(o, whole.Get(o))
}

// BenchmarkRestore restores an object of each shard. The time per object should not depend on
// the number of shards.
func BenchmarkRestore(b *testing.B) {
	for _, shards := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			_, s := open(b, 1)
			o, key := s.Subtask(0), PerShard("sums", Float64s())
			for shard := range shards {
				key.Put(o, shard, make([]float64, 4))
			}
			saved := encoded(b, o)
			b.ReportAllocs()
			for b.Loop() {
				o.Forget(func(string) bool { return false })
				require.NoError(b, o.Restore(saved))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*shards), "ns/object")
		})
	}
}

// lossy is a codec that does not restore what it encodes.
type lossy struct{ Codec[string] }

func (lossy) Decode([]byte) (string, error) { return "other", nil }

// TestCheckCodecs requires that objects whose codecs do not restore them are named.
func TestCheckCodecs(t *testing.T) {
	store := NewStore()
	s, err := store.Open("", "q", 1)
	require.NoError(t, err)
	o := s.Subtask(0)
	Replicated("fine", Float64s()).Put(o, []float64{1, 2})
	fine := PerShard("fine per shard", Int())
	fine.Put(o, 3, 4)
	saved := func() (all []Encoded) {
		for e, err := range o.Encode(nil) {
			require.NoError(t, err)
			e.Data = bytes.Clone(e.Data)
			all = append(all, e)
		}
		return all
	}
	before := saved()
	require.NoError(t, o.CheckCodecs(before))
	require.Equal(t, before, saved(), "the check must change nothing")
	Replicated("lossy", Codec[string](lossy{String()})).Put(o, "what was")
	require.EqualError(t, o.CheckCodecs(saved()), `the replicated object "lossy" cannot be restored: its codec restores another object: it has "other" in place of "what was"`)
	require.ErrorContains(t, o.CheckCodecs([]Encoded{{Name: "none"}}), `there is no object "none"`)
	require.NoError(t, s.Close())
	require.ErrorIs(t, o.CheckCodecs(nil), ErrClosed)
}
