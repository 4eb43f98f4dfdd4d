package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
	"github.com/superstep-ml/superstep/shared/sharding"
)

const (
	// maxName bounds the name of a job, in bytes.
	maxName = 200
	// maxKey bounds the key of a submission, in bytes.
	maxKey = 100
	// maxPlan bounds the size in bytes of a plan in JSON, as the plan is sent to followers with
	// every state.
	maxPlan = wire.MaxFrame / 2
)

// Submit accepts a job. If it returns no error, the job has been recorded. A request that is
// repeated with the same key is answered with the job of the first.
func (m *Manager) Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	spec := req.Spec
	if err := m.acceptable(&spec); err != nil {
		return nil, err
	}
	if len(req.Key) > maxKey {
		return nil, wire.Error(codes.InvalidArgument, "the key of a submission has at most %d bytes", maxKey)
	}
	slots, planned, err := 0, []byte(nil), error(nil)
	if len(spec.Graph) > 0 {
		if slots, planned, err = compile(&spec, spec.Graph, spec.Allowed()); err != nil {
			return nil, wire.Error(codes.InvalidArgument, "the job's graph does not compile: %v", err)
		}
	}
	if m.ctx.Err() != nil { // the work directory is closed
		return nil, wire.Error(codes.Unavailable, "the job manager stops")
	}
	if err := m.roomToWrite(); err != nil {
		return nil, err
	}
	if err := m.choose(&spec); err != nil {
		return nil, err
	}
	j, before, err := m.enter(spec, req.Key, slots, planned)
	if err != nil || before != "" {
		m.unpin(&spec)
	}
	switch {
	case err != nil:
		return nil, err
	case j == nil: // the job of the first request has ended
		return &wire.SubmitReply{Job: before}, nil
	}
	select {
	case <-j.recorded:
	case <-ctx.Done(): // the job continues; if it is attached, its client counts as disconnected
		return nil, ctx.Err()
	case <-m.ctx.Done():
		return nil, wire.Error(codes.Unavailable, "the job manager stops")
	}
	if j.unsaved != nil {
		m.step(core.CancelAsked{ID: j.id, Reason: "it could not be put on record"})
		return nil, wire.Error(codes.Internal, "the job manager could not put the job on record: %v", j.unsaved)
	}
	return &wire.SubmitReply{Job: j.id}, nil
}

// enter chooses the job's ID and passes the job to the core. If there is a job with the same key,
// enter returns its ID as before, and the job, which is nil if it has ended.
func (m *Manager) enter(spec wire.JobSpec, key string, slots int, planned []byte) (j *job, before wire.JobID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, "", wire.Error(codes.Unavailable, "the job manager stops")
	}
	if id, found := m.core.Submission(key); found {
		return m.jobs[id], id, nil
	}
	size := int64(len(spec.Args) + len(spec.Graph))
	if err := m.room(size); err != nil {
		return nil, "", err
	}
	now := m.config.Now()
	id := newID(spec.Name, now)
	for m.known(id) {
		id = newID(spec.Name, now)
	}
	j = newJob(m.root, id, spec, planned, &m.config)
	j.size = size
	m.jobs[id] = j
	m.decide(core.Submitted{ID: id, Spec: spec, Slots: slots, At: now, Key: key})
	return j, "", nil
}

// These constants bound the number of jobs that have not ended, and the total size in bytes of
// their arguments and graphs. Each of these jobs has open files, and its arguments and graph
// are in memory.
const (
	maxLive      = 1000
	maxLiveBytes = 512 << 20
)

// room returns an error if the bounds do not allow another job whose arguments and graph have
// the given size in bytes.
func (m *Manager) room(size int64) error {
	live := 0
	for _, j := range m.jobs {
		if j.final == nil {
			live++
			size += j.size
		}
	}
	return admit(live, size)
}

// admit returns an error if a new job exceeds the bounds. live is the number of other jobs that
// have not ended. size is the total size in bytes of all arguments and graphs, including those
// of the new job.
func admit(live int, size int64) error {
	switch {
	case live >= maxLive:
		return wire.Error(codes.ResourceExhausted, "%d jobs wait or run already, the most there may be: submit this one when some have ended", live)
	case size > maxLiveBytes:
		return wire.Error(codes.ResourceExhausted, "the arguments and graphs of the jobs that wait or run would take more than %d MiB: submit this one when some have ended", maxLiveBytes>>20)
	}
	return nil
}

func (m *Manager) known(id wire.JobID) bool {
	_, ok := m.core.Job(id)
	return ok || m.jobs[id] != nil
}

