package task

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

// stateStore is a Checkpointer that keeps the encoded states of one queue.
type stateStore struct {
	due  func(step int) bool // nil means never
	from *Cut                // from which queue q continues
	next int                 // Decision.Next

	mu    sync.Mutex
	asked []int
	saved map[int][]byte // superstep -> the encoded Cut
	err   error
}

func (k *stateStore) Decide(queue string, step int) Decision {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, step)
	if k.due != nil && k.due(step) {
		return Decision{Purposes: Durable, Next: k.next}
	}
	return Decision{Next: k.next}
}

func (k *stateStore) From(queue string) *Cut {
	if queue != "q" {
		return nil
	}
	return k.from
}

func (k *stateStore) Save(queue string, s *Saved) {
	data, err := s.Encode()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.saved == nil {
		k.saved = make(map[int][]byte)
	}
	k.saved[s.Step] = data
	if err != nil {
		k.err = err
	}
}

// TestCheckpoints requires that a queue continues, in a new run that reads all inputs again, from
// the state after any superstep, at any parallelism, with the rows and series of an undisturbed
// run.
func TestCheckpoints(t *testing.T) {
	for _, most := range []int{100, 3} {
		g, want, _ := cutRun(t, 3, most, Env{})
		require.NoError(t, want.err)
		tap, whole, last := plan.NodeID(len(g.Nodes)-1), want.report.Queues[0], min(most, 5)
		k := &stateStore{due: func(step int) bool { return step%2 == 0 }}
		_, saving, gang := cutRun(t, 3, most, Env{Checkpoints: k})
		require.NoError(t, saving.err)
		require.NoError(t, k.err)
		require.Len(t, gang.specs, 1, "saving must not end the gang")
		require.Equal(t, want.taps[tap], saving.taps[tap])
		require.Len(t, k.asked, last)
		for step := 1; step <= last; step++ {
			require.Equal(t, step%2 == 0 || step == last, k.saved[step] != nil, "superstep %d", step)
		}
		for step, data := range k.saved {
			for _, p := range []int{1, 3, 8} {
				from, err := DecodeCut(data)
				require.NoError(t, err)
				require.Equal(t, []any{step, step == last, step == last && last == 5}, []any{from.Step, from.Last, from.Stopped})
				var steps []int
				_, got, gang := cutRun(t, p, most, Env{Checkpoints: &stateStore{from: from}, Progress: func(e Progress) {
					if e.Queue == "q" {
						steps = append(steps, e.Step)
					}
				}})
				require.NoError(t, got.err)
				require.Equal(t, want.taps[tap], got.taps[tap])
				require.Equal(t, step, steps[0], "the supersteps that were done must be reported first")
				require.Len(t, steps, 1+last-step)
				require.Len(t, gang.specs, 1)
				require.False(t, gang.specs[0].RowsKept)
				q := got.report.Queues[0]
				require.Equal(t, []any{whole.Supersteps, whole.Stopped}, []any{q.Supersteps, q.Stopped})
				require.Len(t, q.Steps, last)
				require.Len(t, q.Series, len(whole.Series))
				for i, s := range q.Series {
					require.Equal(t, whole.Series[i].Name, s.Name)
					require.Len(t, s.Values, last)
					for k, v := range s.Values {
						require.Equal(t, math.Float64bits(whole.Series[i].Values[k]), math.Float64bits(v))
					}
				}
				for i := range got.report.Vertices {
					v, before := got.report.Vertices[i], want.report.Vertices[i]
					var rows, was int64
					for _, s := range v.Subtasks {
						rows += s.RowsIn
					}
					for _, s := range before.Subtasks {
						was += s.RowsIn
					}
					require.Equal(t, was, rows, "vertex %s must read all rows", v.Name)
				}
			}
		}
	}
}

// TestCheckpointFailures requires that wrong settings, and a loop that cannot save its state,
// are errors.
func TestCheckpointFailures(t *testing.T) {
	_, got, _ := cutRun(t, 2, 100, Env{Checkpoints: &stateStore{from: &Cut{Step: 2}}})
	require.ErrorContains(t, got.err, `the state of queue "q": 0 subtasks`)

	g := queueGraph(8, 3, false, plan.Compute)
	gang := &testGang{
		loop: func(int) *testLoop { return &testLoop{} },
		save: func(b *testLoop) error {
			if b.context.Subtask == 1 {
				return errBoom
			}
			return nil
		},
	}
	got = g.run(t, t.Context(), 2, Env{Checkpoints: &stateStore{due: func(int) bool { return true }}}, queueHooks(gang))
	require.ErrorIs(t, got.err, errBoom)
	require.ErrorContains(t, got.err, "subtask 1 of 2")
}

// delays is a Checkpointer that saves after every superstep and keeps the delays.
type delays struct {
	stateStore
	all []time.Duration
}

func (k *delays) Save(queue string, s *Saved) {
	k.stateStore.Save(queue, s)
	k.all = append(k.all, s.Delay)
}

// TestCheckpointDelay requires that the delay of a checkpoint is the time of the slowest subtask, and
// has neither the time of stages nor that of other checkpoints.
func TestCheckpointDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &delays{stateStore: stateStore{due: func(int) bool { return true }}}
		saves := make([]int, 3)
		gang := &testGang{
			loop: func(subtask int) *testLoop {
				return &testLoop{stages: func(b *testLoop) []Stage {
					return []Stage{{Node: 3, Run: func() error {
						time.Sleep(time.Duration(1+subtask) * time.Second)
						return b.comm.Barrier(b.context)
					}}}
				}}
			},
			save: func(b *testLoop) error {
				i := b.context.Subtask
				saves[i]++
				time.Sleep(time.Duration(30*saves[i]-10*i) * time.Millisecond)
				return nil
			},
		}
		got := queueGraph(8, 3, false, plan.Compute).run(t, context.Background(), 3, Env{Checkpoints: k}, queueHooks(gang))
		require.NoError(t, got.err)
		require.Equal(t, []time.Duration{30 * time.Millisecond, 60 * time.Millisecond, 90 * time.Millisecond}, k.all)
	})
}
