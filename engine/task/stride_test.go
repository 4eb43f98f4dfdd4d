package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestDecisionsAreAsOftenAsTheySay requires that members in several processes decide in the first
// superstep, then after as many supersteps as each decision says, and in the last one, if there is no
// criterion; and that the states that are saved have the parts of all members at one superstep.
func TestDecisionsAreAsOftenAsTheySay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range testsize.Raced(300, 60) {
		most, next, criterion := 1+rng.IntN(20), rng.IntN(26), rng.IntN(2) == 0
		p := 2 + rng.IntN(3)
		workers := 1 + rng.IntN(p)
		k := &partStore{stateStore: stateStore{next: next, due: func(step int) bool { return step%2 == 1 }}}
		got := stepsOnly(most, criterion).runParts(t, context.Background(), p, workers, Env{Checkpoints: k}, func(int) hooks {
			return queueHooks(&testGang{loop: func(int) *testLoop {
				return &testLoop{stop: func(int) (bool, error) { return false, nil }}
			}})
		})
		require.NoError(t, got.err)
		var want []int
		for step := 1; step <= most; step++ {
			if workers == 1 || criterion || len(want) == 0 || step == most || step >= want[len(want)-1]+max(next, 1) {
				want = append(want, step)
			}
		}
		require.Equal(t, want, k.asked)
		for _, step := range want {
			if step%2 == 1 || step == most {
				require.Equal(t, p, k.parts[step], "superstep %d", step)
			}
		}
	}
}

// stepsOnly returns a graph with a queue that only counts its supersteps.
func stepsOnly(most int, criterion bool) *testGraph {
	return queueGraph(8, most, criterion, plan.Compute)
}

// partStore counts the parts that are saved of each superstep.
type partStore struct {
	stateStore
	parts map[int]int
}

func (k *partStore) Save(_ string, s *Saved) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.parts == nil {
		k.parts = make(map[int]int)
	}
	k.parts[s.Step] += len(s.Parts)
}

func TestVerdictWords(t *testing.T) {
	for _, v := range []Verdict{{}, {Stop: true}, {Save: InMemory, Next: 1}, {Stop: true, Save: allPurposes, Next: longestStride, Parallelism: 1 << 14}} {
		require.Equal(t, v, VerdictOf(v.Word()), fmt.Sprint(v))
	}
}

// TestStatesThatCannotBeSaved requires that a run goes on if a part of a queue's state cannot be saved and
// Env.Unsaved is set, which is told so once in each process; and that the process saves no further states.
func TestStatesThatCannotBeSaved(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		run := func(unsaved func(string, error) error) (result, *partStore) {
			k := &partStore{stateStore: stateStore{due: func(int) bool { return true }}}
			env := Env{Checkpoints: k, Unsaved: unsaved}
			return stepsOnly(4, true).runParts(t, context.Background(), 3, workers, env, func(int) hooks {
				return queueHooks(&testGang{
					loop: func(int) *testLoop { return &testLoop{stop: func(int) (bool, error) { return false, nil }} },
					save: func(b *testLoop) error {
						if b.context.Subtask == 1 && b.context.Parallelism == 3 {
							return errSave
						}
						return nil
					},
				})
			}), k
		}
		got, _ := run(nil)
		require.ErrorIs(t, got.err, errSave)
		got, _ = run(func(string, error) error { return errSaveRefused })
		require.ErrorIs(t, got.err, errSaveRefused)
		var told atomic.Int32
		got, k := run(func(queue string, err error) error {
			told.Add(1)
			require.Equal(t, "q", queue)
			require.ErrorIs(t, err, errSave)
			return nil
		})
		require.NoError(t, got.err)
		require.EqualValues(t, 1, told.Load())
		for step := 1; step <= 4; step++ {
			require.Less(t, k.parts[step], 3)
		}
	}
}

var (
	errSave        = errors.New("it cannot be saved")
	errSaveRefused = errors.New("it must be saved")
)

// TestOpened requires that each process says once that its subtasks of a queue have read their inputs,
// and with which superstep the queue goes on.
func TestOpened(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		var told atomic.Int32
		env := Env{Opened: func(queue string, first int) {
			told.Add(1)
			if queue != "q" || first != 1 {
				t.Errorf("queue %q, superstep %d", queue, first)
			}
		}}
		got := stepsOnly(4, true).runParts(t, context.Background(), 3, workers, env, func(int) hooks {
			return queueHooks(&testGang{loop: func(int) *testLoop { return &testLoop{stop: func(int) (bool, error) { return false, nil }} }})
		})
		require.NoError(t, got.err)
		require.EqualValues(t, workers, told.Load())
	}
}
