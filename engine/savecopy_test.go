package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
)

// copying runs f with a saver in a synctest bubble, which copies savepoints to the store of their place.
func copying(t *testing.T, settings checkpointConfig, places map[string]*memoryStore, f func(t *testing.T, ctx context.Context, s *saver, store *memoryStore)) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		s, err := startSaver(ctx, store, "j", &settings, hclog.NewNullLogger(), cancel)
		require.NoError(t, err)
		s.openPlace = func(_ context.Context, place string, _ context.CancelCauseFunc) (checkpoint.Store, error) {
			return places[place], nil
		}
		f(t, ctx, s, store)
	})
}

// copyResults has the answers to requests.
type copyResults chan error

func (a copyResults) done(_ *checkpoint.Manifest, err error) { a <- err }

// answer returns an answer, and false if there is none.
func (a copyResults) answer() (there bool, err error) {
	synctest.Wait()
	select {
	case err := <-a:
		return true, err
	default:
		return false, nil
	}
}

// TestSlowSavepoint requires that checkpoints go on while a checkpoint is copied to a slow place, that
// --checkpoint-fail-after does not count the copy, that savepoints are copied one after the other, and that
// each has the state from the time when it was asked for.
func TestSlowSavepoint(t *testing.T) {
	slow := &memoryStore{blobs: make(map[string][]byte), takes: time.Minute}
	next := &memoryStore{blobs: make(map[string][]byte)}
	copying(t, checkpointConfig{steps: 1, failAfter: 8 * time.Second}, map[string]*memoryStore{"slow": slow, "next": next}, func(t *testing.T, ctx context.Context, s *saver, store *memoryStore) {
		ask := func(place string, step int) copyResults {
			a := make(copyResults, 1)
			s.Due("a", step)
			require.NoError(t, s.saveNow(place, a.done))
			s.Save("a", cutAt(step+1, false))
			synctest.Wait()
			return a
		}
		first, second := ask("slow", 1), ask("next", 3)
		for step := 5; step < 20; step++ {
			require.True(t, s.Due("a", step), "nothing is being written")
			s.Save("a", cutAt(step, false))
			time.Sleep(time.Second)
			require.Equal(t, map[string]int{"a": step}, store.steps(t))
		}
		there, _ := first.answer()
		require.False(t, there)
		require.Zero(t, next.written(), "one copy at a time")
		time.Sleep(5 * time.Minute)
		require.NoError(t, ctx.Err())
		for _, a := range []copyResults{first, second} {
			there, err := a.answer()
			require.True(t, there)
			require.NoError(t, err)
		}
		require.Equal(t, map[string]int{"a": 2}, slow.steps(t))
		require.Equal(t, map[string]int{"a": 4}, next.steps(t))

		s.Save("a", cutAt(20, false))
		time.Sleep(time.Second)
		entries, err := checkpoint.List(ctx, store, true)
		require.NoError(t, err)
		require.Len(t, entries, 2, "what was copied is removed")
		s.close(endSucceeded)
		require.Empty(t, store.blobs)
	})
}

// TestSavepointOfARunThatEnds requires that savepoints that are not complete fail when the run ends, at once if
// their place obeys its context and after a limited time if not, and that the checkpoints are removed then.
func TestSavepointOfARunThatEnds(t *testing.T) {
	slow := &memoryStore{blobs: make(map[string][]byte), takes: time.Hour}
	stuck := &memoryStore{blobs: make(map[string][]byte)}
	for place, wait := range map[string]time.Duration{"slow": 0, "stuck": lastWrite} {
		copying(t, checkpointConfig{steps: 1}, map[string]*memoryStore{"slow": slow, "stuck": stuck}, func(t *testing.T, _ context.Context, s *saver, store *memoryStore) {
			stuck.hangs = make(chan struct{})
			s.Due("a", 1)
			a := make(copyResults, 2)
			for range cap(a) {
				require.NoError(t, s.saveNow(place, a.done))
			}
			s.Save("a", cutAt(2, false))
			synctest.Wait()
			began := time.Now()
			s.close(endSucceeded)
			require.Equal(t, wait, time.Since(began))
			require.Empty(t, store.blobs)
			close(stuck.hangs)
			for range cap(a) {
				require.ErrorIs(t, <-a, errNotCopied)
			}
		})
	}
}

// TestSavepointLimits requires that a savepoint fails if its copy takes too long, and that only so many can
// wait.
func TestSavepointLimits(t *testing.T) {
	slow := &memoryStore{blobs: make(map[string][]byte), takes: time.Hour}
	copying(t, checkpointConfig{steps: 1}, map[string]*memoryStore{"slow": slow}, func(t *testing.T, ctx context.Context, s *saver, store *memoryStore) {
		a, alone := make(copyResults, mostSavepoints), make(copyResults, 1)
		s.Due("a", 1)
		for range cap(a) {
			require.NoError(t, s.saveNow("slow", a.done))
		}
		require.ErrorContains(t, s.saveNow("slow", a.done), "8 savepoints of the run are not complete")
		require.NoError(t, s.saveNow("", alone.done), "a checkpoint alone is no savepoint")
		s.Save("a", cutAt(2, false))
		require.NoError(t, <-alone)
		began := time.Now()
		for range cap(a) {
			require.ErrorContains(t, <-a, "it was not complete after 30m0s")
			require.WithinDuration(t, began.Add(longestCopy), time.Now(), 0)
			began = time.Now()
		}
		s.Due("a", 3)
		require.NoError(t, s.saveNow("slow", a.done), "the others have ended")
		s.close(endFailed)
		require.ErrorIs(t, <-a, errRunEnded)
	})
}
