package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBeyond(t *testing.T) {
	at := func(steps ...int) *Origin { // negative for queues that have ended
		o := &Origin{}
		for i, n := range steps {
			if n != 0 {
				o.Queues = append(o.Queues, OriginQueue{Name: string(rune('a' + i)), Superstep: max(n, -n), Ended: n < 0})
			}
		}
		return o
	}
	require.True(t, at(3).Beyond(nil))
	require.True(t, at(3).Beyond(at(2)))
	require.True(t, at(3, 1).Beyond(at(3)))
	require.True(t, at(-3, 2).Beyond(at(-3, 1)))
	for _, o := range []*Origin{at(), at(3), at(-4), at(-4, 0)} {
		require.False(t, o.Beyond(at(3)), "%v", o)
	}
	require.False(t, at().Beyond(nil))
}
