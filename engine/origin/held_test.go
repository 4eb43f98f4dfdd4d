package origin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestHeldFitsItsMessage requires that a process says as much of what it has kept as its message may have.
func TestHeldFitsItsMessage(t *testing.T) {
	long, short := make([]byte, wire.MaxHeld), []byte("short")
	for _, c := range []struct{ rows, states, wantRows, wantStates []byte }{
		{short, short, short, short},
		{long, short, nil, short},
		{short, long, short, nil},
		{long, long, nil, nil},
		{long[:wire.MaxHeld/2], long[:wire.MaxHeld/2], nil, long[:wire.MaxHeld/2]},
	} {
		data, err := Encode(Held{Rows: c.rows, Copies: c.states})
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), wire.MaxHeld)
		h, err := Decode(0, data)
		require.NoError(t, err)
		require.Equal(t, len(c.wantRows), len(h.Rows))
		require.Equal(t, len(c.wantStates), len(h.Copies))
	}
	data, err := Encode(Held{})
	require.NoError(t, err)
	require.Nil(t, data)
}
