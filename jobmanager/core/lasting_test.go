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
