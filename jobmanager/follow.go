package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Follow streams the events of a job to a client. A client that stops reading delays no other
// client, and is disconnected after Config.WriteTimeout.
func (m *Manager) Follow(req *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
	return m.watched(stream.Context(), m.config.WriteTimeout, func(busy busy) error {
		return m.Watch(stream.Context(), req, func(e *wire.Event) error {
			return busy(func() error { return stream.Send(e) })
		})
	})
}

// Watch calls send with each event of a job whose number is at least req.From, and returns
// after the final state. It calls send in the caller's goroutine, and does not limit the time
// that send takes. send may keep the event.
func (m *Manager) Watch(ctx context.Context, req *wire.FollowRequest, send func(*wire.Event) error) error {
	f, err := m.newFollower(req, send)
	if err != nil {
		return err
	}
	defer f.close()
	if req.Attach && f.job != nil {
		m.attach(f.job, 1)
		defer m.attach(f.job, -1)
	}
	if err := f.replay(ctx); err != nil {
		return err
	}
	return f.last(ctx)
}

// follower reads a job's events and sends them to one client.
type follower struct {
	m    *Manager
	id   wire.JobID
	from uint64
	send func(*wire.Event) error

	job     *job // nil if the job had ended and its last output was stored when the follower was made
	spool   *spool
	reader  spoolReader
	file    *os.File // the spool's file; nil until it is opened
	gone    bool     // the spool's file has been removed
	lost    error    // error that prevents the reading of further events
	planned []byte   // the job's plan; nil until it is known
	attempt int      // the attempt whose plan it is
}

func (m *Manager) newFollower(req *wire.FollowRequest, send func(*wire.Event) error) (*follower, error) {
	m.mu.Lock()
	info, j, err := m.findLocked(req.Job)
	if j != nil {
		j.readers++
	}
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f := &follower{m: m, id: info.ID, from: req.From, send: send, job: j, reader: spoolReader{seed: spoolSeed(info.ID)}}
	if j != nil {
		f.spool = j.spool
		return f, nil
	}
	// Another file, without rows, may replace the file, so the size must be that of the open
	// file.
	file, err := m.root.Open(spoolName(info.ID))
	switch {
	case err == nil:
		var stat fs.FileInfo
		if stat, err = file.Stat(); err == nil {
			f.file, f.reader.file, f.spool = file, file, pastSpool(stat.Size())
			return f, nil
		}
		err = errors.Join(err, file.Close())
	case errors.Is(err, fs.ErrNotExist):
		f.spool, f.gone = pastSpool(0), true
		return f, nil
	}
	return nil, wire.Error(codes.Internal, "the events of job %s cannot be read: %v", info.ID, err)
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
	}
	if f.job != nil {
		f.m.dropFollower(f.job)
	}
}

// replay sends the events of the spool and the job's progress, until the spool is sealed and
// all its events have been sent.
func (f *follower) replay(ctx context.Context) error {
	steps := uint64(0)
	for {
		v := f.spool.view()
		if err := f.catchUp(ctx, v.size); err != nil {
			return err
		}
		if v.sealed {
			return nil
		}
		if v.progress != nil && v.steps != steps {
			steps = v.steps
			if err := f.send(&wire.Event{Number: f.reader.number, Time: f.m.config.Now(), Progress: v.progress}); err != nil {
				return err
			}
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.m.ctx.Done():
			return wire.Error(codes.Unavailable, "the job manager stops")
		}
	}
}

// catchUp sends those events in the first size bytes of the spool that have not been sent yet.
func (f *follower) catchUp(ctx context.Context, size int64) error {
	if f.file == nil && size > 0 {
		var err error
		if f.file, err = f.m.root.Open(spoolName(f.id)); err != nil {
			return wire.Error(codes.Internal, "the events of job %s cannot be read: %v", f.id, err)
		}
		f.reader.file = f.file
	}
	for f.lost == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := f.reader.next(size, f.from)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			f.lost = err
			return nil
		}
		if e.State != nil {
			if e.State.Attempt > f.attempt { // which may have another parallelism
				f.planned, f.attempt = nil, e.State.Attempt
			}
			if e.State.Plan, err = f.plan(); err != nil {
				return err
			}
		}
		if err := f.send(e); err != nil {
			return err
		}
	}
	return nil
}

