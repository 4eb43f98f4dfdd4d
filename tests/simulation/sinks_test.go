package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// sinks are the outputs of a job, in a file system that all machines share. Attempts write parts of their
// own. A commit assembles the parts of one attempt and makes them visible by one rename.
type sinks struct {
	w       *world
	owner   int // the latest attempt that has begun
	staging map[int]map[int]part
	lock    *workerProcess // who commits
	visible []uint64
	from    int  // attempt of visible
	receipt bool // the commit is complete
	commits int
}

// part is what one worker has written, and what it reports of that.
type part struct {
	Attempt, Worker, Lo int
	Values              []uint64
	Replicated          uint64
}

// io waits for an operation on files, some of which take long.
func (s *sinks) io(f *fiber) error {
	d := s.w.between(200*time.Microsecond, 8*time.Millisecond)
	if s.w.chance(12) {
		d += s.w.between(0, 2500*time.Millisecond)
	}
	return f.sleep(d)
}

// prepare begins the outputs of an attempt, in worker 0, and removes what earlier attempts have left.
func (s *sinks) prepare(f *fiber, k *worker) error {
	if err := s.io(f); err != nil {
		return err
	}
	if s.owner > k.d.Attempt {
		return fmt.Errorf("a later attempt writes these outputs")
	}
	s.owner = k.d.Attempt
	for attempt := range s.staging {
		if attempt < s.owner {
			delete(s.staging, attempt)
		}
	}
	return nil
}

// write writes the part of a worker.
func (s *sinks) write(f *fiber, k *worker, last *queueState) (part, error) {
	k.c.w.point("part", k.c)
	p := part{k.d.Attempt, k.d.Worker, last.lo, slices.Clone(last.shards), last.replicated}
	if err := s.io(f); err != nil {
		return p, err
	}
	if s.staging[p.Attempt] == nil {
		s.staging[p.Attempt] = make(map[int]part)
	}
	s.staging[p.Attempt][p.Worker] = p
	return p, s.io(f)
}

// abort removes the part of a worker.
func (s *sinks) abort(f *fiber, k *worker) error {
	if k.d.Mode != wire.RunMode {
		return f.cause
	}
	err := s.io(f)
	if err == nil {
		delete(s.staging[k.d.Attempt], k.d.Worker)
	}
	return err
}

// lockTime is how long a commit waits for another one that holds the lock.
const lockTime = 10 * time.Second

// commit makes the outputs visible, or finds that an earlier commit has done that.
func (s *sinks) commit(f *fiber, k *worker) error {
	w := s.w
	for began := w.now; s.lock != nil && s.lock != k.c && !s.lock.dead; {
		if w.now-began >= lockTime {
			k.job.lockedOut = true
			return fmt.Errorf("another process holds the lock of the outputs")
		}
		if err := f.sleep(100 * time.Millisecond); err != nil {
			return err
		}
	}
	s.lock = k.c
	if k.d.Mode == wire.CommitMode {
		w.marks["a commit is finished by another worker"]++
	}
	w.point("commit", k.c)
	if err := s.io(f); err != nil || s.receipt {
		return err
	}
	all, err := s.parts(k)
	if err != nil {
		// When a job was given up, its other workers have removed their parts.
		if on := w.manager.disk.states[k.d.Job]; on == wire.JobCommitting || on == wire.JobFinished {
			w.violated("worker %s cannot commit: %v", k.name(), err)
		}
		return err
	}
	if err := s.io(f); err != nil {
		return err
	}
	if s.visible == nil || s.from != all[0].Attempt {
		s.appear(k, all)
	}
	w.point("renamed", k.c)
	if err := s.io(f); err != nil {
		return err
	}
	s.receipt = true
	clear(s.staging)
	return s.io(f)
}

// parts returns the parts that the commit joins, in the order of the workers.
func (s *sinks) parts(k *worker) (all []part, err error) {
	for i, data := range k.commit.Outcomes {
		if len(data) == 0 {
			break // of a worker without slots, as all that follow
		}
		p := decoded[part](data)
		if i > 0 && p.Attempt != all[0].Attempt {
			return nil, fmt.Errorf("it was told to join parts of the attempts %d and %d", all[0].Attempt, p.Attempt)
		}
		there, ok := s.staging[p.Attempt][p.Worker]
		if p.Worker != i || s.visible == nil && (!ok || there.Lo != p.Lo || !slices.Equal(there.Values, p.Values)) {
			return nil, fmt.Errorf("the part of worker %d in attempt %d is not there", i, p.Attempt)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it was told no outcomes")
	}
	return all, nil
}

// appear makes the outputs visible.
func (s *sinks) appear(k *worker, all []part) {
	w := s.w
	s.commits++
	w.say("the outputs of job %s appear (attempt %d, by worker %s)", k.d.Job, all[0].Attempt, k.name())
	if s.commits > 1 {
		w.violated("the outputs of job %s appeared twice, of the attempts %d and %d", k.d.Job, s.from, all[0].Attempt)
	}
	if s.owner > all[0].Attempt {
		w.violated("attempt %d of job %s commits after attempt %d had begun", all[0].Attempt, k.d.Job, s.owner)
	}
	switch on := w.manager.disk.states[k.d.Job]; on {
	case wire.JobCommitting:
	case wire.JobCancelling, wire.JobCancelled, wire.JobFailing, wire.JobFailed:
		// A commit that has begun is not undone, and the job says that its outputs may be visible.
		w.marks["a commit ends after its job was given up"]++
	default:
		w.violated("job %s commits, and is %s on record", k.d.Job, on)
	}
	s.visible, s.from = []uint64{}, all[0].Attempt
	for _, p := range all {
		s.visible = append(s.visible, p.Values...)
	}
	s.visible = append(s.visible, all[0].Replicated)
	if !slices.Equal(s.visible, k.job.wants()) {
		w.violated("the outputs of job %s differ from those of the undisturbed run", k.d.Job)
	}
}