// acceptable checks a client's specification of a job, except for the graph.
func (m *Manager) acceptable(s *wire.JobSpec) error {
	if err := wire.CheckVersions(s.Version, "the client", "the job manager"); err != nil {
		return err
	}
	why := ""
	switch {
	case s.Name == "":
		why = "the job has no name: only a job made by engine.Define runs on a cluster"
	case len(s.Name) > maxName || !utf8.ValidString(s.Name) || hasControl(s.Name):
		why = fmt.Sprintf("the name of a job is text of at most %d bytes on one line", maxName)
	case sharding.ValidShards(s.Shards) != nil:
		why = fmt.Sprintf("%d shards: want a power of two between 1 and %d; set it with --shards", s.Shards, sharding.MaxShards)
	case s.Parallelism < 1:
		why = fmt.Sprintf("parallelism %d: want at least 1; set it with --parallelism", s.Parallelism)
	case s.Parallelism > s.Shards:
		why = fmt.Sprintf("parallelism %d is above the number of shards, %d, so that some subtasks would own none: lower --parallelism or raise --shards, which is part of the result", s.Parallelism, s.Shards)
	case s.MinParallelism < 0 || s.MinParallelism > s.Parallelism:
		why = fmt.Sprintf("parallelism %d to %d: want the smaller number first, and at least 1", s.MinParallelism, s.Parallelism)
	case wire.CheckPriority(s.Priority) != nil:
		why = wire.CheckPriority(s.Priority).Error()
	case s.WaitTimeout < 0 || s.Run.BatchRows < 0 || s.Run.Memory < 0:
		why = "a wait, a number of rows and a memory cannot be negative"
	case s.Run.IfExists != "" && s.Run.IfExists != "fail" && s.Run.IfExists != "replace":
		why = fmt.Sprintf("--if-exists %.40q: want fail or replace", s.Run.IfExists)
	case s.Run.Copies < wire.NoCopies || s.Run.Copies > wire.MaxCopies:
		why = fmt.Sprintf("copies: %d, where %d to %d are possible, 0 for the default and %d for none", s.Run.Copies, wire.NoCopies, wire.MaxCopies, wire.NoCopies)
	case s.Run.RequireCheckpoints && s.Run.NumberOfCopies() == 0 && (s.Run.Checkpoints == nil || s.Run.Checkpoints.Dir == ""):
		why = "checkpoint require: no state is saved that a queue could continue from: give checkpoint_dir, or at least 1 copy"
	case s.Run.Checkpoints != nil && s.Run.Checkpoints.Check() != nil:
		why = "checkpoints: " + s.Run.Checkpoints.Check().Error()
	case s.Restart.Check() != nil:
		why = s.Restart.Check().Error()
	case len(s.Build) > maxName || !utf8.ValidString(s.Build) || hasControl(s.Build):
		why = fmt.Sprintf("the version of the executable is text of at most %d bytes on one line", maxName)
	default:
		return nil
	}
	return wire.Error(codes.InvalidArgument, "%s", why)
}

func hasControl(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) { // this also refuses characters that change the writing direction of the text around them
			return true
		}
	}
	return false
}

// compile returns the plan of a job at the largest parallelism that is allowed, in JSON, and the
// number of slots that the job needs then. The graph must have the job's name, shards and seed. If
// several parallelisms are allowed, no node of the graph may depend on parallelism.
func compile(s *wire.JobSpec, data []byte, allowed wire.Parallelism) (slots int, planned []byte, err error) {
	// The graph comes from a user's program. The job manager must survive if the graph makes
	// the compiler panic.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the compiler failed on it: %v", r)
		}
	}()
	g, err := plan.DecodeGraph(data)
	if err != nil {
		return 0, nil, err
	}
	if g.Job != s.Name || g.Shards != s.Shards || g.Seed != s.Seed {
		return 0, nil, fmt.Errorf("it is of job %.100q with %d shards and seed %d, not of %q with %d and %d",
			g.Job, g.Shards, g.Seed, s.Name, s.Shards, s.Seed)
	}
	if n := plan.OneParallelism(g.Nodes); n != nil && allowed.Elastic() {
		return 0, nil, fmt.Errorf("it cannot run with %s subtasks, as %s binds it to one parallelism: give --parallelism one number", allowed, n.Title())
	}
	if err := plan.Unkept(g.Nodes); err != nil && s.Run.RequireCheckpoints {
		return 0, nil, fmt.Errorf("--checkpoint require: %w", err)
	}
	p, err := plan.Compile(g, allowed.Max)
	if err != nil {
		return 0, nil, err
	}
	planned, err = p.JSON()
	if err == nil && len(planned) > maxPlan {
		err = fmt.Errorf("the plan has %d bytes, the limit is %d: make a smaller graph, or lower --parallelism", len(planned), maxPlan)
	}
	return p.Slots, planned, err
}

// compileResolved compiles the graph that a worker has resolved.
func (m *Manager) compileResolved(e core.Compile) {
	m.mu.Lock()
	j := m.jobs[e.ID]
	m.mu.Unlock()
	if j == nil {
		return
	}
	slots, planned, err := compile(&j.spec, e.Graph, j.spec.Allowed())
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && j.final == nil {
		j.plan, j.graph = planned, e.Graph
	}
	m.decide(core.Compiled{ID: e.ID, Graph: e.Graph, Slots: slots, Err: err})
}

// artifactError returns an error of the artifact store with a gRPC code that fits it.
func artifactError(err error) error {
	code := codes.Internal
	switch {
	case errors.Is(err, errNoSuch):
		code = codes.NotFound
	case errors.Is(err, errTooLarge), errors.Is(err, errNoRoom):
		code = codes.ResourceExhausted
	case errors.Is(err, errWrong), errors.Is(err, errPlatform):
		code = codes.InvalidArgument
	}
	return wire.Error(code, "%v", err)
}
