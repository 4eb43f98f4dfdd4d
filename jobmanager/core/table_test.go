package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// matrix requires that the state machine m equals the table want, which has a row for each
// state and a column for each event. The entry "." means that the event does not change the
// state.
func matrix[S, E ~int](t *testing.T, m table[S, E], states, events int, text func(S) string, name func(E) string, terminal func(S) bool, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	require.Len(t, lines, states+1)
	head := strings.Fields(lines[0])
	require.Len(t, head, events)
	for e := range events {
		require.Equal(t, name(E(e)), head[e])
	}
	for s := range states {
		row := strings.Fields(lines[s+1])
		require.Len(t, row, events+1)
		require.Equal(t, text(S(s)), row[0])
		for e := range events {
			t.Run(fmt.Sprintf("%s by %s", row[0], head[e]), func(t *testing.T) {
				next, ok := m.next(S(s), E(e))
				require.Equal(t, row[e+1] != ".", ok)
				if ok {
					require.Equal(t, row[e+1], text(next))
					require.False(t, terminal(S(s)), "a final state must not have a transition")
				}
			})
		}
	}
}

func TestJobTable(t *testing.T) {
	matrix(t, jobTable, len(wire.JobStates()), len(jobEvents), wire.JobState.String, jobEvent.String, wire.JobState.Ended, `
	           resolved  placed     started  commits     orphaned    committed  fails    cancels     emptied    lost        restarts
	resolving  waiting   .          .        .           .           .          failing  cancelling  .          .           .
	waiting    .         deploying  .        .           .           .          failing  cancelling  .          .           .
	deploying  .         .          running  .           .           .          failing  cancelling  .          restarting  .
	running    .         .          .        committing  .           .          failing  cancelling  .          restarting  .
	committing .         .          .        .           committing  finished   failing  cancelling  .          .           .
	failing    .         .          .        .           .           .          .        .           failed     restarting  .
	cancelling .         .          .        .           .           .          .        .           cancelled  .           .
	finished   .         .          .        .           .           .          .        .           .          .           .
	failed     .         .          .        .           .           .          .        .           .          .           .
	cancelled  .         .          .        .           .           .          .        .           .          .           .
	restarting .         .          .        .           .           .          .        cancelling  .          .           waiting`)
}

func TestWorkerTable(t *testing.T) {
	matrix(t, workerTable, len(workerStates), len(workerEvents), WorkerState.String, workerEvent.String, WorkerState.Gone, `
	          ready  resolved  prepared  start    finished  committed  failed  ended  lost
	deploying ready  resolved  .         .        .         .          failed  ended  lost
	ready     .      .         prepared  running  .         committed  failed  ended  lost
	prepared  .      .         .         running  .         .          failed  ended  lost
	running   .      .         .         .        finished  .          failed  ended  lost
	finished  .      .         .         .        .         committed  failed  ended  lost
	committed .      .         .         .        .         .          failed  ended  lost
	resolved  .      .         .         .        .         .          failed  ended  lost
	failed    .      .         .         .        .         .          .       ended  lost
	ended     .      .         .         .        .         .          .       .      .
	lost      .      .         .         .        .         .          .       .      .`)
}

func TestNodeTable(t *testing.T) {
	matrix(t, taskManagerTable, len(taskManagerStates), len(taskManagerEvents), TaskManagerState.String, taskManagerEvent.String, TaskManagerState.Gone, `
	       heard  silence  cut   back   expired  leaves
	alive  alive  silent   away  alive  lost     left
	silent alive  silent   away  alive  lost     left
	away   .      .        .     alive  lost     .
	lost   .      .        .     .      .        .
	left   .      .        .     .      .        .`)
}

// TestRepeats requires, for every state of a worker and every report, that the report counts as
// new, as a repetition or as too early, as the table says.
func TestRepeats(t *testing.T) {
	want := strings.Split(strings.TrimSpace(`
	          ready   resolved  prepared  finished  committed  failed
	deploying news    news      early     early     early      news
	ready     before  early     news      early     news       news
	prepared  before  early     before    early     early      news
	running   before  early     before    news      early      news
	finished  before  early     before    before    news       news
	committed before  early     before    before    before     news
	resolved  before  before    before    before    before     news
	failed    before  before    before    before    before     before
	ended     before  before    before    before    before     before
	lost      before  before    before    before    before     before`), "\n")
	events := []workerEvent{saidReady, saidResolved, saidPrepared, saidFinished, saidCommitted, saidFailed}
	for s, line := range want[1:] {
		row := strings.Fields(line)
		require.Equal(t, WorkerState(s).String(), row[0])
		for i, e := range events {
			got := "early"
			if _, ok := workerTable.next(WorkerState(s), e); ok {
				got = "news"
			} else if e.repeats(WorkerState(s)) {
				got = "before"
			}
			require.Equal(t, row[i+1], got, "a worker in state %s reports %s", row[0], e)
		}
	}
}