// plan returns the job's plan, or nil if the plan is not known yet.
func (f *follower) plan() (_ []byte, err error) {
	if f.planned == nil {
		if f.planned, err = f.m.history.plan(f.id); err != nil {
			return nil, wire.Error(codes.Internal, "%v", err)
		}
	}
	return f.planned, nil
}

// last sends the final state, as soon as the final state may be sent to followers. If earlier
// events were lost, it returns an error instead.
func (f *follower) last(ctx context.Context) error {
	if f.job != nil {
		select {
		case <-f.job.done:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.m.ctx.Done():
			return wire.Error(codes.Unavailable, "the job manager stops")
		}
	}
	info, past, err := f.m.ended(f.id, f.job)
	if err != nil {
		return err
	}
	if past.Whole && past.Events > 0 && f.gone {
		return wire.Error(codes.DataLoss, "what job %s sent to its client is not kept any more; superstep show says how it ended, and --keep-bytes of the job manager how much is kept", f.id)
	}
	if past.Whole && (f.lost != nil || f.reader.number != past.Events) {
		return wire.Error(codes.DataLoss, "the job manager has lost some of what job %s sent to its client: %d of %d events are there (%v)",
			f.id, f.reader.number, past.Events, f.lost)
	}
	number := f.reader.number + 1
	if f.from > number {
		return nil
	}
	if err := f.m.complete(&info); err != nil {
		return err
	}
	info.Checkpoints = nil
	return f.send(&wire.Event{Number: number, Time: info.Ended, State: &info})
}

// ended returns the final state of a job and the record of its spool. If j is not nil, it
// returns the final state and the record that j has.
func (m *Manager) ended(id wire.JobID, j *job) (wire.JobInfo, record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j != nil {
		return *j.final, j.past, nil
	}
	info, ok := m.core.Job(id)
	if !ok {
		return info, record{}, wire.Error(codes.NotFound, "job %s ended long ago, and is not kept any more", id)
	}
	return info, m.past[id], nil
}

// complete adds the plan and the outcomes, which are stored separately, to a job's state, if
// they fit into a message.
func (m *Manager) complete(info *wire.JobInfo) error {
	info.Outcomes = nil
	size := 0
	if info.State == wire.JobFinished {
		var err error
		if info.Outcomes, err = m.history.outcomes(info.ID); err != nil {
			return wire.Error(codes.Internal, "%v", err)
		}
	}
	for _, outcome := range info.Outcomes {
		size += len(outcome)
	}
	plan, err := m.history.plan(info.ID)
	if err != nil {
		return wire.Error(codes.Internal, "%v", err)
	}
	graph, err := m.history.graph(info.ID)
	if err != nil {
		return wire.Error(codes.Internal, "%v", err)
	}
	if size+len(plan) <= maxOutcomes {
		info.Plan = plan
		size += len(plan)
	}
	if size+len(graph) <= maxOutcomes {
		info.Graph = graph
	}
	return nil
}

// attach adds n, which is 1 or -1, to the number of open streams of the client to which job j
// is attached.
func (m *Manager) attach(j *job, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.attached += n
	j.unattached = 0
}

// cancelAbandoned cancels attached jobs whose client has been disconnected for longer than
// AttachGrace. It does not count time in which this process was stopped, because clients could
// not reconnect then. The caller holds mu.
func (m *Manager) cancelAbandoned() {
	passed := m.turns.Tick(m.clock())
	for _, j := range m.jobs {
		if !j.spec.Attached || j.abandoned || j.attached > 0 || j.final != nil {
			continue
		}
		if j.unattached += passed; j.unattached < m.config.AttachGrace {
			continue
		}
		j.abandoned = true
		m.decide(core.CancelAsked{ID: j.id, Reason: fmt.Sprintf("its client went away and was not back within %s", m.config.AttachGrace)})
	}
}
