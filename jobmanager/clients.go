package jobmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// HasArtifact reports whether the job manager has an executable already. It returns an error if
// the executable cannot be uploaded, for example because it is too large.
func (m *Manager) HasArtifact(_ context.Context, req *wire.HasArtifactRequest) (*wire.HasArtifactReply, error) {
	switch {
	case m.config.NoUploads:
		return nil, wire.Error(codes.FailedPrecondition, "%s", noUploads)
	case programs.CheckHash(req.Hash) != nil:
		return nil, wire.Error(codes.InvalidArgument, "%v", programs.CheckHash(req.Hash))
	case m.artifacts.has(req.Hash):
		return &wire.HasArtifactReply{Has: true}, nil
	case req.Hash == m.own.Hash:
		if err := m.artifacts.offer(m.own); err != nil {
			return nil, artifactError(err)
		}
		return &wire.HasArtifactReply{Has: true}, nil
	}
	if err := m.artifacts.allows(req.Size); err != nil {
		return nil, artifactError(err)
	}
	return &wire.HasArtifactReply{}, nil
}

// UploadArtifact receives and stores an executable.
func (m *Manager) UploadArtifact(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error {
	if m.config.NoUploads {
		return wire.Error(codes.FailedPrecondition, "%s", noUploads)
	}
	if err := m.roomToWrite(); err != nil {
		return err
	}
	return m.watched(stream.Context(), m.config.WriteTimeout, func(busy busy) error {
		var chunk *wire.Chunk
		receive := func() (err error) {
			chunk, err = stream.Recv()
			return err
		}
		if err := busy(receive); errors.Is(err, io.EOF) {
			return wire.Error(codes.InvalidArgument, "an upload begins with the executable's hash and size")
		} else if err != nil {
			return err
		}
		hash, size, first := chunk.Hash, chunk.Size, true
		err := m.artifacts.put(hash, size, func() ([]byte, error) {
			if first {
				first = false
				return chunk.Data, nil
			}
			err := busy(receive)
			if err != nil {
				return nil, err
			}
			return chunk.Data, nil
		})
		if err != nil {
			m.log.Warn("an upload was refused", "from", from(stream.Context()), "hash", clip(hash), "size", size, "error", err)
			return uploadError(err)
		}
		m.log.Info("an executable was uploaded", "from", from(stream.Context()), "hash", hash, "size", size)
		return stream.SendAndClose(&wire.UploadReply{})
	})
}

// from returns the address of the caller, for the log.
func from(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return "this process"
}

// uploadError returns err, an error of an upload, with a gRPC code. An error of the stream
// already has a code.
func uploadError(err error) error {
	if wire.Code(err) != codes.Unknown {
		return err
	}
	return artifactError(err)
}

// FetchArtifact sends an executable to a task manager.
func (m *Manager) FetchArtifact(req *wire.FetchRequest, stream wire.ServerStream[wire.Chunk]) error {
	return m.watched(stream.Context(), m.config.WriteTimeout, func(busy busy) error {
		err := m.artifacts.send(stream.Context(), req.Hash, func(c *wire.Chunk) error {
			return busy(func() error { return stream.Send(c) })
		})
		if err != nil {
			return uploadError(err)
		}
		return nil
	})
}

// List returns jobs, newest first.
func (m *Manager) List(_ context.Context, req *wire.ListRequest) (*wire.ListReply, error) {
	if req.Limit < 0 {
		return nil, wire.Error(codes.InvalidArgument, "the limit of the list is %d: want a positive number, or 0 for all jobs", req.Limit)
	}
	m.mu.Lock()
	all := m.core.Jobs()
	m.mu.Unlock()
	if len(req.States) > 0 {
		all = slices.DeleteFunc(all, func(j wire.JobInfo) bool { return !slices.Contains(req.States, j.State) })
	}
	if req.Limit > 0 && req.Limit < len(all) {
		all = all[:req.Limit]
	}
	for i := range all {
		if f := all[i].Failure; f != nil && len(f.LastLines) > 0 { // only Show returns the last lines
			short := *f
			short.LastLines = nil
			all[i].Failure = &short
		}
	}
	return &wire.ListReply{Jobs: all}, nil
}

// Show returns one job with its plan and, if it has finished, its outcomes.
func (m *Manager) Show(_ context.Context, req *wire.ShowRequest) (*wire.JobInfo, error) {
	info, _, err := m.find(req.Job)
	if err != nil {
		return nil, err
	}
	if err := m.complete(&info); err != nil {
		return nil, err
	}
	return &info, nil
}

// Cancel cancels a job. When it returns, the cancellation is on record, so that a restarted job
// manager does not take the job up again, unless the history cannot be written.
func (m *Manager) Cancel(ctx context.Context, req *wire.CancelRequest) (*wire.CancelReply, error) {
	info, j, err := m.find(req.Job)
	if err != nil {
		return nil, err
	}
	if info.State.Ended() {
		return &wire.CancelReply{Job: info}, nil
	}
	m.mu.Lock()
	m.decide(core.CancelAsked{ID: info.ID, Reason: cmp.Or(req.Reason, "someone asked for it")})
	if now, ok := m.core.Job(info.ID); ok {
		info = now
	}
	m.mu.Unlock()
	if err := m.awaitRecord(ctx, j, info.State.Ended()); err != nil {
		return nil, err
	}
	return &wire.CancelReply{Job: info}, nil
}

// awaitRecord waits until the history has been written with the current state of job j, which may
// be its final state, or could not be written.
func (m *Manager) awaitRecord(ctx context.Context, j *job, final bool) error {
	if j == nil || !final {
		return m.awaitFollowers(ctx)
	}
	select {
	case <-j.finalWriteDone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return wire.Error(codes.Unavailable, "the job manager stops")
	}
}

// TaskManagers returns the task managers.
func (m *Manager) TaskManagers(context.Context, *wire.TaskManagersRequest) (*wire.TaskManagersReply, error) {
	ailing := m.reasonNotReady()
	m.mu.Lock()
	defer m.mu.Unlock()
	return &wire.TaskManagersReply{TaskManagers: m.core.TaskManagers(m.clock()), Ailing: ailing}, nil
}

// Overview returns a summary of the cluster. It returns an error if the client has another
// version of the protocol.
func (m *Manager) Overview(_ context.Context, req *wire.OverviewRequest) (*wire.Overview, error) {
	if err := wire.CheckVersions(req.Version, "the client", "the job manager"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	o := m.core.Overview()
	m.mu.Unlock()
	o.Uploads, o.MaxArtifact = !m.config.NoUploads, m.config.MaxArtifact
	o.Ailing, o.DiskFree = m.reasonNotReady(), m.space.Read().Free
	return &o, nil
}

// find returns a job. id is the job's ID, or a prefix of it with which no other ID begins. The
// *job is nil if the job has ended and its logs are complete.
func (m *Manager) find(id wire.JobID) (wire.JobInfo, *job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.findLocked(id)
}

// findLocked does the work of find. The caller holds mu.
func (m *Manager) findLocked(id wire.JobID) (wire.JobInfo, *job, error) {
	if info, ok := m.core.Job(id); ok {
		return info, m.jobs[id], nil
	}
	var fit []wire.JobID
	if id != "" {
		for _, info := range m.core.Jobs() {
			if strings.HasPrefix(string(info.ID), string(id)) {
				fit = append(fit, info.ID)
			}
		}
	}
	switch len(fit) {
	case 0:
		return wire.JobInfo{}, nil, wire.Error(codes.NotFound, "there is no job %.100q: see superstep list", string(id))
	case 1:
		info, _ := m.core.Job(fit[0])
		return info, m.jobs[fit[0]], nil
	}
	return wire.JobInfo{}, nil, wire.Error(codes.InvalidArgument, "%q is the beginning of several IDs, %s: give more of the ID", string(id), firstNames(fit))
}

// firstNames returns the first few of many job IDs as text.
func firstNames(ids []wire.JobID) string {
	const most = 4
	var text []string
	for _, id := range ids[:min(len(ids), most)] {
		text = append(text, string(id))
	}
	if len(ids) > most {
		return strings.Join(text, ", ") + fmt.Sprintf(" or %d others", len(ids)-most)
	}
	return strings.Join(text, " or ")
}
