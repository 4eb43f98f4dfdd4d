package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// program writes a file of n bytes, and returns its path and bytes.
func program(t *testing.T, n int) (path string, data []byte) {
	t.Helper()
	data = bytes.Repeat([]byte("superstep"), n/9+1)[:n]
	path = filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, data, 0o700))
	return path, data
}

func TestUpload(t *testing.T) {
	m := &manager{}
	at, _ := serve(t, m, "")
	c := dialed(t, at, nil)
	for _, size := range []int{1, chunkSize, 3*chunkSize + 1} {
		path, data := program(t, size)
		var told []int64
		hash, err := c.Upload(t.Context(), path, path, func(sent, total int64) {
			require.Equal(t, int64(size), total)
			told = append(told, sent)
		})
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, hex.EncodeToString(sum[:]), hash)
		require.Equal(t, data, m.has[hash])
		require.Len(t, told, 1+(size+chunkSize-1)/chunkSize)
		require.Zero(t, told[0])
		require.IsIncreasing(t, told)
		require.Equal(t, int64(size), told[len(told)-1])

		again, err := c.Upload(t.Context(), path, path, func(int64, int64) { t.Error("progress must not be called if the job manager has the executable") })
		require.NoError(t, err)
		require.Equal(t, hash, again)
	}
}

func TestUploadRefused(t *testing.T) {
	o := cluster()
	m := &manager{overview: func(context.Context) (*wire.Overview, error) { return o, nil }}
	at, _ := serve(t, m, "")
	path, _ := program(t, 2000)
	empty, _ := program(t, 0)

	o.MaxArtifact = 1999
	_, err := dialed(t, at, nil).Upload(t.Context(), path, path, nil)
	require.ErrorContains(t, err, "upload "+path+": it has 1.9 KiB, more than the 1.9 KiB that the cluster accepts")
	c := dialed(t, at, nil)
	for bad, want := range map[string]string{empty: "the file is empty", t.TempDir(): "is not a regular file", "/no/such": "no such file"} {
		_, err = c.Upload(t.Context(), bad, bad, nil)
		require.ErrorContains(t, err, want)
	}
	o.Uploads = false
	hash, err := dialed(t, at, nil).Upload(t.Context(), path, path, nil)
	require.NoError(t, err, "Upload must not fail; the job manager decides at the submission")
	require.Len(t, hash, 64)
	require.Empty(t, m.has)
}

func TestUploadErrorOfTheOtherSide(t *testing.T) {
	m := &manager{upload: func(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error {
		_, _ = stream.Recv()
		return wire.Error(codes.ResourceExhausted, "the disk under the artifacts is full")
	}}
	at, _ := serve(t, m, "")
	path, _ := program(t, 6<<20) // more bytes than can be sent before the error arrives
	_, err := dialed(t, at, nil).Upload(t.Context(), path, path, nil)
	require.EqualError(t, err, "upload "+path+": the disk under the artifacts is full")
}

func TestUploadStalls(t *testing.T) {
	release := make(chan struct{})
	m := &manager{upload: func(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error {
		select {
		case <-stream.Context().Done():
		case <-release:
		}
		return stream.Context().Err()
	}}
	at, _ := serve(t, m, "")
	defer close(release)
	path, _ := program(t, 6<<20)
	_, err := dialed(t, at, func(o *Options) { o.StallTimeout = 100 * time.Millisecond }).Upload(t.Context(), path, path, nil)
	require.EqualError(t, err, "upload "+path+": the job manager took no bytes for 100ms")
}

func TestUploadCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &manager{upload: func(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error {
		cancel(os.ErrClosed)
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	at, _ := serve(t, m, "")
	path, _ := program(t, 6<<20)
	_, err := dialed(t, at, nil).Upload(ctx, path, path, nil)
	require.ErrorIs(t, err, os.ErrClosed)
}
