package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/plan"
)

// answers gathers the results of requests.
type answers struct {
	numbers []int
	errs    []error
}

func (a *answers) done(m *checkpoint.Manifest, err error) {
	a.errs = append(a.errs, err)
	if m != nil {
		a.numbers = append(a.numbers, m.Number)
	}
}

// TestSaveNow requires that a request is answered when all queues that run are saved after it,
// including those that have just ended, and that the copy has the same states.
func TestSaveNow(t *testing.T) {
	saving(t, checkpointConfig{every: time.Hour}, func(t *testing.T, s *saver, store *memoryStore) {
		copied := &memoryStore{blobs: make(map[string][]byte)}
		var places []string
		s.openPlace = func(_ context.Context, place string, _ context.CancelCauseFunc) (checkpoint.Store, error) {
			places = append(places, place)
			return copied, nil
		}
		var a answers
		require.NoError(t, s.saveNow("", a.done))
		synctest.Wait()
		require.Equal(t, answers{numbers: []int{1}, errs: []error{nil}}, a, "without queues there is an empty checkpoint")
		require.Empty(t, store.steps(t))

		require.False(t, s.Due("a", 1))
		require.False(t, s.Due("b", 1))
		s.Save("b", cutAt(1, true))
		require.NoError(t, s.saveNow("there", a.done))
		synctest.Wait()
		require.Len(t, a.errs, 1, "queue a must be saved first")
		require.True(t, s.Due("a", 2))
		s.Save("a", cutAt(2, false))
		synctest.Wait()
		require.False(t, s.Due("a", 3))
		require.Equal(t, []error{nil, nil}, a.errs)
		require.Equal(t, map[string]int{"a": 2, "b": 1}, store.steps(t))
		require.Equal(t, map[string]int{"a": 2, "b": 1}, copied.steps(t))
		require.Equal(t, []string{"there"}, places)

		require.NoError(t, s.saveNow("there", a.done))
		require.True(t, s.Due("a", 4))
		s.Save("a", cutAt(4, true))
		synctest.Wait()
		require.ErrorContains(t, a.errs[2], "to memory: there is ", "a place is for one savepoint")
		require.ErrorContains(t, a.errs[2], "give each savepoint a place of its own")
		require.Equal(t, map[string]int{"a": 4, "b": 1}, store.steps(t))
		require.Equal(t, map[string]int{"a": 2, "b": 1}, copied.steps(t))

		require.False(t, s.Due("b", 1))
		require.NoError(t, s.saveNow("", a.done))
		s.close(endSucceeded)
		require.ErrorIs(t, a.errs[3], errRunEnded)
		require.ErrorIs(t, s.saveNow("", a.done), errRunEnded)
		require.Len(t, a.errs, 4)
	})
}

// TestSaveNowFails requires that the error of the store is the answer, and that a later request can
// succeed.
func TestSaveNowFails(t *testing.T) {
	saving(t, checkpointConfig{every: time.Hour}, func(t *testing.T, s *saver, store *memoryStore) {
		var a answers
		full := errors.New("no space left")
		store.setFailure(full)
		require.False(t, s.Due("a", 1))
		require.NoError(t, s.saveNow("", a.done))
		require.True(t, s.Due("a", 2))
		s.Save("a", cutAt(2, false))
		synctest.Wait()
		require.ErrorIs(t, a.errs[0], full)
		store.setFailure(nil)
		require.NoError(t, s.saveNow("", a.done))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, a.errs, 1, "the state from before the request is not what was asked for")
		require.True(t, s.Due("a", 3))
		s.Save("a", cutAt(3, false))
		synctest.Wait()
		require.NoError(t, a.errs[1])
		require.Equal(t, map[string]int{"a": 3}, store.steps(t))
		s.close(endFailed)
	})
}

// TestSaveNowRefusesPlaces requires that a place that cannot be used is refused before a state is saved.
func TestSaveNowRefusesPlaces(t *testing.T) {
	saving(t, checkpointConfig{every: time.Hour}, func(t *testing.T, s *saver, store *memoryStore) {
		g := &plan.Graph{Nodes: []plan.Node{{Op: "Write", Sink: true, Attrs: []plan.Attr{{Key: "path", Value: "/out"}}}}}
		s.checkPlace = func(place string) error { return checkSavepoint(place, g) }
		var a answers
		require.False(t, s.Due("a", 1))
		require.ErrorContains(t, s.saveNow("/out/sp", a.done), "the savepoint /out/sp is inside the output /out: take a directory outside of it")
		synctest.Wait()
		require.False(t, s.Due("a", 2), "no state is asked for")
		require.Empty(t, store.blobs)
		require.Empty(t, a.errs)
		s.close(endFailed)
	})
}

// TestSaveNowOfProcesses requires that a request is answered when all processes have written their
// parts of a state that was asked for after the request.
func TestSaveNowOfProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		savers := processes(t, store, checkpointConfig{every: time.Hour}, false, nil)
		var a answers
		require.False(t, savers[0].Due("q", 1))
		require.NoError(t, savers[0].saveNow("", a.done))
		require.True(t, savers[0].Due("q", 2))
		for i, s := range savers {
			synctest.Wait()
			require.Empty(t, a.errs)
			s.Save("q", partAt(i, 2, false))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, answers{numbers: []int{1}, errs: []error{nil}}, a)
		for _, s := range savers {
			s.close(endLeft)
		}
	})
}
