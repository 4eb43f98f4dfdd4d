package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// partAt returns what a process with one of three subtasks has of a state.
func partAt(process, step int, last bool) *task.Saved {
	return &task.Saved{
		Cut:  task.Cut{Step: step, Last: last, Parts: []task.CutPart{{Own: []byte{byte(step), byte(process)}}}},
		Here: sharding.Range{Lo: process, Hi: process + 1}, Subtasks: 3,
	}
}

// processes starts the savers of a run of three processes with queue q, in which only the first two
// have a subtask of queue r.
func processes(t *testing.T, store *memoryStore, settings checkpointConfig, resume bool, fail func(error)) []*saver {
	return processesOver(t, []checkpoint.Store{store, store, store}, settings, resume, fail)
}

// processesOver is like processes, with a store for each process.
func processesOver(t *testing.T, stores []checkpoint.Store, settings checkpointConfig, resume bool, fail func(error)) []*saver {
	settings.resume = resume
	p := &plan.Plan{Shards: 4, Queues: []plan.Queue{{Name: "q"}, {Name: "r"}}, Slots: 3}
	for i, q := range p.Queues {
		v := plan.Vertex{Queue: q.Name, Parallelism: 3 - i}
		for k := range v.Parallelism {
			v.Ranges = append(v.Ranges, sharding.Split(4, v.Parallelism, k))
		}
		p.Vertices = append(p.Vertices, v)
	}
	var savers []*saver
	for i := range 3 {
		run := &checkpointed{plan: p, part: task.Part{Worker: i, Slots: []sharding.Range{{Hi: 1}, {Lo: 1, Hi: 2}, {Lo: 2, Hi: 3}}}}
		c := &config{checkpoints: settings, logger: hclog.NewNullLogger()}
		s := newSaver(&settings, c.logger, fail)
		s.several, s.store = true, stores[i]
		if i == 0 {
			require.NoError(t, c.lead(t.Context(), s, checkpoint.Run{Job: "j"}, run))
		} else {
			require.NoError(t, c.join(t.Context(), s, savers[0].origin, run))
		}
		s.start()
		savers = append(savers, s)
	}
	return savers
}

// TestSaversOfProcesses requires that a checkpoint is written when all processes have written their
// parts, that no other state is due before, that the last state of a queue does not replace one
// that is awaited, and that each process continues from what it needs.
func TestSaversOfProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		fail := func(err error) { panic(err) }
		savers := processes(t, store, checkpointConfig{steps: 2}, false, fail)
		require.Equal(t, &wire.Origin{Generation: 1}, savers[0].origin)
		save := func(step int, last bool, of ...int) {
			for _, i := range of {
				savers[i].Save("q", partAt(i, step, last))
			}
			time.Sleep(time.Second)
		}
		require.False(t, savers[0].Due("q", 1))
		require.True(t, savers[0].Due("q", 2))
		save(2, false, 0, 1)
		require.Empty(t, store.steps(t), "the part of process 2 is missing")
		require.False(t, savers[0].Due("q", 3))
		require.False(t, savers[0].Due("q", 4), "the state before is not written yet")
		save(2, false, 2)
		require.Equal(t, map[string]int{"q": 2}, store.steps(t))
		require.True(t, savers[0].Due("q", 5), "a state is overdue")
		require.False(t, savers[0].Due("q", 5))
		store.setFailure(errors.New("no space left"))
		save(5, false, 0)
		store.setFailure(nil)
		save(5, false, 1, 2)
		save(6, true, 0, 1, 2) // while process 0 waits before it tries again
		time.Sleep(2 * time.Second)
		require.Equal(t, map[string]int{"q": 6}, store.steps(t))
		for i := range 2 {
			cut := partAt(i, 3, false)
			cut.Subtasks = 2
			savers[i].Save("r", cut)
		}
		time.Sleep(time.Second)
		require.Equal(t, map[string]int{"q": 6, "r": 3}, store.steps(t))
		for _, s := range savers {
			s.close(endLeft)
		}

		savers = processes(t, store, checkpointConfig{steps: 2}, true, fail)
		require.Equal(t, 6, savers[0].origin.Queues[0].Superstep)
		for i, want := range [][]int{{0}, {0, 1}, {0, 2}} {
			var parts []int
			for k, part := range savers[i].From("q").Parts {
				if part.Own != nil {
					require.Equal(t, []byte{6, byte(k)}, part.Own)
					parts = append(parts, k)
				}
			}
			require.Equal(t, want, parts)
			require.Equal(t, i == 2, savers[i].From("r") == nil, "process 2 has no subtask of queue r")
		}
		for _, i := range []int{2, 1} {
			savers[i].close(endLeft)
		}
		savers[0].close(endSucceeded)
		require.Empty(t, store.blobs)
	})
}

