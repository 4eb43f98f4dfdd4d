//go:build linux && !race

package clusters

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/wire"
)

// askEvery is how often tests run a client process to ask for a state that a cluster comes to
// within seconds. Each process takes a tenth of a second of a processor, and without pauses
// between them, the cluster itself gets only what they leave.
const askEvery = 100 * time.Millisecond

// freeSlots returns the number of slots of a cluster, and how many of them are free. The slots of
// task managers that are not alive do not count. It connects from this process, which takes a
// small part of the time of a client process.
func freeSlots(ctx context.Context, o client.Options) (free, slots int, err error) {
	c, err := client.Dial(ctx, o)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	reply, err := c.TaskManagers(ctx, &wire.TaskManagersRequest{})
	if err != nil {
		return 0, 0, err
	}
	for _, n := range reply.TaskManagers {
		if n.State == "alive" {
			free, slots = free+n.Free, slots+n.Slots
		}
	}
	return free, slots, nil
}

// requireFreeSlots waits until a cluster has the given number of slots and all of them are free.
func requireFreeSlots(t testing.TB, o client.Options, want int, output *transcript) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		free, slots, err := freeSlots(ctx, o)
		return err == nil && free == want && slots == want // without an answer, the job manager is not up yet
	}, waitLimit, 20*time.Millisecond, "the cluster must have %d slots, all of them free: %s", want, output)
}

// options returns the options with which clients in this process connect to the cluster.
func (m *processCluster) options() client.Options {
	return client.Options{Address: m.address, TokenFile: filepath.Join(m.dir, "token")}
}

// requireFree waits until the cluster has all its slots and all of them are free.
func (m *processCluster) requireFree() {
	m.t.Helper()
	requireFreeSlots(m.t, m.options(), len(m.tasks)*m.slots, m.output)
}
