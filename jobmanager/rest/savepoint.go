package rest

import (
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Savepoint says where a savepoint is made.
type Savepoint struct {
	Place string `json:"place" doc:"where: an absolute path on the machine of worker 0, or s3://BUCKET/PREFIX, without checkpoints so far"`
}

// SavepointMade is the answer to a request for a savepoint.
type SavepointMade struct {
	ID     string       `json:"id" doc:"of the job"`
	Place  string       `json:"place"`
	Number int          `json:"number" doc:"of the checkpoint of which it is a copy"`
	Queues []SavedQueue `json:"queues" doc:"those that had a state"`
}

// SavedQueue is the state of a queue in a savepoint.
type SavedQueue struct {
	Name      string `json:"name"`
	Superstep int    `json:"superstep" doc:"the last that was done"`
	Ended     bool   `json:"ended" doc:"whether none follows"`
}

// Draining says why a task manager is drained, and for how long jobs may stay.
type Draining struct {
	Reason string `json:"reason,omitempty" doc:"for people; one line of at most 500 bytes"`
	Within string `json:"within,omitempty" doc:"time after which jobs leave that could not be saved, such as 30s; default: never"`
}

// Drained is the answer to a request to drain a task manager.
type Drained struct {
	Cordoned Cordoned `json:"cordoned"`
	Leave    []string `json:"leave" doc:"jobs that are saved and go on elsewhere"`
	Stay     []string `json:"stay" doc:"jobs that would lose their state, which stay until they have ended or the time is over"`
}

func (s *Server) savepoint(w http.ResponseWriter, r *http.Request) error {
	var body Savepoint
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if err := wire.CheckPlace(body.Place); err != nil {
		return badRequest("give a path that begins at the root, or s3://BUCKET/PREFIX", "%v", err)
	}
	reply, err := s.config.Manager.Savepoint(r.Context(), &wire.SavepointRequest{Job: wire.JobID(r.PathValue("id")), Place: body.Place})
	if err != nil {
		return err
	}
	made := SavepointMade{ID: string(reply.Job), Place: body.Place, Number: reply.Checkpoint.Number, Queues: []SavedQueue{}}
	for _, q := range reply.Checkpoint.Queues {
		made.Queues = append(made.Queues, SavedQueue{q.Name, q.Superstep, q.Ended})
	}
	return s.sendJSON(w, http.StatusOK, made)
}

func (s *Server) drain(w http.ResponseWriter, r *http.Request) error {
	var body Draining
	if r.ContentLength != 0 {
		if err := readJSON(r, &body); err != nil {
			return err
		}
	}
	if !wire.CheckReason(body.Reason) {
		return badRequest("shorten it", "the reason is not one line of at most %d bytes", wire.MaxReason)
	}
	var within time.Duration
	if body.Within != "" {
		var err error
		if within, err = time.ParseDuration(body.Within); err != nil || within < 0 {
			return badRequest("give a number with a unit, such as 90s", "within %q is not a duration", clip(body.Within))
		}
	}
	reply, err := s.config.Manager.Drain(r.Context(), &wire.DrainRequest{TaskManager: r.PathValue("taskmanager"), Reason: body.Reason, Within: within})
	if wire.Code(err) == codes.NotFound {
		return noTaskManager(err)
	}
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, Drained{Cordoned: cordonedOf(&reply.CordonReply), Leave: jobIDs(reply.Leave), Stay: jobIDs(reply.Stay)})
}

func jobIDs(ids []wire.JobID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return texts
}
