package wire

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Checkpoints are the settings of a job's checkpoints.
type Checkpoints struct {
	// Dir is a directory that all machines of the cluster share, an absolute path, or a place in
	// an S3-compatible store such as s3://bucket/prefix.
	Dir string `msgpack:"dir"`
	// Every is the time between two checkpoints, and Supersteps the number of supersteps. MTBF is the
	// mean time between failures, from which, and from the cost of a checkpoint, the workers choose
	// the time between two. If all are 0, the workers use their default.
	Every      time.Duration `msgpack:"every,omitempty"`
	Supersteps int           `msgpack:"supersteps,omitempty"`
	MTBF       time.Duration `msgpack:"mtbf,omitempty"`
	FailAfter  time.Duration `msgpack:"fail_after,omitempty"` // 0 means never
	// Savepoint is the place of the savepoint from which the job continues, like Dir; "" if there
	// is none.
	Savepoint string `msgpack:"savepoint,omitempty"`
	// Resume says that the first attempt continues from a checkpoint, too.
	Resume bool `msgpack:"resume,omitempty"`
}

// DefaultMTBF is the mean time between failures if it is to be known and nobody gives one.
const DefaultMTBF = 24 * time.Hour

// Check returns an error for the first setting that cannot be used.
func (c *Checkpoints) Check() error {
	switch {
	case c.Dir == "" && (c.Savepoint == "" || c.Every > 0 || c.Supersteps > 0 || c.MTBF > 0 || c.FailAfter > 0 || c.Resume):
		return errors.New("there is no directory for them")
	case c.Dir != "" && !filepath.IsAbs(c.Dir) && !strings.Contains(c.Dir, "://"):
		return fmt.Errorf("the directory %q is not an absolute path", c.Dir)
	case c.Savepoint != "" && !filepath.IsAbs(c.Savepoint) && !strings.Contains(c.Savepoint, "://"):
		return fmt.Errorf("the savepoint %q is not an absolute path", c.Savepoint)
	case c.Every < 0 || c.Supersteps < 0 || c.MTBF < 0 || c.FailAfter < 0:
		return errors.New("a time or a number of supersteps is negative")
	case c.MTBF > 0 && (c.Every > 0 || c.Supersteps > 0):
		return errors.New("their interval is to be chosen, and is given as well: want one of them")
	case c.Every > 0 && c.Supersteps > 0:
		return fmt.Errorf("both every %v and every %d supersteps: want one of them", c.Every, c.Supersteps)
	}
	return nil
}

// SavepointRequest asks for a checkpoint of a running job now, and for a copy of it at a place of its
// own. The job must have checkpoints.
type SavepointRequest struct {
	Job JobID `msgpack:"job"` // the job's id, or a prefix of it as in ShowRequest
	// Place is a directory on the machine of worker 0, an absolute path, or a place in an
	// S3-compatible store. There must be no checkpoint.
	Place string `msgpack:"place"`
}

// CheckPlace returns an error if place is no place for a savepoint: neither an absolute path nor a place in an
// S3-compatible store.
func CheckPlace(place string) error {
	scheme, rest, remote := strings.Cut(place, "://")
	switch {
	case place == "":
		return errors.New("the place of the savepoint is empty: give an absolute path or s3://BUCKET/PREFIX")
	case remote && (scheme != "s3" || strings.Trim(rest, "/") == ""):
		return fmt.Errorf("the place %.100q of the savepoint is neither an absolute path nor s3://BUCKET/PREFIX", place)
	case !remote && !filepath.IsAbs(place):
		return fmt.Errorf("the place %.100q of the savepoint is not an absolute path: the worker that writes it has another working directory", place)
	}
	return nil
}

// SavepointReply says which checkpoint was copied. It is sent when the copy is complete.
type SavepointReply struct {
	Job        JobID  `msgpack:"job"`
	Checkpoint Origin `msgpack:"checkpoint"`
}

// Origin says from which checkpoint and savepoint an attempt continues. Worker 0 chooses it.
type Origin struct {
	// Generation is the number of the attempt in the store of the checkpoints.
	Generation int `msgpack:"generation"`
	// Number is the number of the checkpoint, and Savepoint that of the savepoint; 0 if there is none.
	Number    int `msgpack:"number,omitempty"`
	Savepoint int `msgpack:"savepoint,omitempty"`
	// Written is when the checkpoint was written, or the savepoint if there is no checkpoint.
	Written time.Time `msgpack:"written,omitzero"`
	// Queues are those queues that do not begin at superstep 1.
	Queues []OriginQueue `msgpack:"queues,omitempty"`
}

// OriginQueue is a queue in a checkpoint.
type OriginQueue struct {
	Name      string `msgpack:"name" json:"name"`
	Superstep int    `msgpack:"superstep" json:"superstep"`             // the last superstep that was done
	Ended     bool   `msgpack:"ended,omitempty" json:"ended,omitempty"` // no superstep follows
	// InMemory says that the state was in the memory of the job's workers, and not in a checkpoint. FromFile
	// says that a worker had read it from a file, which a worker of an earlier attempt had left on its task
	// manager.
	InMemory bool `msgpack:"in_memory,omitempty" json:"in_memory,omitempty"`
	FromFile bool `msgpack:"from_file,omitempty" json:"from_file,omitempty"`
}

