package checkpoint

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// unreadable is a Store that cannot read some blobs for a while.
type unreadable struct {
	Store
	fails string // part of the names of these blobs; "" if all can be read
}

func (s *unreadable) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	if s.fails != "" && strings.Contains(name, s.fails) {
		return nil, syscall.EIO
	}
	return s.Store.Get(ctx, name, most)
}

// TestUnreadableIsNotDamaged requires that a checkpoint that cannot be read is an error of its own and not taken for
// damaged, as an older one would be used otherwise, and that it is used when it can be read.
func TestUnreadableIsNotDamaged(t *testing.T) { everywhere(t, testUnreadable) }

func testUnreadable(t *testing.T, empty func() place) {
	opened, j := open(t, empty(), testRun)
	defer opened.Close()
	for step := 1; step <= 2; step++ {
		write(t, j, state("a", step, false, []byte{byte(step)}))
	}
	store, run := &unreadable{Store: opened}, testRun
	run.Queues = []Stages{{Queue: "a"}}
	for _, fails := range []string{"checkpoint-00000002", pieceName(1, "a", 2, 0), ""} {
		store.fails = fails
		j, err := Open(t.Context(), store, testRun)
		require.NoError(t, err)
		c, refused, err := j.Load(t.Context(), nil)
		saved, _, _, savepointErr := LoadSavepoint(t.Context(), store, run, nil)
		require.Empty(t, refused)
		if store.fails == "" {
			require.NoError(t, errors.Join(err, savepointErr))
			require.Equal(t, []int{2, 2}, []int{c.Number, saved.Number})
			continue
		}
		for _, err := range []error{err, savepointErr} {
			var unread *ReadError
			require.ErrorAs(t, err, &unread)
			require.ErrorIs(t, err, syscall.EIO)
			require.ErrorContains(t, err, "checkpoint-00000002")
		}
	}
}

// TestWhatDamagedCheckpointsMayHave requires that the error about damaged checkpoints knows the queues of
// which they may have states, from what is left of them.
func TestWhatDamagedCheckpointsMayHave(t *testing.T) { everywhere(t, testMayHave) }

func testMayHave(t *testing.T, empty func() place) {
	for _, what := range []string{"the manifest", "the pieces"} {
		p := empty()
		store, j := open(t, p, testRun)
		write(t, j, state("a", 1, false, []byte("one")), state("b", 1, true, []byte("one")))
		require.NoError(t, store.Close())
		if what == "the manifest" {
			p.set(t, manifestName(1), []byte("x"))
		} else {
			p.remove(t, pieceName(1, "a", 1, 0))
			p.remove(t, pieceName(1, "b", 1, 0))
		}
		store, j = open(t, p, testRun)
		_, _, err := j.Load(t.Context(), nil)
		require.NoError(t, store.Close())
		var unusable *UnusableError
		require.ErrorAs(t, err, &unusable, what)
		for queue, want := range map[string]bool{"a": true, "b": true, "c": false} {
			require.Equal(t, want, unusable.MayHave(queue), "%s, queue %s", what, queue)
		}
	}
}

// TestAdopt requires that a run which has adopted a savepoint has the states of all its queues, its own newer ones
// among them, and says so in each later checkpoint. A savepoint that is damaged is not adopted.
func TestAdopt(t *testing.T) { everywhere(t, testAdopt) }

func testAdopt(t *testing.T, empty func() place) {
	place := empty()
	savepoint, j := open(t, place, testRun)
	defer savepoint.Close()
	m := write(t, j, state("a", 5, false, []byte("old a"), []byte("more")), state("b", 7, true, []byte("old b")))
	p := empty()
	own, j := open(t, p, testRun)
	write(t, j, state("a", 6, false, []byte("new a")))
	store := &unreadable{Store: savepoint, fails: pieceName(1, "b", 7, 0)}
	require.ErrorContains(t, j.Adopt(t.Context(), store, m, "there"), "it cannot be read")
	write(t, j, state("a", 7, false, []byte("newer a")))
	require.NoError(t, own.Close())
	load := func() (*Checkpoint, *Journal) {
		var err error
		own, j = open(t, p, testRun)
		c, refused, err := j.Load(t.Context(), nil)
		require.NoError(t, errors.Join(append(refused, err)...))
		return c, j
	}
	c, j := load()
	require.Empty(t, c.Savepoint)
	require.Len(t, c.Queues, 1)
	require.NoError(t, j.Adopt(t.Context(), savepoint, m, "there"))
	require.NoError(t, own.Close())
	for range 2 {
		c, j = load()
		require.Equal(t, "there", c.Savepoint)
		require.Equal(t, []string{"newer a", "old b"}, []string{string(c.Pieces[0][0]), string(c.Pieces[1][0])})
		require.True(t, c.Queues[1].Ended)
		write(t, j, state("c", 1, false, nil))
		require.NoError(t, own.Close())
	}
}
