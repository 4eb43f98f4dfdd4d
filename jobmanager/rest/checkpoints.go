package rest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager"
)

// Checkpoints says what a job has written into the store of its checkpoints.
type Checkpoints struct {
	Dir     string              `json:"dir" doc:"where, a directory or s3://BUCKET/PREFIX"`
	Written int                 `json:"written" doc:"number of checkpoints, of all attempts"`
	Failed  int                 `json:"failed" doc:"number of writes that failed"`
	Bytes   int64               `json:"bytes" doc:"that were written"`
	Seconds float64             `json:"seconds" doc:"that all writes took, except for those that failed"`
	Newest  []WrittenCheckpoint `json:"newest" doc:"the last of them, oldest first; the two newest are kept until the job has finished"`
	Failing *FailedCheckpoints  `json:"failing,omitempty" doc:"the writes that failed since the last checkpoint; absent if none did"`
}

// WrittenCheckpoint describes a checkpoint of a job.
type WrittenCheckpoint struct {
	Number  int               `json:"number"`
	Written time.Time         `json:"written" doc:"by the clock of the worker"`
	Seconds float64           `json:"seconds" doc:"that it took to write"`
	Bytes   int64             `json:"bytes" doc:"its size"`
	Queues  []CheckpointQueue `json:"queues"`
	More    int               `json:"more,omitempty" doc:"number of further queues, which are not listed"`
}

// CheckpointQueue is a queue in a checkpoint.
type CheckpointQueue struct {
	Name      string `json:"name"`
	Superstep int    `json:"superstep" doc:"the last one that was done"`
	Ended     bool   `json:"ended" doc:"whether it was the last of all"`
}

// FailedCheckpoints describes writes that failed one after the other.
type FailedCheckpoints struct {
	Since time.Time `json:"since" doc:"when the first of them began, by the clock of the worker"`
	Count int       `json:"count"`
	Error string    `json:"error" doc:"of the last of them"`
}

func checkpointsOf(c *wire.JobCheckpoints) Checkpoints {
	out := Checkpoints{Dir: c.Dir, Written: c.Written, Failed: c.Failed, Bytes: c.Bytes, Seconds: c.Seconds, Newest: make([]WrittenCheckpoint, len(c.Newest))}
	for i, w := range c.Newest {
		out.Newest[i] = WrittenCheckpoint{Number: w.Number, Written: w.Written, Seconds: w.Seconds, Bytes: w.Bytes, Queues: make([]CheckpointQueue, len(w.Queues)), More: w.More}
		for k, q := range w.Queues {
			out.Newest[i].Queues[k] = CheckpointQueue{q.Name, q.Superstep, q.Ended}
		}
	}
	if f := c.Failing; f != nil {
		failing := FailedCheckpoints(*f)
		out.Failing = &failing
	}
	return out
}

func (s *Server) checkpoints(w http.ResponseWriter, r *http.Request) error {
	info, err := s.job(r)
	if err != nil {
		return err
	}
	if info.Checkpoints == nil {
		return &problem{code: http.StatusNotFound, text: fmt.Sprintf("job %s has no checkpoints", info.ID), hint: "submit the job with checkpoint_dir"}
	}
	return s.sendJSON(w, http.StatusOK, checkpointsOf(info.Checkpoints))
}

var (
	descCheckpoints       = newDesc("checkpoints_total", "Checkpoints that jobs have written.")
	descFailedCheckpoints = newDesc("checkpoint_failures_total", "Writes of checkpoints that failed.")
	descCheckpointBytes   = newDesc("checkpoint_bytes_total", "Bytes that jobs have written as checkpoints.")
	descCheckpointSeconds = newDesc("checkpoint_seconds_total", "Seconds that writes of checkpoints took, except for those that failed.")
	descCheckpointAge     = newDesc("job_checkpoint_age_seconds", "Seconds since the newest checkpoint of a running job with checkpoints, or since it began to run.", "job")
	descRestarts          = newDesc("job_restarts_total", "Restarts of jobs after the loss of an attempt that was not announced.")
	descMoves             = newDesc("job_moves_total", "Attempts of jobs that ended so that the jobs go on with other slots: they were scaled, or a task manager was drained or left.")
	descLost              = newDesc("attempts_lost_total", "Attempts of jobs that were lost, by the kind of the cause.", "kind")
	descRecovery          = newDesc("recovery_seconds", "Seconds from the detection of the loss of an attempt to the end of a phase of the recovery: agreed, placed, connected, moved, resumed.", "phase")
)

// restartDescs has the metrics of checkpoints, restarts and lost attempts.
var restartDescs = []*prometheus.Desc{descCheckpoints, descFailedCheckpoints, descCheckpointBytes, descCheckpointSeconds, descCheckpointAge, descRestarts, descMoves, descLost, descRecovery}

// collectRecoveries collects the durations of the phases of recoveries.
func collectRecoveries(s *jobmanager.Stats, out chan<- prometheus.Metric) {
	for p := range wire.RecoveryPhase(wire.RecoveryPhases) {
		d := &s.Recovery[p]
		out <- prometheus.MustNewConstHistogram(descRecovery, d.Count, d.Seconds, d.UpTo(), p.String())
	}
}

// collectRestarts collects the metrics of checkpoints, restarts and lost attempts.
func collectRestarts(s *jobmanager.Stats, gauge, counter func(*prometheus.Desc, float64, ...string)) {
	counter(descCheckpoints, float64(s.Checkpoints))
	counter(descFailedCheckpoints, float64(s.FailedCheckpoints))
	counter(descCheckpointBytes, float64(s.CheckpointBytes))
	counter(descCheckpointSeconds, s.CheckpointSeconds)
	counter(descRestarts, float64(s.Restarts))
	counter(descMoves, float64(s.Moves))
	for kind, name := range failureKinds {
		counter(descLost, float64(s.Lost[wire.FailureKind(kind)]), name)
	}
	for _, id := range slices.Sorted(maps.Keys(s.CheckpointAges)) {
		gauge(descCheckpointAge, s.CheckpointAges[id].Seconds(), string(id))
	}
}
