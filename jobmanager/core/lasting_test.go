package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestLastingOrigin requires that states in memory are no progress by which attempts would crash in
// different ways.
func TestLastingOrigin(t *testing.T) {
	memory := wire.OriginQueue{Name: "q", Superstep: 5, InMemory: true}
	stored := wire.OriginQueue{Name: "r", Superstep: 3}
	for _, c := range []struct {
		from *wire.Origin
		want string
	}{
		{nil, ""},
		{&wire.Origin{Generation: 2}, ""},
		{&wire.Origin{Queues: []wire.OriginQueue{memory}}, ""},
		{&wire.Origin{Number: 4, Queues: []wire.OriginQueue{memory, stored}}, origin(&wire.Origin{Number: 4, Queues: []wire.OriginQueue{stored}})},
	} {
		require.Equal(t, c.want, origin(lasting(c.from)))
	}
}

// TestWhereAttemptsBegin requires that the detail of a running job is grammatical whatever its attempt continues from.
func TestWhereAttemptsBegin(t *testing.T) {
	memory := []wire.OriginQueue{{Name: "q", Superstep: 9, InMemory: true}}
	require.Equal(t, `queue "q" continues after superstep 9 (from memory)`, begins(&wire.Origin{Queues: memory}))
	require.Equal(t, "from superstep 1", begins(&wire.Origin{}))
	require.Regexp(t, `^from checkpoint 3 of .*: queue "q" continues after superstep 9 \(from memory\)$`, begins(&wire.Origin{Number: 3, Queues: memory}))
	require.Regexp(t, `^from savepoint 2 of .*: no queue had a state$`, begins(&wire.Origin{Savepoint: 2}))
}
