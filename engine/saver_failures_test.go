package engine

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/internal/s3test"
)

// refusingServer is a server that refuses all requests at times.
type refusingServer struct {
	http.RoundTripper
	refuses atomic.Bool
}

func (s *refusingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.refuses.Load() {
		return s.RoundTripper.RoundTrip(r)
	}
	body := "<Error><Code>InsufficientStorage</Code><Message>The bucket is full.</Message></Error>"
	return &http.Response{StatusCode: http.StatusInsufficientStorage, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestSaverSaysWhatTheStoreAnswers requires that a run which ends because no checkpoint could be written
// names what the store has answered, while the write is still tried again.
func TestSaverSaysWhatTheStoreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := s3test.New()
		refusing := &refusingServer{RoundTripper: server}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		store, err := s3store.Open(ctx, "s3://bucket/x", s3store.Config{Getenv: server.Env("http://s3.test"), Transport: refusing, Fail: cancel})
		require.NoError(t, err)
		s, err := startSaver(ctx, store, "j", &checkpointConfig{steps: 1, failAfter: 3 * time.Second}, hclog.NewNullLogger(), cancel)
		require.NoError(t, err)
		refusing.refuses.Store(true)
		s.Save("a", cutAt(1, false))
		time.Sleep(4 * time.Second)
		require.ErrorContains(t, context.Cause(ctx), "--checkpoint-fail-after is 3s: write object x/state-")
		require.ErrorContains(t, context.Cause(ctx), "the answer is 507 InsufficientStorage: The bucket is full")
		s.close(endFailed)
	})
}

// TestMissingSavepoint requires that a savepoint which is not there is said to be so, and nothing else.
func TestMissingSavepoint(t *testing.T) {
	place := filepath.Join(t.TempDir(), "typo")
	_, err := Run(t.Context(), squares, squaresArgs{N: 3}, FromSavepoint(place))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "--from: open "+place)
	require.NotContains(t, err.Error(), "worker 0")
}
