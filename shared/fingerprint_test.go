package shared

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func prints(t require.TestingT, o *Objects) []Fingerprint {
	p, err := o.Fingerprints(nil, nil)
	require.NoError(t, err)
	return p
}

func TestFingerprintsCoverReplicatedObjectsInOrder(t *testing.T) {
	_, s := open(t, 2)
	o, other := s.Subtask(0), s.Subtask(1)
	weights, state := Replicated("weights", Float64s()), Replicated("state", Msgpack[map[string]int]())
	weights.Put(o, []float64{1, 2, 3})
	state.Put(o, map[string]int{"a": 1, "b": 2, "c": 3})
	weights.Put(other, []float64{1, 2, 3})
	state.Put(other, map[string]int{"c": 3, "b": 2, "a": 1})
	Replicated("gone", Int()).Put(o, 1)
	Replicated("gone", Int()).Remove(o)
	Scratch[func()]("work").Put(o, func() {})
	PerShard("counts", Int()).Put(o, 3, 1)

	same := prints(t, o)
	require.Equal(t, same, prints(t, other), "fingerprints must not depend on scratch, per-shard or removed objects, nor on the order of map entries")
	require.Equal(t, []string{"state", "weights"}, []string{same[0].Name, same[1].Name})

	weights.Get(other)[1] = math.Nextafter(2, 3)
	now := prints(t, other)
	require.Equal(t, same[0], now[0])
	require.NotEqual(t, same[1], now[1], "a change of one bit must change the fingerprint")
	weights.Get(other)[1] = 2
	require.Equal(t, same, prints(t, other))
	weights.Put(other, []float64{1, 2, 3, 0})
	require.NotEqual(t, same, prints(t, other), "a change of the length must change the fingerprint")
	weights.Remove(other)
	require.Equal(t, same[:1], prints(t, other))
}

func TestFingerprintsAppendAndLeaveOut(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	for _, name := range []string{"c", "a", "b"} {
		Replicated(name, String()).Put(o, name)
	}
	Replicated("bad", String()).Put(o, "\xff")
	before := []Fingerprint{{"first", 1}}
	got, err := o.Fingerprints(before, nil)
	require.ErrorContains(t, err, `replicated key "bad"`)
	require.Equal(t, before, got, "dst must be returned unchanged")

	got, err = o.Fingerprints(before, func(name string) bool { return name == "bad" || name == "b" })
	require.NoError(t, err, "an object that is left out must not be encoded")
	require.Len(t, got, 3)
	require.Equal(t, before[0], got[0])
	require.Equal(t, []string{"a", "c"}, []string{got[1].Name, got[2].Name})
	require.NotEqual(t, got[1].Hash, got[2].Hash)
}

// TestFingerprintsAreEqualWhereObjectsAre requires that two subtasks have the same fingerprints
// if and only if they hold the same replicated objects.
func TestFingerprintsAreEqualWhereObjectsAre(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		_, s := open(t, 2)
		objects := [2]map[string][]int64{{}, {}}
		for i := range objects {
			for _, name := range names {
				if rapid.Bool().Draw(t, fmt.Sprint(i, name)) {
					v := rapid.SliceOfN(rapid.Int64Range(0, 1), 0, 2).Draw(t, "v")
					objects[i][name] = append([]int64{}, v...)
					Replicated(name, Int64s()).Put(s.Subtask(i), v)
				}
			}
		}
		want := fmt.Sprint(objects[0]) == fmt.Sprint(objects[1])
		got := fmt.Sprint(prints(t, s.Subtask(0))) == fmt.Sprint(prints(t, s.Subtask(1)))
		require.Equal(t, want, got)
	})
}
