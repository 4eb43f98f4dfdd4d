package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/disk"
)

// attempt opens the store of an attempt of a job on a cluster, in a directory, and its Journal.
func attempt(t *testing.T, path string, number int) (Store, *Journal) {
	t.Helper()
	store, err := OpenDirOf(disk.OS(), path, "job", number)
	require.NoError(t, err)
	j, err := Open(t.Context(), store, testRun)
	require.NoError(t, err)
	return store, j
}

// TestOverlappingAttempts requires that a later attempt takes over a directory while an earlier one
// still writes: the earlier one writes no further checkpoint and leaves no blobs, and what the later
// one has loaded and written stays, whatever the earlier one does.
func TestOverlappingAttempts(t *testing.T) {
	path := inDir(t.TempDir())
	old, stale := attempt(t, string(path), 1)
	require.NoError(t, stale.Announce(t.Context(), "attempt 1"))
	write(t, stale, state("a", 1, false, []byte("one")))
	joined, err := JoinDir(disk.OS(), string(path))
	require.NoError(t, err)
	staleParts, err := Join(t.Context(), joined, stale.Generation(), 1, "attempt 1")
	require.NoError(t, err)
	write(t, stale, state("a", 2, false, []byte("two")))

	store, next := attempt(t, string(path), 2)
	found, _, err := next.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 2, found.Queues[0].Superstep)
	require.NoError(t, next.Announce(t.Context(), "attempt 2"))
	require.Greater(t, next.Generation(), stale.Generation())
	before := path.blobs(t)

	_, _, err = stale.Write(t.Context(), []State{state("a", 3, false, []byte("three"))})
	require.ErrorIs(t, err, ErrTaken)
	require.Equal(t, before, path.blobs(t), "the earlier attempt must leave nothing")
	require.NoError(t, staleParts.Write(t.Context(), []State{partOf("a", 4, 2, 1, 3)}), "the mark of the earlier attempt is still there")

	require.Equal(t, 3, write(t, next, state("a", 3, false, []byte("THREE"))).Number)
	kept := path.blobs(t)
	require.NotContains(t, slices.Collect(maps.Keys(kept)), markName(stale.Generation()))
	require.ErrorIs(t, staleParts.Write(t.Context(), []State{partOf("a", 5, 2, 1, 3)}), ErrTaken)
	_, err = OpenDirOf(disk.OS(), string(path), "job", 1)
	require.ErrorIs(t, err, ErrTaken, "an earlier attempt that begins late must not take the directory back")
	_, err = OpenDirOf(disk.OS(), string(path), "another job", 3)
	require.ErrorContains(t, err, "another run writes its checkpoints")
	require.NoError(t, old.Close())
	_, err = OpenDir(disk.OS(), string(path))
	require.ErrorContains(t, err, "another run writes its checkpoints", "the end of the earlier attempt must not unlock the directory")
	require.Equal(t, kept, path.blobs(t))

	require.NoError(t, next.Remove(t.Context()))
	require.NoError(t, store.Close())
	require.NoError(t, joined.Close())
	require.NoFileExists(t, string(path)+"/"+lockName)
	require.Empty(t, path.blobs(t), "nothing may be left")
}

// TestEmptiedDirectory requires that an attempt that finds its files removed, and no mark of a later attempt,
// does not take that for a later attempt, writes nothing more, and that the next attempt can begin. The mark
// of a later attempt, although it has ended, still ends an earlier one.
func TestEmptiedDirectory(t *testing.T) {
	path := inDir(t.TempDir())
	begin := func(number int) (Store, *Journal, *PartWriter) {
		store, j := attempt(t, string(path), number)
		key := fmt.Sprint("attempt ", number)
		require.NoError(t, j.Announce(t.Context(), key))
		joined, err := JoinDir(disk.OS(), string(path))
		require.NoError(t, err)
		parts, err := Join(t.Context(), joined, j.Generation(), 1, key)
		require.NoError(t, err)
		return store, j, parts
	}
	old, j, parts := begin(1)
	write(t, j, state("a", 1, false, []byte("one")))
	for name := range path.blobs(t) {
		path.remove(t, name)
	}
	path.remove(t, lockName)
	write := func(want error) {
		before := path.blobs(t)
		require.ErrorIs(t, parts.Write(t.Context(), []State{partOf("a", 2, 2, 1, 3)}), want)
		_, _, err := j.Write(t.Context(), []State{state("a", 2, false, []byte("two"))})
		require.ErrorIs(t, err, want)
		require.Equal(t, before, path.blobs(t), "nothing may be left")
	}
	write(ErrGone)

	store, _, next := begin(2)
	require.NoError(t, next.Write(t.Context(), []State{partOf("a", 2, 2, 1, 3)}))
	write(ErrTaken)
	require.NoError(t, store.Close())
	_, third := attempt(t, string(path), 3)
	require.NoError(t, third.Announce(t.Context(), "attempt 3"))
	require.Greater(t, third.Generation(), j.Generation())
	path.remove(t, markName(j.Generation()))
	path.remove(t, lockName)
	write(ErrTaken)
	require.NoError(t, old.Close())
}

// TestManifestUnderWay requires that a later attempt goes on although the earlier one writes one more
// manifest, which was under way when the directory was taken over, and removes what it does not keep.
func TestManifestUnderWay(t *testing.T) {
	path := inDir(t.TempDir())
	_, stale := attempt(t, string(path), 1)
	require.NoError(t, stale.Announce(t.Context(), "attempt 1"))
	for step := 1; step <= 2; step++ {
		write(t, stale, state("a", step, false, []byte("one")), state("done", 1, true, []byte("the end")))
	}
	store, next := attempt(t, string(path), 2)
	stale.store = underWay{stale.store}
	_, _, err := stale.Write(t.Context(), []State{state("a", 3, false, []byte("one"))})
	require.NoError(t, err)
	found, _, err := next.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 2, found.Number, "what was the newest when the directory was taken over must be there")
	require.NoError(t, next.Announce(t.Context(), "attempt 2"))
	m := write(t, next, state("a", 3, false, []byte("two")))
	require.Equal(t, 4, m.Number, "the number 3 is taken")
	require.NoError(t, stale.sweep(t.Context()))
	require.NoError(t, store.Close())

	_, third := attempt(t, string(path), 3)
	found, refused, err := third.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Equal(t, m.Queues, found.Queues)
	require.Equal(t, "two", string(found.Pieces[0][0]))
	require.Equal(t, "the end", string(found.Pieces[1][0]))
}

// underWay is a store whose Publish has found that no other run has taken it over, before one did.
type underWay struct{ Store }

func (s underWay) Publish(_ context.Context, name string, data []byte) error {
	return s.Put(context.Background(), name, data)
}

// TestGenerationsDiffer requires that two attempts that find the same blobs do not choose the same
// generation.
func TestGenerationsDiffer(t *testing.T) {
	everywhere(t, func(t *testing.T, empty func() place) {
		p := empty()
		store, err := p.open(t.Context())
		require.NoError(t, err)
		var taken []int
		var journals []*Journal
		for range 3 {
			j, err := Open(t.Context(), store, testRun)
			require.NoError(t, err)
			journals = append(journals, j)
		}
		for i, j := range journals {
			require.NoError(t, j.Announce(t.Context(), string(rune('a'+i))))
			require.NotContains(t, taken, j.Generation())
			taken = append(taken, j.Generation())
		}
		require.NoError(t, store.Close())
	})
}
