package rest

import (
	"fmt"
	"net/http"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return s.sendJSON(w, http.StatusOK, Status{Status: "ok"})
}

// ready answers with whether the job manager is ready. It calls a method that acquires the job
// manager's lock, so that it does not answer if the job manager hangs.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	_, err := s.briefOverview(r)
	if err == nil {
		err = s.config.Manager.Ready()
	}
	if err != nil {
		return &problem{code: http.StatusServiceUnavailable, text: "the job manager is not ready: " + wire.Reason(err), hint: "ask again in a moment", known: true}
	}
	return s.sendJSON(w, http.StatusOK, Status{Status: "ok"})
}

func (s *Server) briefOverview(r *http.Request) (*wire.Overview, error) {
	return s.config.Manager.Overview(r.Context(), &wire.OverviewRequest{Version: wire.Version})
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) error {
	o, err := s.briefOverview(r)
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, overviewOf(o))
}

func (s *Server) settings(w http.ResponseWriter, _ *http.Request) error {
	var all any
	if s.config.Settings != nil {
		all = s.config.Settings()
	}
	if all == nil {
		all = map[string]any{}
	}
	return s.sendJSON(w, http.StatusOK, all)
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	s.send(w, http.StatusOK, mediaJSON, s.openapi)
	return nil
}

func (s *Server) taskManagers(w http.ResponseWriter, r *http.Request) error {
	reply, err := s.config.Manager.TaskManagers(r.Context(), &wire.TaskManagersRequest{})
	if err != nil {
		return err
	}
	all := make([]TaskManager, len(reply.TaskManagers))
	for i := range reply.TaskManagers {
		all[i] = taskManagerOf(&reply.TaskManagers[i])
	}
	return s.sendJSON(w, http.StatusOK, all)
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) error {
	req := wire.ListRequest{Limit: number(r, "limit", 0)}
	for _, name := range r.URL.Query()["state"] {
		state, err := wire.ParseJobState(name)
		if err != nil {
			return err
		}
		req.States = append(req.States, state)
	}
	reply, err := s.config.Manager.List(r.Context(), &req)
	if err != nil {
		return err
	}
	all := make([]Job, len(reply.Jobs))
	for i := range reply.Jobs {
		all[i] = jobOf(&reply.Jobs[i])
		all[i].Progress = nil
	}
	return s.sendJSON(w, http.StatusOK, all)
}

func (s *Server) job(r *http.Request) (*wire.JobInfo, error) {
	return s.config.Manager.Show(r.Context(), &wire.ShowRequest{Job: wire.JobID(r.PathValue("id"))})
}

func (s *Server) showJob(w http.ResponseWriter, r *http.Request) error {
	info, err := s.job(r)
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, jobOf(info))
}

// planned returns a job with its plan. It returns an error if there is no plan yet.
func (s *Server) planned(r *http.Request) (*wire.JobInfo, *plan.Plan, error) {
	info, err := s.job(r)
	if err != nil {
		return nil, nil, err
	}
	if len(info.Plan) == 0 {
		return nil, nil, &problem{code: http.StatusNotFound, text: fmt.Sprintf("job %s, which is %s, has no plan", info.ID, info.State),
			hint: "a job gets one when its inputs are known: ask again later"}
	}
	p, err := plan.DecodePlan(info.Plan)
	if err != nil {
		return nil, nil, fmt.Errorf("the plan of job %s as the job manager has it: %w", info.ID, err)
	}
	return info, p, nil
}

func (s *Server) plan(w http.ResponseWriter, r *http.Request) error {
	info, p, err := s.planned(r)
	if err != nil {
		return err
	}
	switch r.URL.Query().Get("form") {
	case "text":
		s.send(w, http.StatusOK, mediaText, []byte(p.Text()))
	case "dot":
		s.send(w, http.StatusOK, mediaDOT, []byte(p.DOT()))
	default:
		s.send(w, http.StatusOK, mediaJSON, info.Plan)
	}
	return nil
}

func (s *Server) vertices(w http.ResponseWriter, r *http.Request) error {
	info, p, err := s.planned(r)
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, verticesOf(p, info.Progress))
}

func (s *Server) supersteps(w http.ResponseWriter, r *http.Request) error {
	info, p, err := s.planned(r)
	if err != nil {
		return err
	}
	return s.sendJSON(w, http.StatusOK, queuesOf(p, info.Progress))
}
