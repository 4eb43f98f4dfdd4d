package jobmanager

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestHistoryRoundTrip(t *testing.T) {
	root := testRoot(t)
	h, err := openHistory(root, hclog.NewNullLogger())
	require.NoError(t, err)
	when := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	first := record{Whole: true, Events: 7, Info: wire.JobInfo{ID: "a", Name: "a", State: wire.JobFinished, Submitted: when, Seed: 1 << 63,
		Failure:  &wire.Failure{Message: "no", LastLines: []string{"x"}},
		Outcomes: [][]byte{[]byte("x"), nil}, Plan: []byte("not in the record")}}
	put := func(info wire.JobInfo, plan string) change {
		c, err := newChange(record{Info: info})
		require.NoError(t, err)
		if plan != "" {
			c.plan = []byte(plan)
		}
		return c
	}
	whole, err := newChange(first)
	require.NoError(t, err)
	first.Info.Outcomes, first.Info.Plan = nil, nil
	require.NoError(t, h.write([]change{
		put(wire.JobInfo{ID: "b", State: wire.JobRunning}, "plan b"),
		whole,
		put(wire.JobInfo{ID: "c", Outcomes: [][]byte{}}, "p"),
		{id: "c", forget: true},
	}))
	require.NoError(t, h.write([]change{put(wire.JobInfo{ID: "b", State: wire.JobFailed}, "")}))
	for range 2 { // the second time, the history is read from disk
		all, err := h.all()
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.True(t, all[0].Info.Submitted.Equal(when))
		all[0].Info.Submitted = when
		require.Equal(t, first, all[0])
		require.Equal(t, wire.JobFailed, all[1].Info.State)
		plan, err := h.plan("b")
		require.NoError(t, err)
		require.Equal(t, "plan b", string(plan), "the plan must stay if only the record changes")
		outcomes, err := h.outcomes("a")
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte("x"), nil}, outcomes)
		for _, id := range []wire.JobID{"c", "unknown"} {
			plan, err = h.plan(id)
			require.NoError(t, err)
			require.Nil(t, plan)
			outcomes, err = h.outcomes(id)
			require.NoError(t, err)
			require.Nil(t, outcomes)
		}
		require.NoError(t, h.close())
		h, err = openHistory(root, hclog.NewNullLogger())
		require.NoError(t, err)
	}
	require.NoError(t, h.close())
}

func TestHistoryLocked(t *testing.T) {
	t.Parallel()
	root := testRoot(t)
	h, err := openHistory(root, hclog.NewNullLogger())
	require.NoError(t, err)
	_, err = openHistory(root, hclog.NewNullLogger())
	require.ErrorContains(t, err, "another job manager")
	require.NoError(t, h.close())
}

// TestHistoryOfAnotherFormat requires that a history of a later format is refused and not
// modified.
func TestHistoryOfAnotherFormat(t *testing.T) {
	root := testRoot(t)
	h, err := openHistory(root, hclog.NewNullLogger())
	require.NoError(t, err)
	require.NoError(t, h.update(func(tx *bbolt.Tx) error {
		require.NoError(t, tx.Bucket(metaBucket).Delete(contentSumKey))
		require.NoError(t, tx.Bucket(jobsBucket).Put([]byte("a"), []byte("no checksum")))
		return tx.Bucket(metaBucket).Put(formatKey, []byte("9"))
	}))
	require.NoError(t, h.close())
	before, err := root.ReadFile(historyName)
	require.NoError(t, err)
	_, err = openHistory(root, hclog.NewNullLogger())
	require.ErrorContains(t, err, `it has format "9", this build knows format 2`)
	after, err := root.ReadFile(historyName)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
