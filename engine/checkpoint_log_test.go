package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestSaverTellsWhatItWrites requires that every write of a saver is told, with its time, size and
// queues, and that failures are counted from the first one until a write succeeds.
func TestSaverTellsWhatItWrites(t *testing.T) {
	saving(t, checkpointConfig{steps: 1}, func(t *testing.T, s *saver, store *memoryStore) {
		var told []*wire.Checkpointed
		s.report = (&checkpointLog{tell: func(c *wire.Checkpointed) { told = append(told, c) }}).add
		last := func() *wire.Checkpointed {
			synctest.Wait()
			return told[len(told)-1]
		}
		store.takes = 250 * time.Millisecond // a checkpoint has 4 blobs: 1 s
		s.Save("a", cutAt(3, true))
		time.Sleep(2 * time.Second)
		s.Save("b", cutAt(7, false))
		time.Sleep(2 * time.Second)
		c := last()
		require.Len(t, told, 2)
		require.Equal(t, []any{2, 0, 2.0}, []any{c.Written, c.Failed, c.Seconds})
		require.Nil(t, c.Failing)
		require.Equal(t, []wire.OriginQueue{{Name: "a", Superstep: 3, Ended: true}}, c.Newest[0].Queues)
		require.Equal(t, []wire.OriginQueue{{Name: "a", Superstep: 3, Ended: true}, {Name: "b", Superstep: 7}}, c.Newest[1].Queues)
		require.Equal(t, []any{1, 2, 1.0}, []any{c.Newest[0].Number, c.Newest[1].Number, c.Newest[1].Seconds})
		require.Positive(t, c.Newest[0].Bytes)
		require.Equal(t, c.Bytes, c.Newest[1].Bytes, "the second checkpoint has the states of both writes, each of which counts once")

		began := time.Now()
		store.setFailure(errors.New("no space left"))
		s.Save("b", cutAt(8, false))
		time.Sleep(10 * time.Second)
		c = last()
		require.Equal(t, []any{2, 4}, []any{c.Written, c.Failed}, "writes must begin after 0, 1.25, 3.5 and 7.75 s")
		require.Equal(t, 4, c.Failing.Count)
		require.True(t, began.Equal(c.Failing.Since))
		require.Contains(t, c.Failing.Error, "no space left")
		require.Nil(t, told[1].Failing, "what was told must not change")
		require.Equal(t, 1, told[2].Failing.Count)

		store.setFailure(nil)
		for step := 9; step < 30; step++ {
			s.Save("b", cutAt(step, false))
			time.Sleep(time.Minute)
		}
		c = last()
		require.Nil(t, c.Failing)
		require.Equal(t, []any{23, 4}, []any{c.Written, c.Failed})
		require.Len(t, c.Newest, wire.MaxCheckpointsTold)
		for i, w := range c.Newest {
			require.Equal(t, 20+i, w.Queues[1].Superstep)
		}
		s.close(endFailed)
	})
}

// TestWorkerTellsOfItsCheckpoints requires that a worker sends what its saver has written at
// intervals, only if it has changed, and once more at the end of its subtasks.
func TestWorkerTellsOfItsCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender := &workerSender{bulk: make(chan *wire.FromWorker), closing: make(chan struct{})}
		var sent []int
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			for {
				select {
				case m := <-sender.bulk:
					if m.Checkpointed != nil {
						sent = append(sent, m.Checkpointed.Written)
					}
				case <-ctx.Done():
					return
				}
			}
		}()
		w := newWorkerProgress(&plan.Plan{}, true, sender)
		stop := w.tell(ctx)
		w.checkpointed(&wire.Checkpointed{Written: 1})
		w.checkpointed(&wire.Checkpointed{Written: 2})
		time.Sleep(10 * ProgressInterval)
		w.checkpointed(&wire.Checkpointed{Written: 3})
		stop(true)
		cancel()
		<-ended
		require.Equal(t, []int{2, 3}, sent)
	})
}
