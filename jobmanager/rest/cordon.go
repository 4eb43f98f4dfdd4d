package rest

import (
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Cordoning says why a task manager is cordoned.
type Cordoning struct {
	Reason string `json:"reason,omitempty" doc:"for people; one line of at most 500 bytes"`
}

// Cordon says that a task manager gets no new workers, by the decision of a client.
type Cordon struct {
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// Avoidance says that jobs get the slots of other task managers first.
type Avoidance struct {
	Until time.Time `json:"until"`
	Died  int       `json:"died" doc:"number of workers that died there"`
}

// Cordoned is the answer to a request to cordon or uncordon a task manager.
type Cordoned struct {
	TaskManager string  `json:"task_manager"`
	Cordon      *Cordon `json:"cordon,omitempty" doc:"left out if it is not cordoned now"`
	Changed     bool    `json:"changed" doc:"whether the request changed anything"`
	Registered  int     `json:"registered" doc:"number of task managers of this name in the cluster; 0 if the cordon waits for one"`
	Workers     int     `json:"workers" doc:"that run there and go on"`
	Slots       int     `json:"slots" doc:"of the cluster that new workers can get, now or when they are free"`
}

func cordonOf(c *wire.Cordon) *Cordon {
	if c == nil {
		return nil
	}
	return &Cordon{Reason: c.Reason, Since: c.Since}
}

func avoidanceOf(a *wire.Avoidance) *Avoidance {
	if a == nil {
		return nil
	}
	return &Avoidance{Until: a.Until, Died: a.Died}
}

func (s *Server) cordon(w http.ResponseWriter, r *http.Request) error {
	var body Cordoning
	if r.ContentLength != 0 {
		if err := readJSON(r, &body); err != nil {
			return err
		}
	}
	if !wire.CheckReason(body.Reason) {
		return badRequest("shorten it", "the reason is not one line of at most %d bytes", wire.MaxReason)
	}
	reply, err := s.config.Manager.Cordon(r.Context(), &wire.CordonRequest{TaskManager: r.PathValue("taskmanager"), Reason: body.Reason})
	return s.sendCordoned(w, reply, err)
}

func (s *Server) uncordon(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength != 0 {
		return badRequest("send none", "the request has a body, which would be ignored")
	}
	reply, err := s.config.Manager.Uncordon(r.Context(), &wire.UncordonRequest{TaskManager: r.PathValue("taskmanager")})
	return s.sendCordoned(w, reply, err)
}

// sendCordoned answers with the reply or the error of the job manager.
func (s *Server) sendCordoned(w http.ResponseWriter, reply *wire.CordonReply, err error) error {
	if wire.Code(err) == codes.NotFound {
		return noTaskManager(err)
	}
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, cordonedOf(reply))
}

func noTaskManager(err error) error {
	return &problem{code: http.StatusNotFound, text: wire.Reason(err), hint: "GET " + base + "/taskmanagers lists the task managers"}
}

func cordonedOf(r *wire.CordonReply) Cordoned {
	return Cordoned{
		TaskManager: r.TaskManager, Cordon: cordonOf(r.Cordon), Changed: r.Changed,
		Registered: r.Registered, Workers: r.Workers, Slots: r.Slots,
	}
}
