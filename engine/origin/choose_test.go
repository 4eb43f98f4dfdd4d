package origin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestChosen requires that the states from which queues continue in memory are chosen, and the reports of
// queues that have ended, also if their states are in a checkpoint. All others are dropped.
func TestChosen(t *testing.T) {
	choice := func(s copies.State) copies.Choice { return copies.Choice{State: s, Holders: [][]int{{0}}} }
	state := func(queue string, superstep int, ended bool) copies.Choice {
		return choice(copies.State{Queue: queue, Superstep: superstep, Ended: ended, Of: 1})
	}
	all := []copies.Choice{
		state("ended", 4, true), state("runs", 7, false), state("saved", 2, true),
		choice(ReportOf("ended")), choice(ReportOf("runs")), choice(ReportOf("saved")), choice(ReportOf("unknown")),
	}
	from := &wire.Origin{Queues: []wire.OriginQueue{
		{Name: "ended", Superstep: 4, Ended: true, InMemory: true}, {Name: "runs", Superstep: 7, InMemory: true}, {Name: "saved", Superstep: 2, Ended: true},
	}}
	got, err := Chosen(all, from)
	require.NoError(t, err)
	require.ElementsMatch(t, []copies.Choice{all[0], all[1], all[3], all[5]}, got)

	got, err = Chosen(all, nil)
	require.NoError(t, err)
	require.Empty(t, got)
	from.Queues[1].Superstep = 8
	_, err = Chosen(all, from)
	require.EqualError(t, err, `queue "runs" continues after superstep 8 from memory, and the worker was not told who has that state`)
	require.True(t, IsReport(ReportOf("q").Queue))
	require.False(t, IsReport("report"))
}