// TestLastStateIsNoReplacement requires that a process still writes a state that process 0 awaits
// when the last state of the queue is saved.
func TestLastStateIsNoReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte), takes: time.Second}
		savers := processes(t, store, checkpointConfig{steps: 1}, false, nil)
		savers[2].Save("q", partAt(2, 1, false)) // process 2 is slow, and has not begun to write superstep 2
		synctest.Wait()
		for i, s := range savers {
			s.Save("q", partAt(i, 2, false))
			synctest.Wait()
			s.Save("q", partAt(i, 3, true))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"q": 3}, store.steps(t))
		for _, s := range savers {
			s.close(endLeft)
		}
	})
}

// TestMissingPartFails requires that a run ends after --checkpoint-fail-after if a process does not
// write its part.
func TestMissingPartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		savers := processes(t, store, checkpointConfig{steps: 1, failAfter: 90 * time.Second}, false, cancel)
		for i, s := range savers[:2] {
			s.Save("q", partAt(i, 1, false))
		}
		time.Sleep(89 * time.Second)
		require.NoError(t, ctx.Err())
		time.Sleep(2 * time.Second)
		require.ErrorContains(t, context.Cause(ctx), `no checkpoint could be written for 1m30s, and --checkpoint-fail-after is 1m30s: 1 of the 3 subtasks of queue "q" have not written their state, from subtask 2 on`)
		for _, s := range savers {
			s.close(endLeft)
		}
	})
}

// TestUnwrittenPartIsReported requires that a checkpoint fails because of the process that cannot write its
// part, so that it counts as failed, those who wait for it get the cause, and a run that is to end ends with
// it. When the part can be written, the checkpoint is.
func TestUnwrittenPartIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		full := &fullStore{memoryStore: store}
		full.full.Store(true)
		savers := processesOver(t, []checkpoint.Store{store, store, full}, checkpointConfig{every: time.Hour, failAfter: time.Minute}, false, cancel)
		var sum *wire.Checkpointed
		savers[0].report = (&checkpointLog{tell: func(c *wire.Checkpointed) { sum = c }}).add
		first := &worker{state: workerlife.Running, job: &workerJob{checkpoints: &workerCheckpoints{saver: savers[0]}}}
		savers[2].report = (&unwrittenLog{tell: func(c *wire.Checkpointed) { // which the job manager passes on
			first.hear(&wire.ToWorker{Unwritten: &wire.Unwritten{Worker: 2, Queues: c.Unwritten, Error: c.Failing.Error}})
		}}).add
		savers[1].failAfter, savers[2].failAfter = 0, 0
		require.False(t, savers[0].Due("q", 1))
		var answers []error
		require.NoError(t, savers[0].saveNow("", func(_ *checkpoint.Manifest, err error) { answers = append(answers, err) }))
		require.True(t, savers[0].Due("q", 2))
		for i, s := range savers {
			s.Save("q", partAt(i, 2, false))
		}
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		const cause = `worker 2: write a checkpoint of queue "q" after superstep 2 to memory: no space left`
		require.Len(t, answers, 1)
		require.EqualError(t, answers[0], cause)
		require.Equal(t, 1, sum.Failed, "it is counted once")
		require.Equal(t, cause, sum.Failing.Error)
		full.full.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]int{"q": 2}, store.steps(t))
		require.Equal(t, 1, sum.Written)
		require.Nil(t, sum.Failing)
		require.NoError(t, ctx.Err())

		full.full.Store(true)
		for i, s := range savers {
			s.Save("q", partAt(i, 3, false))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.ErrorContains(t, context.Cause(ctx), "--checkpoint-fail-after is 1m0s: ")
		require.ErrorContains(t, context.Cause(ctx), "worker 2: write a checkpoint of queue \"q\" after superstep 3 to memory: no space left")
		for _, s := range savers {
			s.close(endLeft)
		}
	})
}

