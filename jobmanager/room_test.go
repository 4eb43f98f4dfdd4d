package jobmanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

func TestRoomForJobs(t *testing.T) {
	require.NoError(t, admit(0, 0))
	require.NoError(t, admit(maxLive-1, maxLiveBytes))
	for _, err := range []error{admit(maxLive, 0), admit(0, maxLiveBytes+1)} {
		require.Equal(t, codes.ResourceExhausted, wire.Code(err))
		require.Contains(t, wire.Reason(err), "when some have ended")
	}
	m := start(t)
	for _, size := range []int{100, 200} {
		spec := specOf(t, 1)
		spec.Args = make([]byte, size)
		c := dial(t, m, testToken, nil)
		submit(t, c, spec)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var held int64
	for _, j := range m.jobs {
		held += j.size
	}
	require.Equal(t, int64(300+2*len(specOf(t, 1).Graph)), held)
}

func TestNamesThatPlayWithTheTerminal(t *testing.T) {
	for name, odd := range map[string]bool{"kmeans": false, "bäume 2": false, "a\x1bb": true, "a\u202eb": true, "a\nb": true} {
		require.Equal(t, odd, hasControl(name), "%q", name)
	}
}
