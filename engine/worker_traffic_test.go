package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/wire"
)

// sink is a network that accepts every message except the second.
type sink struct {
	transport.Network
	sent int
}

func (s *sink) Dial(transport.Address) (transport.Sender, error) { return s, nil }

func (s *sink) Send(_ context.Context, m transport.Message) error {
	m.Release()
	if s.sent++; s.sent == 2 {
		return errors.New("no")
	}
	return nil
}

func TestTrafficCountsWhatWasTaken(t *testing.T) {
	counted := newTraffic(&sink{}, 2)
	for _, edge := range []int{1, 7} { // there is no edge 7
		s, err := counted.Dial(transport.Address{Edge: edge})
		require.NoError(t, err)
		for i := range 3 {
			err := s.Send(t.Context(), transport.Message{Rows: numberBatch(memory.DefaultAllocator, 3, func(i int) int64 { return int64(i) })})
			require.Equal(t, edge == 1 && i == 1, err != nil)
		}
		require.NoError(t, s.Send(t.Context(), transport.Message{Last: true}))
	}
	got := counted.take()
	require.Zero(t, got[0])
	require.EqualValues(t, 6, got[1].Rows)
	require.GreaterOrEqual(t, got[1].Bytes, int64(6*8))
	require.Equal(t, []wire.EdgeProgress{{}, got[1]}, got)
}
