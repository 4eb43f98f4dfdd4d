package origin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestFromFiles requires that an origin says of exactly those queues that a worker has read the state from a
// file from which they continue.
func TestFromFiles(t *testing.T) {
	state := func(queue string, superstep int) copies.Held {
		return copies.Held{State: copies.State{Queue: queue, Superstep: superstep, Of: 1}, Pieces: []int{0}}
	}
	said := func(states, read []copies.Held) []byte {
		data, err := Encode(Held{Copies: copies.AppendHeld(nil, states), Read: copies.AppendHeld(nil, read)})
		require.NoError(t, err)
		return data
	}
	held := [][]byte{
		said([]copies.Held{state("read", 5), state("old", 2)}, []copies.Held{state("read", 5), state("old", 2)}),
		said([]copies.Held{state("old", 3), state("kept", 4)}, nil),
		nil,
	}
	choices, err := Choices(held)
	require.NoError(t, err)
	from := Choose(choices, func(string) bool { return true }, &wire.Origin{Number: 1, Queues: []wire.OriginQueue{{Name: "saved", Superstep: 5}}})
	require.NoError(t, FromFiles(held, from))
	require.ElementsMatch(t, []wire.OriginQueue{
		{Name: "saved", Superstep: 5},
		{Name: "read", Superstep: 5, InMemory: true, FromFile: true},
		{Name: "old", Superstep: 3, InMemory: true},
		{Name: "kept", Superstep: 4, InMemory: true},
	}, from.Queues)
	require.Contains(t, from.String(), `queue "read" continues after superstep 5 (from a file)`)
	require.Contains(t, from.String(), `queue "kept" continues after superstep 4 (from memory)`)

	require.NoError(t, FromFiles(held, nil))
	wrong, err := Encode(Held{Copies: copies.AppendHeld(nil, nil), Read: []byte{255}})
	require.NoError(t, err)
	require.ErrorContains(t, FromFiles([][]byte{wrong}, from), "what worker 0 has read from files")
}
