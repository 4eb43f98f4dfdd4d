package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

type jobID = wire.JobID

// record is what a disk has of a job.
type record struct {
	Info         wire.JobInfo       `msgpack:"info"`
	Continuation *core.Continuation `msgpack:"continuation,omitempty"`
	Outcomes     [][]byte           `msgpack:"outcomes,omitempty"`
	Spec         *wire.JobSpec      `msgpack:"spec,omitempty"`
}

// disk is the disk of the job manager. It outlives its processes.
type disk struct {
	jobs    map[jobID][]byte // encoded records
	specs   map[jobID][]byte
	order   []jobID // in the order of their first record
	cordons map[string]wire.Cordon
	full    bool

	states   map[jobID]wire.JobState // of the records
	attempts map[jobID]int
}

// change is a change of what is on disk.
type change struct {
	job    jobID
	record *record       // nil if it stays
	spec   *wire.JobSpec // nil if it stays
	forget bool

	taskManager string
	cordon      *wire.Cordon
}

var errFull = errors.New("no space left on device")

// write makes changes durable, all or none.
func (d *disk) write(changes []change) error {
	if d.full {
		return errFull
	}
	for _, c := range changes {
		switch {
		case c.taskManager != "" && c.cordon == nil:
			delete(d.cordons, c.taskManager)
		case c.taskManager != "":
			d.cordons[c.taskManager] = *c.cordon
		case c.forget:
			delete(d.jobs, c.job)
			delete(d.specs, c.job)
			d.order = slices.DeleteFunc(d.order, func(id jobID) bool { return id == c.job })
		default:
			if d.jobs[c.job] == nil {
				d.order = append(d.order, c.job)
			}
			d.jobs[c.job] = encoded(c.record)
			d.states[c.job], d.attempts[c.job] = c.record.Info.State, c.record.Info.Attempt
			if c.spec != nil {
				d.specs[c.job] = encoded(c.spec)
			}
			if c.record.Info.State.Ended() {
				delete(d.specs, c.job)
			}
		}
	}
	return nil
}

func encoded(v any) []byte {
	data, err := wire.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func decoded[T any](data []byte) (v T) {
	if err := wire.Unmarshal(data, &v); err != nil {
		panic(err)
	}
	return v
}

// config returns the configuration of a core that goes on with what is on disk, as a job manager that
// starts makes it of its history.
func (d *disk) config(c core.Config) core.Config {
	c.Resume, c.Cordons = make(map[jobID]core.Resumable), make(map[string]wire.Cordon)
	for name, cordon := range d.cordons {
		c.Cordons[name] = cordon
	}
	for _, id := range d.order {
		r := decoded[record](d.jobs[id])
		c.History = append(c.History, r.Info)
		if r.Info.State.Ended() || d.specs[id] == nil {
			continue
		}
		k := core.Continuation{}
		if r.Continuation != nil {
			k = *r.Continuation
		}
		if core.TakesUp(r.Info, k) {
			c.Resume[id] = core.Resumable{Spec: decoded[wire.JobSpec](d.specs[id]), Continuation: k, Outcomes: r.Outcomes}
		}
	}
	return c
}

// recorder writes changes in order, those that wait together in one transaction. It is what the
// recorder of package jobmanager is, without its goroutine.
type recorder struct {
	p       *process
	disk    *disk
	queue   []recording
	failed  []recording // to be written again
	writing bool
}

// recording has an optional change, and what happens when it is on disk (kept), or when it is, or
// could not be written at the first attempt (then).
type recording struct {
	change *change
	then   func(error)
	kept   func()
}

func (r *recorder) put(e recording) {
	r.queue = append(r.queue, e)
	r.begin()
}

func (r *recorder) begin() {
	if !r.writing {
		r.writing = true
		w := r.p.w
		r.p.after(w.between(100*time.Microsecond, 4*time.Millisecond), func() {
			batch := r.queue
			r.queue = nil
			took := w.between(500*time.Microsecond, 10*time.Millisecond)
			if w.chance(30) {
				took += w.between(0, 800*time.Millisecond)
			}
			r.p.after(took, func() { r.write(batch) })
		})
	}
}

func (r *recorder) write(batch []recording) {
	r.writing = false
	var changes []change
	for _, list := range [][]recording{r.failed, batch} {
		for _, e := range list {
			if e.change != nil {
				changes = append(changes, *e.change)
			}
		}
	}
	var err error
	if len(changes) > 0 {
		err = r.disk.write(changes)
	}
	if err == nil {
		done := r.failed
		r.failed = nil
		for _, e := range done {
			e.written()
		}
	}
	for _, e := range batch {
		switch {
		case e.then != nil && e.change == nil:
			e.then(nil)
		case e.then != nil:
			e.then(err)
		case err != nil:
			r.failed = append(r.failed, e)
		default:
			e.written()
		}
	}
	switch {
	case len(r.queue) > 0:
		r.begin()
	case len(r.failed) > 0:
		r.p.after(time.Second, r.begin)
	}
}

func (e *recording) written() {
	if e.kept != nil {
		e.kept()
	}
}
