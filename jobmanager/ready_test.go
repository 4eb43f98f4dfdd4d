package jobmanager

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// logged stores the output of a logger.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns the number of logged lines that contain what.
func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// TestFullDisk makes the disk of the work directory appear full, and later frees space. While
// the disk is full, jobs and executables must be refused with this reason. The log must get one
// line when the disk becomes full, and one line when it has space again.
func TestFullDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(100 << 20)
	log := &logged{}
	m := start(t, func(c *Config) {
		c.MinFree, c.DiskFree = 100<<20, func() (int64, error) { return free.Load(), nil }
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: log})
	})
	look := func() (*wire.Overview, *wire.TaskManagersReply, Stats) {
		o, err := m.Overview(t.Context(), &wire.OverviewRequest{Version: wire.Version})
		require.NoError(t, err)
		n, err := m.TaskManagers(t.Context(), &wire.TaskManagersRequest{})
		require.NoError(t, err)
		return o, n, m.Stats()
	}
	fine := func() {
		t.Helper()
		require.NoError(t, m.Ready())
		require.NoError(t, m.roomToWrite())
		o, n, s := look()
		require.Empty(t, o.Ailing+n.Ailing)
		require.True(t, s.TakesJobs)
		require.Equal(t, free.Load(), o.DiskFree)
		require.Equal(t, free.Load(), s.DiskFree)
	}
	fine()
	require.Zero(t, log.count("takes"))
	for range 2 {
		free.Store(100<<20 - 1)
		const why = "its disk has 99.9 MiB free, 100 MiB are the least (--min-free), and work is taken again at 125 MiB"
		for range 3 {
			require.EqualError(t, m.Ready(), why)
		}
		o, n, s := look()
		require.Equal(t, why, o.Ailing)
		require.Equal(t, why, n.Ailing)
		require.False(t, s.TakesJobs)
		require.Equal(t, free.Load(), s.DiskFree)
		_, err := m.Submit(t.Context(), &wire.SubmitRequest{Spec: specOf(t, 1)})
		require.Equal(t, codes.ResourceExhausted, wire.Code(err))
		require.EqualError(t, err, "the job manager takes no jobs: "+why)
		free.Store(124 << 20)
		require.Error(t, m.Ready())
		free.Store(125 << 20)
		fine()
	}
	require.Equal(t, 2, log.count("the job manager takes no jobs"))
	require.Equal(t, 2, log.count("the job manager takes jobs again"))
}