// Begins reports whether all queues begin at superstep 1.
func (o *Origin) Begins() bool {
	return o.Number == 0 && o.Savepoint == 0 && !slices.ContainsFunc(o.Queues, func(q OriginQueue) bool { return q.InMemory })
}

// Beyond reports whether a queue that has not ended has done more supersteps in o than in from, which
// is nil if all queues begin at superstep 1. Otherwise an attempt that began with from and ends with o
// has gained nothing: it was reading its inputs, in its first superstep, or had ended its queues.
func (o *Origin) Beyond(from *Origin) bool {
	return slices.ContainsFunc(o.Queues, func(q OriginQueue) bool {
		before := 0
		if from != nil {
			if i := slices.IndexFunc(from.Queues, func(f OriginQueue) bool { return f.Name == q.Name }); i >= 0 {
				before = from.Queues[i].Superstep
			}
		}
		return !q.Ended && q.Superstep > before
	})
}

// String says when the checkpoint was written, and where each queue continues.
func (o *Origin) String() string {
	if o.Begins() {
		return "superstep 1"
	}
	where := make([]string, len(o.Queues))
	for i, q := range o.Queues {
		where[i] = fmt.Sprintf("queue %q continues after superstep %d", q.Name, q.Superstep)
		if q.Ended {
			where[i] = fmt.Sprintf("queue %q has done all of its %d supersteps", q.Name, q.Superstep)
		}
		switch {
		case q.FromFile:
			where[i] += " (from a file)"
		case q.InMemory:
			where[i] += " (from memory)"
		}
	}
	from := fmt.Sprintf("checkpoint %d", o.Number)
	switch {
	case o.Number == 0 && o.Savepoint == 0:
		return strings.Join(where, ", ")
	case o.Number == 0:
		from = fmt.Sprintf("savepoint %d", o.Savepoint)
	case o.Savepoint > 0:
		from += fmt.Sprintf(" and savepoint %d", o.Savepoint)
	}
	if len(where) == 0 {
		where = []string{"no queue had a state"}
	}
	return fmt.Sprintf("%s of %s: %s", from, o.Written.Local().Format(time.RFC3339), strings.Join(where, ", "))
}

// MaxCheckpointsTold is the largest number of checkpoints in Checkpointed.Newest.
const MaxCheckpointsTold = 10

// Checkpointed says what has become of the checkpoints of an attempt. Worker 0 sends it after
// writes. It has the whole of the attempt so far, so that a later one replaces an earlier one.
// The other workers send it after writes that failed, with nothing but Failing and Unwritten.
type Checkpointed struct {
	Written int     `msgpack:"written" json:"written"` // number of checkpoints
	Failed  int     `msgpack:"failed" json:"failed"`   // number of writes that failed
	Bytes   int64   `msgpack:"bytes" json:"bytes"`     // bytes that were written
	Seconds float64 `msgpack:"seconds" json:"seconds"` // seconds that all writes took, except for those that failed
	// Newest has the last checkpoints, oldest first.
	Newest []WrittenCheckpoint `msgpack:"newest,omitempty" json:"newest,omitempty"`
	// Failing describes the writes that failed since the last checkpoint. It is nil if none did.
	Failing *FailedCheckpoints `msgpack:"failing,omitempty" json:"failing,omitempty"`
	// Unwritten has the states of which the worker could not write its part, if it is not worker 0.
	Unwritten []OriginQueue `msgpack:"unwritten,omitempty" json:"-"`
}

// WrittenCheckpoint describes a checkpoint that was written.
type WrittenCheckpoint struct {
	Number  int       `msgpack:"number" json:"number"` // number of the checkpoint in its store
	Written time.Time `msgpack:"written" json:"written"`
	Seconds float64   `msgpack:"seconds" json:"seconds"` // seconds that it took to write
	Bytes   int64     `msgpack:"bytes" json:"bytes"`     // size, with the states that earlier checkpoints have written
	// Queues says how far each queue was. If there are very many, More is the number of the others.
	Queues []OriginQueue `msgpack:"queues" json:"queues"`
	More   int           `msgpack:"more,omitempty" json:"more,omitempty"`
}

// FailedCheckpoints describes writes that failed one after the other.
type FailedCheckpoints struct {
	Since time.Time `msgpack:"since" json:"since"` // time at which the first of them began
	Count int       `msgpack:"count" json:"count"`
	Error string    `msgpack:"error" json:"error"` // of the last of them
}

// JobCheckpoints says what has become of the checkpoints of all attempts of a job.
type JobCheckpoints struct {
	Dir          string `msgpack:"dir" json:"dir"` // Checkpoints.Dir of the job
	Checkpointed `msgpack:",inline"`
}
