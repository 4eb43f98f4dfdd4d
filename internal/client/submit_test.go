package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// submissions answers the n-th submission with the n-th error, and those after the last with a
// job. It records the requests.
type submissions struct {
	manager
	errors   []error
	requests []wire.SubmitRequest
}

func (m *submissions) Submit(_ context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, *req)
	if n := len(m.requests); n <= len(m.errors) {
		return nil, m.errors[n-1]
	}
	return &wire.SubmitReply{Job: "j"}, nil
}

// TestSubmitAgain requires that a submission whose answer is lost is sent again under the same
// key, and that one that is refused is not.
func TestSubmitAgain(t *testing.T) {
	away := wire.Error(codes.Unavailable, "restarting")
	m := &submissions{errors: []error{away, away}}
	at, _ := serve(t, m, "")
	c := dialed(t, at, nil)
	reply, err := c.Submit(t.Context(), &wire.SubmitRequest{Spec: wire.JobSpec{Name: "demo"}})
	require.NoError(t, err)
	require.Equal(t, wire.JobID("j"), reply.Job)
	require.Len(t, m.requests, 3)
	for _, r := range m.requests {
		require.Equal(t, "demo", r.Spec.Name)
		require.Equal(t, m.requests[0].Key, r.Key)
	}
	require.GreaterOrEqual(t, len(m.requests[0].Key), 20)

	_, err = c.Submit(t.Context(), &wire.SubmitRequest{})
	require.NoError(t, err)
	require.NotEqual(t, m.requests[0].Key, m.requests[3].Key, "each job must have a key of its own")

	refusing := &submissions{errors: []error{wire.Error(codes.InvalidArgument, "no such job")}}
	at, _ = serve(t, refusing, "")
	_, err = dialed(t, at, nil).Submit(t.Context(), &wire.SubmitRequest{})
	require.ErrorContains(t, err, "no such job")
	require.Len(t, refusing.requests, 1)

	gone := &submissions{errors: []error{away, away, away, away, away, away, away, away, away, away}}
	at, _ = serve(t, gone, "")
	bounded, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = dialed(t, at, nil).Submit(bounded, &wire.SubmitRequest{})
	require.ErrorContains(t, err, "restarting")
}
