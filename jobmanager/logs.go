package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Logs streams the output of the workers of a job.
func (m *Manager) Logs(req *wire.LogsRequest, stream wire.ServerStream[wire.LogChunk]) error {
	return m.watched(stream.Context(), m.config.WriteTimeout, func(busy busy) error {
		return m.Log(stream.Context(), req, func(c *wire.LogChunk) error {
			return busy(func() error { return stream.Send(c) })
		})
	})
}

// Log calls send with the output of the workers of a job: first the existing text, worker by
// worker, and then, if req.Follow is set, new text until the job ends. It calls send in the
// caller's goroutine, and does not limit the time that send takes. send may keep the chunk.
func (m *Manager) Log(ctx context.Context, req *wire.LogsRequest, send func(*wire.LogChunk) error) error {
	if req.Worker < -1 {
		return wire.Error(codes.InvalidArgument, "there is no worker %d: workers count from 0, and -1 is all", req.Worker)
	}
	info, j, err := m.find(req.Job)
	if err != nil {
		return err
	}
	r := logReader{m: m, req: req, send: send, info: info, at: make(map[int]int64)}
	if j == nil {
		workers, err := m.pastLogs(info.ID)
		if err != nil {
			return wire.Error(codes.Internal, "%v", err)
		}
		return r.all(ctx, workers)
	}
	for {
		workers, closed, changed := j.logs.now()
		if err := r.all(ctx, workers); err != nil || closed || !req.Follow {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.ctx.Done():
			return wire.Error(codes.Unavailable, "the job manager stops")
		}
	}
}

// pastLogs opens the logs of a job whose last output is stored.
func (m *Manager) pastLogs(id wire.JobID) (map[int]*worklog, error) {
	entries, err := fs.ReadDir(m.root.FS(), jobDir(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for logs: %w", err)
	}
	workers := make(map[int]*worklog)
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "log-")
		number, _, _ := strings.Cut(rest, "-")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || workers[n] != nil {
			continue
		}
		if workers[n], err = openWorklog(m.root, jobDir(id), n); err != nil {
			return nil, err
		}
	}
	return workers, nil
}

// logReader reads a job's logs and sends them.
type logReader struct {
	m    *Manager
	req  *wire.LogsRequest
	send func(*wire.LogChunk) error
	info wire.JobInfo
	at   map[int]int64 // worker number -> position up to which the worker's log has been sent
}

// all sends the text of all workers that has not been sent yet.
func (r *logReader) all(ctx context.Context, workers map[int]*worklog) error {
	numbers := make([]int, 0, len(workers))
	for n := range workers {
		if r.req.Worker == -1 || r.req.Worker == n {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if err := r.worker(ctx, n, workers[n]); err != nil {
			return err
		}
	}
	return nil
}

func (r *logReader) worker(ctx context.Context, n int, log *worklog) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, next, dropped, err := log.read(r.at[n])
		if err != nil {
			return wire.Error(codes.Internal, "%v", err)
		}
		r.at[n] = next
		if dropped > 0 {
			note := fmt.Sprintf("[%d bytes that worker %d wrote before this are not kept]\n", dropped, n)
			if err := r.send(&wire.LogChunk{Worker: n, TaskManager: r.place(n), Text: []byte(note)}); err != nil {
				return err
			}
		}
		if len(text) == 0 {
			return nil
		}
		if err := r.send(&wire.LogChunk{Worker: n, TaskManager: r.place(n), Text: text}); err != nil {
			return err
		}
	}
}

// place returns the name of the task manager on which worker n runs or ran.
func (r *logReader) place(n int) string {
	if n >= len(r.info.Workers) { // the worker was placed after the reader was made
		r.m.mu.Lock()
		if info, ok := r.m.core.Job(r.info.ID); ok {
			r.info = info
		}
		r.m.mu.Unlock()
	}
	for _, placed := range [][]wire.Placed{r.info.Workers, r.info.Ran} {
		if n < len(placed) {
			return placed[n].TaskManager
		}
	}
	return ""
}
