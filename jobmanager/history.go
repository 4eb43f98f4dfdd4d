package jobmanager

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/superstep-ml/superstep/internal/wire"
)

// history keeps what is to be known of jobs after a restart: a record each, small
// enough that all of them are kept in memory too, and apart from it the plan and, once
// the job has finished, its outcomes, which are read when someone asks. The file is
// locked, so that a work directory has one job manager.
//
// Its methods are safe for concurrent use.
type history struct {
	db *bbolt.DB
}

// record is a job in the history.
type record struct {
	// Info is without plan and outcomes.
	Info wire.JobInfo `msgpack:"info"`
	// Whole says that the spool of a job that has ended was closed in order, and Events
	// how many it has. It is not where the job manager stopped before; of a job that
	// commits Events is how many were on disk before it did.
	Whole  bool   `msgpack:"whole"`
	Events uint64 `msgpack:"events"`
}

var (
	jobsBucket     = []byte("jobs")
	plansBucket    = []byte("plans")
	graphsBucket   = []byte("graphs") // that workers resolved
	outcomesBucket = []byte("outcomes")
	specsBucket    = []byte("specs") // of jobs that commit
	metaBucket     = []byte("meta")
	formatKey      = []byte("format")
)

// historyFormat is the version of the file; one of another version is not touched.
const historyFormat = "1"

const historyName = "history.db"

// lockWait bounds the wait for a job manager that is just ending.
const lockWait = time.Second

// openHistory opens the history in the work directory, and locks it.
func openHistory(root *os.Root) (*history, error) {
	options := *bbolt.DefaultOptions
	options.Timeout = lockWait
	options.OpenFile = root.OpenFile
	db, err := bbolt.Open(historyName, 0o600, &options)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("the work directory %s is that of another job manager, which runs; give this one another with --dir", root.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("open the history of jobs, %s in %s: %w", historyName, root.Name(), err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		if v := meta.Get(formatKey); v == nil {
			err = meta.Put(formatKey, []byte(historyFormat))
		} else if string(v) != historyFormat {
			err = fmt.Errorf("it has format %q, this build knows format %s: use the build that wrote it, or another directory", v, historyFormat)
		}
		for _, name := range [][]byte{jobsBucket, plansBucket, graphsBucket, outcomesBucket, specsBucket} {
			if err == nil {
				_, err = tx.CreateBucketIfNotExists(name)
			}
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the history of jobs, %s in %s: %w", historyName, root.Name(), err), db.Close())
	}
	return &history{db: db}, nil
}

func (h *history) close() error { return h.db.Close() }

// change is one write to the history; what is nil stays as it is.
type change struct {
	id       wire.JobID
	record   []byte // encoded
	plan     []byte
	graph    []byte
	outcomes []byte // encoded
	spec     []byte // encoded
	ended    bool   // the specification is of no use any more
	forget   bool   // everything of the job
}

// newChange puts a job on record as it stands, with its outcomes if it has any.
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

// write makes changes in order, all or none, and returns when they are on disk.
func (h *history) write(changes []change) error {
	err := h.db.Update(func(tx *bbolt.Tx) error {
		for i := range changes {
			if err := changes[i].apply(tx); err != nil {
				return fmt.Errorf("job %s: %w", changes[i].id, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the history of jobs: %w", err)
	}
	return nil
}

func (c *change) apply(tx *bbolt.Tx) error {
	key := []byte(c.id)
	for _, part := range []struct {
		bucket, data []byte
	}{{jobsBucket, c.record}, {plansBucket, c.plan}, {graphsBucket, c.graph}, {outcomesBucket, c.outcomes}, {specsBucket, c.spec}} {
		var err error
		switch b := tx.Bucket(part.bucket); {
		case c.forget, c.ended && len(part.data) == 0 && bytes.Equal(part.bucket, specsBucket):
			err = b.Delete(key)
		case part.data != nil:
			err = b.Put(key, part.data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all returns every record, in the order of IDs.
func (h *history) all() ([]record, error) {
	var all []record
	err := h.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(jobsBucket).ForEach(func(key, data []byte) error {
			var r record
			if err := wire.Unmarshal(data, &r); err != nil {
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

// plan returns a job's plan in JSON, nil if there is none.
func (h *history) plan(id wire.JobID) ([]byte, error) {
	data, err := h.read(plansBucket, id)
	if err != nil {
		return nil, fmt.Errorf("read the plan of job %s: %w", id, err)
	}
	return data, nil
}

// graph returns the graph in JSON that a worker resolved for a job, nil if none did.
func (h *history) graph(id wire.JobID) ([]byte, error) {
	data, err := h.read(graphsBucket, id)
	if err != nil {
		return nil, fmt.Errorf("read the graph of job %s: %w", id, err)
	}
	return data, nil
}

// read returns a copy of what a bucket has of a job, nil if that is nothing.
func (h *history) read(bucket []byte, id wire.JobID) (found []byte, err error) {
	err = h.db.View(func(tx *bbolt.Tx) error {
		if data := tx.Bucket(bucket).Get([]byte(id)); data != nil {
			found = append([]byte(nil), data...)
		}
		return nil
	})
	return found, err
}

// outcomes returns the outcomes of a job's workers, nil if there are none.
func (h *history) outcomes(id wire.JobID) (outcomes [][]byte, err error) {
	err = h.db.View(func(tx *bbolt.Tx) error {
		if data := tx.Bucket(outcomesBucket).Get([]byte(id)); data != nil {
			return msgpack.Unmarshal(data, &outcomes)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the outcomes of job %s: %w", id, err)
	}
	return outcomes, nil
}

// spec returns what was submitted as a job that commits, nil if it is not on record.
func (h *history) spec(id wire.JobID) (spec *wire.JobSpec, err error) {
	err = h.db.View(func(tx *bbolt.Tx) error {
		if data := tx.Bucket(specsBucket).Get([]byte(id)); data != nil {
			spec = new(wire.JobSpec)
			return wire.Unmarshal(data, spec)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the specification of job %s: %w", id, err)
	}
	return spec, nil
}
