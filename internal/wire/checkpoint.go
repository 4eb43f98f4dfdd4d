package wire

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Checkpoints are the settings of a job's checkpoints.
type Checkpoints struct {
	// Dir is a directory that all machines of the cluster share, an absolute path, or a place in
	// an S3-compatible store such as s3://bucket/prefix.
	Dir string `msgpack:"dir"`
	// Every is the time between two checkpoints, and Supersteps the number of supersteps. If both
	// are 0, the workers use their default.
	Every      time.Duration `msgpack:"every,omitempty"`
	Supersteps int           `msgpack:"supersteps,omitempty"`
	FailAfter  time.Duration `msgpack:"fail_after,omitempty"` // 0 means never
	// Savepoint is the place of the savepoint from which the job continues, like Dir; "" if there
	// is none.
	Savepoint string `msgpack:"savepoint,omitempty"`
	// Resume says that the first attempt continues from a checkpoint, too.
	Resume bool `msgpack:"resume,omitempty"`
}

// Check returns an error for the first setting that cannot be used.
func (c *Checkpoints) Check() error {
	switch {
	case c.Dir == "" && (c.Savepoint == "" || c.Every > 0 || c.Supersteps > 0 || c.FailAfter > 0 || c.Resume):
		return errors.New("there is no directory for them")
	case c.Dir != "" && !filepath.IsAbs(c.Dir) && !strings.Contains(c.Dir, "://"):
		return fmt.Errorf("the directory %q is not an absolute path", c.Dir)
	case c.Savepoint != "" && !filepath.IsAbs(c.Savepoint) && !strings.Contains(c.Savepoint, "://"):
		return fmt.Errorf("the savepoint %q is not an absolute path", c.Savepoint)
	case c.Every < 0 || c.Supersteps < 0 || c.FailAfter < 0:
		return errors.New("a time or a number of supersteps is negative")
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
	Name      string `msgpack:"name"`
	Superstep int    `msgpack:"superstep"`       // the last superstep that was done
	Ended     bool   `msgpack:"ended,omitempty"` // no superstep follows
}

// Begins reports whether all queues begin at superstep 1.
func (o *Origin) Begins() bool { return o.Number == 0 && o.Savepoint == 0 }

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
	}
	from := fmt.Sprintf("checkpoint %d", o.Number)
	switch {
	case o.Number == 0:
		from = fmt.Sprintf("savepoint %d", o.Savepoint)
	case o.Savepoint > 0:
		from += fmt.Sprintf(" and savepoint %d", o.Savepoint)
	}
	return fmt.Sprintf("%s of %s: %s", from, o.Written.Local().Format("2006-01-02 15:04:05"), strings.Join(where, ", "))
}
