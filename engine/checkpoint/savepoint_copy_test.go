package checkpoint

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var errFull = errors.New("no space left on device")

// fullStore is a store without room for more than some blobs.
type fullStore struct {
	Store
	room int
}

func (s *fullStore) Put(ctx context.Context, name string, data []byte) error {
	if s.room--; s.room < 0 {
		return errFull
	}
	return s.Store.Put(ctx, name, data)
}

// TestCopyThatFails requires that a copy that fails, after any number of blobs, leaves nothing, so that the
// same place can be used again, and that a place that has a savepoint keeps it.
func TestCopyThatFails(t *testing.T) {
	from, j := open(t, inDir(t.TempDir()), testRun)
	defer from.Close()
	m := write(t, j, state("a", 1, false, []byte("one"), []byte("two")), state("b", 2, true, []byte("three")))
	everywhere(t, func(t *testing.T, empty func() place) {
		p := empty()
		to, err := p.open(t.Context())
		require.NoError(t, err)
		for room := range 4 {
			require.ErrorIs(t, Copy(t.Context(), m, from, &fullStore{to, room}), errFull)
			require.Empty(t, p.blobs(t), "room for %d", room)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, Copy(ended, m, from, to), context.Canceled)
		require.Empty(t, p.blobs(t))
		require.NoError(t, Copy(t.Context(), m, from, to))
		whole := p.blobs(t)
		require.Len(t, whole, 4)
		require.ErrorContains(t, Copy(t.Context(), m, from, to), "give each savepoint a place of its own")
		require.Equal(t, whole, p.blobs(t))
		require.NoError(t, to.Close())
	})
}

// TestLargeNumbers requires that a name with a number that no run reaches is refused, as the names of the run
// would have more digits than it could read again, and that a run continues after any other.
func TestLargeNumbers(t *testing.T) {
	for _, name := range []string{"run-999999999999999999", "checkpoint-1000000000001", pieceName(maxNumber+1, "a", 1, 0)} {
		p := inDir(t.TempDir())
		store, err := p.open(t.Context())
		require.NoError(t, err)
		p.set(t, name, nil)
		_, err = Open(t.Context(), store, testRun)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "remove it")
		require.NoError(t, store.Close())
	}
	p := inDir(t.TempDir())
	p.set(t, markName(maxNumber-10), nil)
	store, j := open(t, p, testRun)
	m := write(t, j, state("a", 1, false, []byte("one")))
	require.NoError(t, store.Close())
	store, j = open(t, p, testRun)
	found, _, err := j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, m.Number, found.Number)
	require.NoError(t, store.Close())
}
