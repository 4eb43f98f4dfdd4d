package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// chunkSize is the number of bytes of an executable in one message. It is so small that
// progress is reported often on a slow network, and far below the limit of a message.
const chunkSize = 256 << 10

// Upload uploads the executable at path to the job manager, unless the job manager has it
// already. It returns the SHA-256 of the executable in hex. Before and during the upload, it
// calls progress, which may be nil, with the number of bytes sent. It does not call progress if
// the job manager has the executable already. If the job manager takes no bytes for
// Options.StallTimeout, Upload returns an error. If the job manager does not accept uploads,
// Upload sends nothing; the submission of a job then fails if the job manager does not have the
// executable. Errors refer to the executable as name.
func (c *Client) Upload(ctx context.Context, path, name string, progress func(sent, total int64)) (hash string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("upload %s: %w", name, err)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	size := info.Size()
	switch limit := c.overview.MaxArtifact; {
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	case size == 0:
		return "", errors.New("the file is empty")
	case limit > 0 && size > limit && c.overview.Uploads:
		return "", fmt.Errorf("it has %s, more than the %s that the cluster accepts: build it with -ldflags=-s, or have the job manager accept more", humanize.Bytes(size), humanize.Bytes(limit))
	}
	if hash, err = hashFile(ctx, f); err != nil {
		return "", err
	}
	if !c.overview.Uploads {
		return hash, nil
	}
	there, err := c.has(ctx, hash, size)
	if err != nil || there {
		return hash, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return hash, c.Explain(c.send(ctx, f, hash, size, progress))
}

// has asks whether the job manager has the executable with the given hash.
func (c *Client) has(ctx context.Context, hash string, size int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.DialTimeout)
	defer cancel()
	reply, err := c.HasArtifact(ctx, &wire.HasArtifactRequest{Hash: hash, Size: size})
	if err != nil {
		return false, c.Explain(err)
	}
	return reply.Has, nil
}

// stalledError is the error of an upload that was ended because the job manager took no bytes.
type stalledError struct{ after time.Duration }

func (e *stalledError) Error() string {
	return fmt.Sprintf("the job manager took no bytes for %v", e.after)
}

// send sends size bytes of r on a stream. A timer ends the stream if a chunk is not taken
// within StallTimeout, because Send waits for as long as the other side does not read.
func (c *Client) send(ctx context.Context, r io.Reader, hash string, size int64, progress func(sent, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := c.options.StallTimeout
	watchdog := time.AfterFunc(limit, func() { cancel(&stalledError{limit}) })
	defer watchdog.Stop()
	if progress != nil {
		progress(0, size)
	}
	stream, err := c.UploadArtifact(ctx)
	if err == nil {
		err = sendChunks(stream, r, hash, size, func(sent int64) {
			watchdog.Reset(limit)
			if progress != nil {
				progress(sent, size)
			}
		})
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// sendChunks sends size bytes of r in chunks, calls told with the number of bytes sent after
// each chunk, and waits for the answer.
func sendChunks(stream grpc.ClientStreamingClient[wire.Chunk, wire.UploadReply], r io.Reader, hash string, size int64, told func(sent int64)) error {
	buf := make([]byte, chunkSize)
	for sent := int64(0); sent < size; {
		n, err := io.ReadFull(r, buf[:min(size-sent, chunkSize)])
		if err != nil {
			return fmt.Errorf("the file became shorter while it was read: %w", err)
		}
		chunk := &wire.Chunk{Data: buf[:n]}
		if sent == 0 {
			chunk.Hash, chunk.Size = hash, size
		}
		if err := stream.Send(chunk); errors.Is(err, io.EOF) {
			break // the other side has ended the stream; CloseAndRecv returns the reason
		} else if err != nil {
			return err
		}
		sent += int64(n)
		told(sent)
	}
	_, err := stream.CloseAndRecv()
	return err
}

// hashFile returns the SHA-256 of the bytes of r in hex.
func hashFile(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
