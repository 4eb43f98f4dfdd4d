package commands

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/security"
)

// waitsFor returns a TaskManagerCommand that reads its token from file, the streams for running
// the command, and the buffer to which both streams write.
func waitsFor(file string) (*TaskManagerCommand, *Streams, *bytes.Buffer) {
	said := new(bytes.Buffer)
	c := new(TaskManagerCommand)
	c.TokenFile = file
	return c, &Streams{Out: said, Err: said}, said
}

// TestTokenThatComes requires that a task manager gets its token if the file is created 3
// seconds after it started, and that it prints exactly once that it waits.
func TestTokenThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		c, s, said := waitsFor(file)
		made := make(chan security.Token, 1)
		begin := time.Now()
		time.AfterFunc(3*time.Second, func() {
			token, err := security.CreateToken(file)
			if err != nil {
				t.Error(err)
			}
			made <- token
		})
		token, err := c.awaitToken(t.Context(), s, hclog.NewNullLogger(), 6123)
		require.NoError(t, err)
		require.Equal(t, (<-made).Reveal(), token.Reveal())
		require.InDelta(t, 3, time.Since(begin).Seconds(), 0.3)
		require.Equal(t, 1, strings.Count(said.String(), "taskmanager: waiting for the token: "), said.String())
	})
}

// TestTokenThatDoesNotCome requires that a task manager without a token gives up after
// tokenWait, with an error that names the missing file.
func TestTokenThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		c, s, said := waitsFor(file)
		begin := time.Now()
		_, err := c.awaitToken(t.Context(), s, hclog.NewNullLogger(), 6123)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, file)
		require.Equal(t, tokenWait, time.Since(begin))
		require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
	})
}

// TestTokenNotWaitedFor requires that the wait for the token ends when the context is done, and
// that the task manager does not wait if the file exists but its content is invalid.
func TestTokenNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		c, s, said := waitsFor(file)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := c.awaitToken(ctx, s, hclog.NewNullLogger(), 6123)
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(begin))

		said.Reset()
		require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
		_, err = c.awaitToken(t.Context(), s, hclog.NewNullLogger(), 6123)
		require.ErrorContains(t, err, "could be guessed")
		require.False(t, errors.Is(err, fs.ErrNotExist))
		require.Equal(t, time.Second, time.Since(begin))
		require.Empty(t, said.String())
	})
}

// TestPortsBeforeTheToken requires that invalid ports are reported without waiting for a token.
func TestPortsBeforeTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := waitsFor(filepath.Join(t.TempDir(), "token"))
		c.Ports, c.JobManager, c.Insecure = "6299-6200", "localhost:6123", true
		begin := time.Now()
		err := c.offer(t.Context(), s, hclog.NewNullLogger())
		require.ErrorContains(t, err, "--worker-ports: there is no range of ports 6299-6200")
		require.Zero(t, time.Since(begin))
	})
}