// fullStore is a store that has no room at times.
type fullStore struct {
	*memoryStore
	full atomic.Bool
}

func (s *fullStore) Put(ctx context.Context, name string, data []byte) error {
	if s.full.Load() {
		return errors.New("no space left")
	}
	return s.memoryStore.Put(ctx, name, data)
}

// TestNothingIsDueMeanwhile requires that no state is due before a process has begun to write the one
// before, as a process that has not might drop it.
func TestNothingIsDueMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		savers := processes(t, &memoryStore{blobs: make(map[string][]byte)}, checkpointConfig{steps: 1}, false, nil)
		require.True(t, savers[0].Due("q", 1))
		savers[0].mu.Lock() // so that the saver's goroutine does not take the state yet
		savers[0].waiting[stateKey{"q", false}] = partAt(0, 1, false)
		savers[0].mu.Unlock()
		require.False(t, savers[0].Due("q", 2))
		for _, s := range savers {
			s.close(endLeft)
		}
	})
}

// slowStore is a store over a slow line.
type slowStore struct {
	*memoryStore
	line time.Duration
}

func (s *slowStore) Put(ctx context.Context, name string, data []byte) error {
	select {
	case <-time.After(s.line):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.memoryStore.Put(ctx, name, data)
}

func (s *slowStore) Publish(ctx context.Context, name string, data []byte) error {
	return s.Put(ctx, name, data)
}

// TestSlowPart requires that checkpoints are completed although a process writes its part more slowly
// than supersteps and checkpoints follow each other.
func TestSlowPart(t *testing.T) {
	for _, settings := range []checkpointConfig{{steps: 1}, {every: 30 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			store := &memoryStore{blobs: make(map[string][]byte)}
			savers := processesOver(t, []checkpoint.Store{store, &slowStore{store, 35 * time.Second}, store}, settings, false, func(err error) { panic(err) })
			completed := map[int]bool{}
			for step := 1; step <= 900; step++ {
				if savers[0].Due("q", step) {
					for i, s := range savers {
						s.Save("q", partAt(i, step, false))
					}
				}
				time.Sleep(time.Second)
				if at := store.steps(t)["q"]; at > 0 {
					completed[at] = true
				}
			}
			for _, s := range savers {
				s.close(endLeft)
			}
			require.Greater(t, len(completed), 8, "a part takes 70 s")
		})
	}
}

// TestLastStateAfterAFailure requires that all processes write the last state of a queue at once if
// process 0 does, because it tries a write again that has failed.
func TestLastStateAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		savers := processes(t, store, checkpointConfig{every: 10 * time.Minute, failAfter: 2 * time.Minute}, false, func(err error) { panic(err) })
		require.False(t, savers[0].Due("q", 1))
		time.Sleep(10 * time.Minute)
		require.True(t, savers[0].Due("q", 2))
		store.setFailure(errors.New("server busy"))
		savers[0].Save("q", partAt(0, 2, false))
		synctest.Wait()
		store.setFailure(nil)
		savers[1].Save("q", partAt(1, 2, false))
		savers[2].Save("q", partAt(2, 2, false))
		synctest.Wait()
		for i, s := range savers {
			s.Save("q", partAt(i, 3, true))
		}
		time.Sleep(5 * time.Minute)
		require.Equal(t, map[string]int{"q": 3}, store.steps(t))
		for _, s := range savers {
			s.close(endLeft)
		}
	})
}
