package s3store

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/s3test"
)

// TestFaults writes and loads checkpoints while many requests fail. A checkpoint that was written
// must be loaded afterwards, or a newer one that is complete. Under faults, Load must return a
// checkpoint with its pieces, or an error.
func TestFaults(t *testing.T) {
	written, refused, loaded := 0, 0, 0
	faults := make(map[s3test.Kind]int)
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			server := s3test.New()
			job := checkpoint.Run{Job: "j"}
			pieces := func(step int) [][]byte {
				return [][]byte{fmt.Append(nil, "state after ", step), bytes.Repeat([]byte{byte(step), byte(seed)}, 1000*step), nil}
			}
			store := mustBegin(t, server)
			server.Fail(seed, 2, time.Minute)
			last := 0
			j, err := checkpoint.Open(t.Context(), store, job)
			for step := 1; step <= 5 && err == nil; step++ {
				s := checkpoint.State{Queue: "q", Superstep: step, Pieces: func(yield func([]byte, error) bool) {
					for _, p := range pieces(step) {
						if !yield(p, nil) {
							return
						}
					}
				}}
				if _, _, err := j.Write(t.Context(), []checkpoint.State{s}); err == nil {
					last = step
					written++
				} else {
					refused++
				}
				time.Sleep(20 * time.Second)
			}
			require.NoError(t, store.failed())
			for kind, n := range server.Faults() {
				faults[kind] += n
			}
			load := func() (*checkpoint.Checkpoint, error) {
				j, err := checkpoint.Open(t.Context(), store, job)
				if err != nil {
					return nil, err
				}
				c, _, err := j.Load(t.Context(), nil)
				if err != nil || c == nil {
					return nil, err
				}
				loaded++
				require.True(t, slices.EqualFunc(pieces(c.Queues[0].Superstep), c.Pieces[0], bytes.Equal), "seed %d", seed)
				return c, nil
			}
			load() //nolint:errcheck // it may fail, but not return anything else
			server.Fail(0, 0, 0)
			c, err := load()
			require.NoError(t, err, "seed %d", seed)
			if last > 0 {
				require.GreaterOrEqual(t, c.Queues[0].Superstep, last, "seed %d", seed)
			}
			require.NoError(t, store.Close())
		})
	}
	t.Log("written", written, "refused", refused, "loaded", loaded, "faults", faults)
	require.Greater(t, written, 100)
	require.Positive(t, refused)
	require.Greater(t, loaded, 60)
	for kind := s3test.Refuse; kind <= s3test.Truncate; kind++ {
		require.Positive(t, faults[kind], "faults of kind %d", kind)
	}
}
