package jobmanager

import (
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
	// Info is without plan, outcomes and progress.
	Info wire.JobInfo `msgpack:"info"`
	// Events is how many events the spool of a job has that has ended.
	Events uint64 `msgpack:"events"`
}

var (
	jobsBucket     = []byte("jobs")
	plansBucket    = []byte("plans")
	outcomesBucket = []byte("outcomes")
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
		for _, name := range [][]byte{jobsBucket, plansBucket, outcomesBucket} {
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
	record   *record
	plan     []byte
	outcomes [][]byte
	forget   bool // everything of the job
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
	if c.forget {
		for _, name := range [][]byte{jobsBucket, plansBucket, outcomesBucket} {
			if err := tx.Bucket(name).Delete(key); err != nil {
				return err
			}
		}
		return nil
	}
	if c.record != nil {
		data, err := wire.Marshal(c.record)
		if err != nil {
			return err
		}
		if err := tx.Bucket(jobsBucket).Put(key, data); err != nil {
			return err
		}
	}
	if c.plan != nil {
		if err := tx.Bucket(plansBucket).Put(key, c.plan); err != nil {
			return err
		}
	}
	if c.outcomes == nil {
		return nil
	}
	data, err := msgpack.Marshal(c.outcomes)
	if err != nil {
		return err
	}
	return tx.Bucket(outcomesBucket).Put(key, data)
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
func (h *history) plan(id wire.JobID) (plan []byte, err error) {
	err = h.db.View(func(tx *bbolt.Tx) error {
		if data := tx.Bucket(plansBucket).Get([]byte(id)); data != nil {
			plan = append([]byte(nil), data...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the plan of job %s: %w", id, err)
	}
	return plan, nil
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
