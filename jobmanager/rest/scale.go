package rest

import (
	"net/http"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Scale says with how many subtasks a job may run.
type Scale struct {
	Parallelism string `json:"parallelism" doc:"a number such as 4, or a range such as 2:8"`
}

func (s *Server) scale(w http.ResponseWriter, r *http.Request) error {
	var body Scale
	if err := readJSON(r, &body); err != nil {
		return err
	}
	to, err := wire.ParseParallelism(body.Parallelism)
	if err != nil {
		return badRequest("give a number such as 4, or a range such as 2:8", "%v", err)
	}
	reply, err := s.config.Manager.Scale(r.Context(), &wire.ScaleRequest{Job: wire.JobID(r.PathValue("id")), Parallelism: to})
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, jobOf(&reply.Job))
}
