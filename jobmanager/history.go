package jobmanager

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/vmihailenco/msgpack/v5"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// history stores the data of jobs that is needed after a restart, and the cordons of task
// managers (cordon.go). Each job has a record.
// Records are small, and all of them are also in memory. The plan of a job and, once the job
// has finished, its outcomes are stored separately and read on demand. openHistory locks the
// file, so that only one job manager can use a work directory.
//
// Its methods are safe for concurrent use.
type history struct {
	db *bbolt.DB
	// damaged is the name to which a damaged file was moved, or "" if the file was not damaged.
	// lost has those jobs with damaged records whose IDs are known, and lostCordons the names of
	// the task managers with damaged cordons.
	damaged     string
	lost        []wire.JobID
	lostCordons []string
	behind      bool // the file may not have its last change
}

// record is the record of one job in the history.
type record struct {
	// Info has no plan and no outcomes.
	Info wire.JobInfo `msgpack:"info"`
	// Continuation is nil if the job has ended.
	Continuation *core.Continuation `msgpack:"continuation,omitempty"`
	// Whole is true if the spool of an ended job was sealed, and false if the job manager
	// stopped before that. Events is the number of events in the spool. For a job that has not
	// ended, Events is the number of events that were on disk when it began to commit or when
	// the job manager last confirmed rows or text to a worker.
	Whole  bool   `msgpack:"whole"`
	Events uint64 `msgpack:"events"`
	// Doubt is not empty if a later record of the job may be lost because the history was
	// damaged. It is the explanation that users see.
	Doubt string `msgpack:"doubt,omitempty"`
}

var (
	jobsBucket     = []byte("jobs")
	plansBucket    = []byte("plans")
	graphsBucket   = []byte("graphs") // graphs that workers resolved
	outcomesBucket = []byte("outcomes")
	specsBucket    = []byte("specs")   // specifications of jobs that have not ended
	cordonsBucket  = []byte("cordons") // cordons by the names of task managers
	metaBucket     = []byte("meta")
	formatKey      = []byte("format")
	contentSumKey  = []byte("census")
)

// dataBuckets has all buckets except metaBucket.
var dataBuckets = [][]byte{jobsBucket, plansBucket, graphsBucket, outcomesBucket, specsBucket, cordonsBucket}

// historyFormat is the version of the file format. A file of any other version is not modified.
const historyFormat = "2"

const historyName = "history.db"

// lockWait bounds the wait for the lock. A job manager that is about to end may still hold it.
const lockWait = time.Second

// openHistory opens the history in the work directory, and locks it. A damaged file is renamed,
// and its readable values are copied to a new file (see salvage).
func openHistory(root *os.Root, log hclog.Logger) (*history, error) {
	h := &history{}
	if err := h.inspect(root, log); err != nil {
		return nil, err
	}
	options := *bbolt.DefaultOptions
	options.Timeout = lockWait
	options.OpenFile = root.OpenFile
	err := guarded(func() (err error) {
		h.db, err = bbolt.Open(historyName, 0o600, &options)
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, errOccupied(root)
	}
	if err != nil {
		return nil, fmt.Errorf("open the history of jobs, %s in %s: %w", historyName, root.Name(), err)
	}
	if err := h.update(func(tx *bbolt.Tx) error { return prepare(tx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open the history of jobs, %s in %s: %w", historyName, root.Name(), err), h.db.Close())
	}
	return h, nil
}

func errOccupied(root *os.Root) error {
	return fmt.Errorf("the work directory %s is that of another job manager, which runs; give this one another with --dir", root.Name())
}

// prepare creates the buckets of a new file. It returns an error if an existing file has
// another format.
func prepare(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists(metaBucket)
	if err != nil {
		return err
	}
	for _, name := range dataBuckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	switch format := string(meta.Get(formatKey)); format {
	case historyFormat:
		return nil
	case "":
		return finish(tx, contentSum{})
	default:
		return fmt.Errorf("it has format %q, this build knows format %s: use the build that wrote it, or another directory", format, historyFormat)
	}
}

// finish writes the format and the contentSum. Every complete file has both.
func finish(tx *bbolt.Tx, c contentSum) error {
	meta := tx.Bucket(metaBucket)
	return errors.Join(meta.Put(formatKey, []byte(historyFormat)), meta.Put(contentSumKey, seal(metaBucket, contentSumKey, c.encode())))
}

// guarded calls f, which reads the memory-mapped pages of the file. If a page is damaged or the
// file is truncated, f causes a memory fault or a panic, which would end the process; guarded
// returns it as an error.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s was damaged while it was in use (%v): restart the job manager, which keeps what can be read", historyName, r)
		}
	}()
	return f()
}

func (h *history) update(f func(tx *bbolt.Tx) error) error {
	return guarded(func() error { return h.db.Update(f) })
}

func (h *history) view(f func(tx *bbolt.Tx) error) error {
	return guarded(func() error { return h.db.View(f) })
}

func (h *history) close() error { return h.db.Close() }

