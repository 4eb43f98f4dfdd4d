package shared

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type ownPrint struct{ print uint64 }

func (o *ownPrint) Fingerprint() uint64 { return o.print }

func TestSharedFingerprintSeesModification(t *testing.T) {
	type tree struct {
		weights map[string][]float64
		next    *tree
	}
	_, s := open(t, 2)
	floats := []float64{1, 2, 3}
	own := &ownPrint{7}
	walked := &tree{weights: map[string][]float64{"a": {1}, "b": {2, 3}}}
	walked.next = walked
	require.NoError(t, Replicated("floats", Float64s()).Share(s, floats))
	require.NoError(t, Scratch[*ownPrint]("own").Share(s, own))
	require.NoError(t, Scratch[*tree]("walked").Share(s, walked))
	Scratch[int]("private").Put(s.Subtask(0), 1)

	before, err := s.SharedFingerprint()
	require.NoError(t, err)
	require.Len(t, before, 3)
	require.Equal(t, uint64(7), before["own"])
	changed := func() (names string) {
		now, err := s.SharedFingerprint()
		require.NoError(t, err)
		for _, name := range []string{"floats", "own", "walked"} {
			if now[name] != before[name] {
				names += name + " "
			}
		}
		return strings.TrimSpace(names)
	}
	require.Empty(t, changed())
	floats[1] = -2
	require.Equal(t, "floats", changed())
	floats[1] = 2
	require.Empty(t, changed())
	walked.weights["b"][1]++
	require.Equal(t, "walked", changed())
	own.print++
	require.Equal(t, "own walked", changed())

	// An object that every subtask has replaced is nobody's any more.
	Replicated("floats", Float64s()).Put(s.Subtask(0), nil)
	now, _ := s.SharedFingerprint()
	require.Contains(t, now, "floats")
	Replicated("floats", Float64s()).Remove(s.Subtask(1))
	now, _ = s.SharedFingerprint()
	require.NotContains(t, now, "floats")

	require.NoError(t, Replicated("bad", String()).Share(s, "\xff"))
	_, err = s.SharedFingerprint()
	require.ErrorContains(t, err, `key "bad"`)
}

func TestWalkedFingerprints(t *testing.T) {
	print := func(v any) uint64 {
		p, err := fingerprint(nil, v)
		require.NoError(t, err)
		return p
	}
	type pair struct{ a, b any }
	i, j := 1, 1
	values := []any{
		nil, false, true, 0, 1, int32(1), uint(1), 1.0, -1.0, float32(1), 1i, complex64(1), "", "a", "b",
		[]int{}, []int{0}, []int{0, 0}, [2]int{0, 0}, []byte{}, []byte("a"), []string{"ab", "c"}, []string{"a", "bc"},
		map[int]int{}, map[int]int{1: 2}, map[int]int{2: 1}, map[int]int{1: 2, 2: 1},
		(*int)(nil), &i, pair{1, 2}, pair{2, 1}, pair{&i, &i}, pair{&i, &j}, func() {}, (func())(nil), make(chan int),
	}
	seen := map[uint64]any{}
	for _, v := range values {
		p := print(v)
		require.NotContains(t, seen, p, "%#v and %#v", v, seen[p])
		seen[p] = v
		require.Equal(t, p, print(v))
	}
	require.Equal(t, print(&i), print(&j), "addresses do not count")
	type handlers struct{ a, b func() }
	require.NotEqual(t, print(handlers{a: func() {}}), print(handlers{b: func() {}}))
	typed := func(v []float64) uint64 {
		p, err := fingerprint(nil, v)
		require.NoError(t, err)
		return p
	}
	require.NotEqual(t, typed([]float64{0}), typed([]float64{math.Copysign(0, -1)}), "bits count")

	big := map[string]*int{}
	for k := range 50 {
		big[fmt.Sprint(k)] = &i
	}
	want := print(big)
	for range 20 {
		require.Equal(t, want, print(big), "nor does the order of maps")
	}
}
