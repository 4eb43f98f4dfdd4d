package rest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/jobmanager"
)

var _ Manager = (*jobmanager.Manager)(nil)

func TestServerServesAndCloses(t *testing.T) {
	token, err := security.NewToken()
	require.NoError(t, err)
	s, err := New(Config{Listen: "127.0.0.1:0", Manager: (*jobmanager.Manager)(nil), Token: token})
	require.NoError(t, err)
	require.Equal(t, "http://"+s.Address(), s.URL())
	require.NoError(t, s.Close())
}