// change describes a change of one job's data in the history. Values that are nil are not
// changed. If taskManager is set, it is instead a change of the cordon of that name; if cordon is
// nil then, the cordon is removed.
type change struct {
	taskManager string
	cordon      []byte // encoded cordon

	id       wire.JobID
	record   []byte // encoded record
	plan     []byte
	graph    []byte
	outcomes []byte // encoded outcomes
	spec     []byte // encoded specification
	ended    bool   // the specification is removed, as it is not needed any more
	forget   bool   // all data of the job is removed
}

// newChange returns the change that writes record r and the outcomes in r.Info, if there are
// any.
func newChange(r record) (change, error) {
	c := change{id: r.Info.ID, ended: r.Info.State.Ended()}
	var err error
	if r.Info.Outcomes != nil {
		if c.outcomes, err = msgpack.Marshal(r.Info.Outcomes); err != nil {
			return c, fmt.Errorf("encode the outcomes of job %s: %w", c.id, err)
		}
	}
	r.Info.Plan, r.Info.Graph, r.Info.Outcomes = nil, nil, nil
	if c.record, err = wire.Marshal(&r); err != nil {
		return c, fmt.Errorf("encode the record of job %s: %w", c.id, err)
	}
	return c, nil
}

// write applies changes in order in one transaction, and returns when they are on disk.
func (h *history) write(changes []change) error {
	err := h.update(func(tx *bbolt.Tx) error {
		stored, err := unseal(metaBucket, contentSumKey, tx.Bucket(metaBucket).Get(contentSumKey))
		if err != nil {
			return err
		}
		c, err := decodeContentSum(stored)
		if err != nil {
			return err
		}
		for i := range changes {
			if changes[i].taskManager != "" {
				if err := changes[i].applyCordon(tx, &c); err != nil {
					return fmt.Errorf("the cordon of task manager %s: %w", changes[i].taskManager, err)
				}
			} else if err := changes[i].apply(tx, &c); err != nil {
				return fmt.Errorf("job %s: %w", changes[i].id, err)
			}
		}
		return finish(tx, c)
	})
	if err != nil {
		return fmt.Errorf("write the history of jobs: %w", err)
	}
	return nil
}

func (c *change) apply(tx *bbolt.Tx, all *contentSum) error {
	key := []byte(c.id)
	for _, part := range []struct {
		bucket, data []byte
	}{{jobsBucket, c.record}, {plansBucket, c.plan}, {graphsBucket, c.graph}, {outcomesBucket, c.outcomes}, {specsBucket, c.spec}} {
		var err error
		switch b := tx.Bucket(part.bucket); {
		case c.forget, c.ended && len(part.data) == 0 && bytes.Equal(part.bucket, specsBucket):
			all.leave(b.Get(key))
			err = b.Delete(key)
		case part.data != nil:
			sealed := seal(part.bucket, key, part.data)
			all.leave(b.Get(key))
			all.enter(sealed)
			err = b.Put(key, sealed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all returns all records, sorted by job ID.
func (h *history) all() ([]record, error) {
	var all []record
	err := h.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(jobsBucket).ForEach(func(key, sealed []byte) error {
			var r record
			data, err := unseal(jobsBucket, key, sealed)
			if err == nil {
				err = wire.Unmarshal(data, &r)
			}
			if err != nil {
				return fmt.Errorf("job %s: %w", key, err)
			}
			all = append(all, r)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of jobs: %w", err)
	}
	return all, nil
}

// plan returns a job's plan in JSON, or nil if there is none.
func (h *history) plan(id wire.JobID) ([]byte, error) {
	data, err := h.read(plansBucket, id)
	if err != nil {
		return nil, fmt.Errorf("read the plan of job %s: %w", id, err)
	}
	return data, nil
}

// graph returns the graph, in JSON, that a worker resolved for a job, or nil if no worker has
// resolved a graph for it.
func (h *history) graph(id wire.JobID) ([]byte, error) {
	data, err := h.read(graphsBucket, id)
	if err != nil {
		return nil, fmt.Errorf("read the graph of job %s: %w", id, err)
	}
	return data, nil
}

// read returns a copy of a job's value in a bucket, or nil if there is none.
func (h *history) read(bucket []byte, id wire.JobID) (found []byte, err error) {
	err = h.view(func(tx *bbolt.Tx) error {
		sealed := tx.Bucket(bucket).Get([]byte(id))
		if sealed == nil {
			return nil
		}
		data, err := unseal(bucket, []byte(id), sealed)
		found = append([]byte(nil), data...)
		return err
	})
	return found, err
}

// outcomes returns the outcomes of a job's workers, or nil if there are none.
func (h *history) outcomes(id wire.JobID) (outcomes [][]byte, err error) {
	data, err := h.read(outcomesBucket, id)
	if err == nil && data != nil {
		err = msgpack.Unmarshal(data, &outcomes)
	}
	if err != nil {
		return nil, fmt.Errorf("read the outcomes of job %s: %w", id, err)
	}
	return outcomes, nil
}

// spec returns the recorded specification of a job that has not ended, or nil if there is none.
func (h *history) spec(id wire.JobID) (spec *wire.JobSpec, err error) {
	data, err := h.read(specsBucket, id)
	if err == nil && data != nil {
		spec = new(wire.JobSpec)
		err = wire.Unmarshal(data, spec)
	}
	if err != nil {
		return nil, fmt.Errorf("read the specification of job %s: %w", id, err)
	}
	return spec, nil
}
