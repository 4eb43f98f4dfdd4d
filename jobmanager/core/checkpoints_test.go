package core

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// checkpointedReport returns the report of a worker that has written checkpoints, each of 100 bytes
// in half a second, after every tenth superstep of queue q. If message is not "", the last write
// failed.
func checkpointedReport(written, failed int, message string) *wire.Checkpointed {
	r := &wire.Checkpointed{Written: written, Failed: failed, Bytes: int64(100 * written), Seconds: float64(written) / 2}
	for i := max(1, written-wire.MaxCheckpointsTold+1); i <= written; i++ {
		r.Newest = append(r.Newest, wire.WrittenCheckpoint{Number: i, Bytes: 100, Seconds: 0.5, Queues: []wire.OriginQueue{{Name: "q", Superstep: 10 * i}}})
	}
	if message != "" {
		r.Failing = &wire.FailedCheckpoints{Since: storyBegin.Add(time.Duration(written) * time.Second), Count: 1, Error: message}
	}
	return r
}

// checkpointsText returns what is known of the checkpoints of a job as text.
func checkpointsText(j *wire.JobInfo, ages map[wire.JobID]time.Duration) string {
	s := j.Checkpoints
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("  checkpoints in %s: %d written, %d failed, %d bytes, %.1fs; newest:", s.Dir, s.Written, s.Failed, s.Bytes, s.Seconds)
	for _, c := range s.Newest {
		text += fmt.Sprintf(" %d(%v)", c.Number, c.Queues[0].Superstep)
	}
	if age, runs := ages[j.ID]; runs {
		text += fmt.Sprintf(", %s ago", age)
	}
	if f := s.Failing; f != nil {
		text += fmt.Sprintf("; %d failed since +%s: %s", f.Count, f.Since.Sub(storyBegin), f.Error)
	}
	return text + "\n"
}

// TestCheckpointsAreBounded requires that nothing that a worker reports makes a job grow, and that
// numbers which cannot be are replaced.
func TestCheckpointsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<12) // far beyond what is kept
	r := &wire.Checkpointed{Written: -1, Failed: math.MaxInt, Bytes: math.MaxInt64, Seconds: math.NaN(), Failing: &wire.FailedCheckpoints{Count: -3, Error: long + "\xff"}}
	for i := range 100 {
		w := wire.WrittenCheckpoint{Number: i, Bytes: -5, Seconds: math.Inf(1), More: -7}
		for q := range 100 {
			w.Queues = append(w.Queues, wire.OriginQueue{Name: fmt.Sprintf("%d%s", q, long), Superstep: q, Ended: q >= i%wire.MaxCheckpointsTold*10})
		}
		r.Newest = append(r.Newest, w)
	}
	b := boundedCheckpoints(r)
	require.Equal(t, []any{0, 1<<31 - 1, int64(1) << 50, 0.0, 0}, []any{b.Written, b.Failed, b.Bytes, b.Seconds, b.Failing.Count})
	data, err := wire.Marshal(&b)
	require.NoError(t, err)
	require.Less(t, len(data), 100<<10)
	require.Len(t, b.Newest, wire.MaxCheckpointsTold)
	for i, w := range b.Newest {
		require.Equal(t, []any{90 + i, int64(0), 0.0, 100 - maxQueues}, []any{w.Number, w.Bytes, w.Seconds, w.More})
		require.Len(t, w.Queues, maxQueues)
		goingOn := 0
		for k, q := range w.Queues {
			require.True(t, k == 0 || q.Superstep > w.Queues[k-1].Superstep, "the order must stay")
			if !q.Ended {
				goingOn++
			}
		}
		require.Equal(t, min(10*i, maxQueues), goingOn, "queues that go on come first")
	}
	require.Len(t, r.Newest[99].Queues[0].Name, 1<<12+1, "the report must stay as it is")
	require.Equal(t, wire.Checkpointed{}, boundedCheckpoints(&wire.Checkpointed{}))
}
