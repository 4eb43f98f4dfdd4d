package rest

import "net/http"

// base is the prefix of the paths of the API.
const base = "/api/v1"

// These are status codes of errors that some routes can return, besides the codes that all
// routes can return.
var (
	ofJob     = []int{http.StatusBadRequest, http.StatusNotFound}
	ofResults = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone}
	ofPost    = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}
)

func ok(of any, about string) []answer {
	return []answer{{code: http.StatusOK, media: mediaJSON, about: about, of: of}}
}

// table returns all routes.
func (s *Server) table() []route {
	const taskManager = base + "/taskmanagers/{taskmanager}"
	return append([]route{
		{method: "GET", path: "/", id: "page", summary: "A page that says what this is", open: true, serve: s.page,
			answers: []answer{{code: http.StatusOK, media: mediaHTML, about: "the page"}}},
		{method: "GET", path: "/healthz", id: "health", summary: "Whether the server is alive", open: true, serve: s.health,
			answers: ok(Status{}, "it is")},
		{method: "GET", path: "/readyz", id: "readiness", summary: "Whether the job manager takes jobs", open: true, serve: s.ready,
			answers: ok(Status{}, "it does"), errors: []int{http.StatusServiceUnavailable}},
		{method: "GET", path: "/metrics", id: "metrics", summary: "Metrics for Prometheus", serve: s.scrape,
			answers: []answer{{code: http.StatusOK, media: "text/plain", about: "the metrics, in a form that the request may choose"}}},
		{method: "GET", path: base + "/openapi.json", id: "describe", summary: "This document", serve: s.describe,
			answers: ok(map[string]any{}, "OpenAPI 3.1")},
		{method: "GET", path: base + "/overview", id: "overview", summary: "The cluster at a glance", serve: s.overview,
			answers: ok(Overview{}, "the cluster")},
		{method: "GET", path: base + "/config", id: "config", summary: "The settings of the job manager", serve: s.settings,
			answers: ok(map[string]any{}, "the settings")},
		{method: "GET", path: base + "/taskmanagers", id: "listTaskManagers", summary: "The task managers, by name", serve: s.taskManagers,
			answers: ok([]TaskManager{}, "the task managers")},
		{method: "POST", path: taskManager + "/cordon", id: "cordonTaskManager", summary: "Keep new workers from a task manager; those that run there go on", serve: s.cordon,
			body: Cordoning{}, optional: true,
			answers: ok(Cordoned{}, "it is cordoned"), errors: append([]int{http.StatusNotFound}, ofPost...)},
		{method: "POST", path: taskManager + "/uncordon", id: "uncordonTaskManager", summary: "Allow new workers on a task manager", serve: s.uncordon,
			answers: ok(Cordoned{}, "it is not cordoned"), errors: ofJob},
		{method: "POST", path: taskManager + "/drain", id: "drainTaskManager", summary: "Cordon a task manager, and make the jobs there go on elsewhere", serve: s.drain,
			body: Draining{}, optional: true,
			answers: ok(Drained{}, "it is cordoned, and jobs begin to leave"), errors: append([]int{http.StatusNotFound}, ofPost...)},
	}, s.jobTable()...)
}

// jobTable returns the routes for jobs.
func (s *Server) jobTable() []route {
	const job = base + "/jobs/{id}"
	return []route{
		{method: "GET", path: base + "/jobs", id: "listJobs", summary: "Jobs, newest first", serve: s.listJobs,
			query: []parameter{
				{name: "state", about: "only jobs in this state; may be given more than once", values: jobStates(), many: true},
				{name: "limit", about: "at most so many jobs; 0: all", integer: true},
			},
			answers: ok([]Job{}, "the jobs, without progress")},
		{method: "POST", path: base + "/jobs", id: "submitJob", summary: "Submit a built-in job", serve: s.submit, body: Submission{},
			answers: []answer{{code: http.StatusCreated, media: mediaJSON, about: "the job is on record; Location has its path", of: Submitted{}}},
			errors:  append([]int{http.StatusConflict}, ofPost...)},
		{method: "GET", path: job, id: "showJob", summary: "One job", serve: s.showJob,
			answers: ok(Job{}, "the job"), errors: ofJob},
		{method: "POST", path: job + "/cancel", id: "cancelJob", summary: "Cancel a job; one that has ended stays as it is", serve: s.cancel,
			body: Cancellation{}, optional: true,
			answers: ok(Job{}, "the job as it stands"), errors: append([]int{http.StatusNotFound}, ofPost...)},
		{method: "POST", path: job + "/scale", id: "scaleJob", summary: "Set with how many subtasks a job may run", serve: s.scale,
			body:    Scale{},
			answers: ok(Job{}, "it is on record; a job that runs with another number is changed when its state is saved and it can have the slots"), errors: append([]int{http.StatusNotFound, http.StatusConflict}, ofPost...)},
		{method: "POST", path: job + "/savepoint", id: "saveJob", summary: "Make a checkpoint of a running job, and copy it to a place of its own", serve: s.savepoint,
			body:    Savepoint{},
			answers: ok(SavepointMade{}, "the copy is complete"), errors: append([]int{http.StatusNotFound, http.StatusConflict}, ofPost...)},
		{method: "GET", path: job + "/plan", id: "showPlan", summary: "The plan of a job", serve: s.plan,
			query: []parameter{{name: "form", about: "json (the default), text, or dot for Graphviz", values: []string{"json", "text", "dot"}}},
			answers: []answer{
				{code: http.StatusOK, media: mediaJSON, about: "the plan", of: map[string]any{}},
				{code: http.StatusOK, media: mediaText}, {code: http.StatusOK, media: mediaDOT},
			}, errors: ofJob},
		{method: "GET", path: job + "/vertices", id: "listVertices", summary: "The vertices of a job's plan, and how far they are", serve: s.vertices,
			answers: ok([]Vertex{}, "the vertices"), errors: ofJob},
		{method: "GET", path: job + "/supersteps", id: "listQueues", summary: "The iterative computations of a job, and how far they are", serve: s.supersteps,
			answers: ok([]Queue{}, "the queues"), errors: ofJob},
		{method: "GET", path: job + "/checkpoints", id: "listCheckpoints", summary: "The last checkpoints of a job, and what prevents further ones", serve: s.checkpoints,
			answers: ok(Checkpoints{}, "the checkpoints"), errors: ofJob},
		{method: "GET", path: job + "/events", id: "followJob", stream: true, serve: s.events,
			summary: "What happens to a job, to its end, as server-sent events named state, progress and, where the stream itself fails, failure; their data are an Event or an Error",
			header:  []parameter{{name: "Last-Event-ID", about: "the id of the last event that was received", integer: true}},
			answers: []answer{
				{code: http.StatusOK, media: mediaEvents, about: "the events"},
				{code: http.StatusNoContent, about: "the job has ended, and all events were received"},
			}, errors: ofJob, also: []any{Event{}}},
		{method: "GET", path: job + "/results", id: "listResults", summary: "What a job that has finished collected and printed", serve: s.results,
			answers: ok([]Result{}, "the results"), errors: ofResults},
		{method: "GET", path: job + "/results/{name}", id: "readResult", summary: "The rows of one result of a job, or what was printed", stream: true, serve: s.result,
			query: []parameter{{name: "format", about: "csv or arrow (the stream form of Arrow IPC) for rows, text for what was printed; default: by the header Accept, or else csv or text", values: resultForms()}},
			answers: []answer{
				{code: http.StatusOK, media: mediaCSV, about: "the result; a connection that breaks has not sent all"},
				{code: http.StatusOK, media: mediaArrow}, {code: http.StatusOK, media: mediaText},
			}, errors: append([]int{http.StatusNotAcceptable}, ofResults...)},
		{method: "GET", path: job + "/logs", id: "readLogs", summary: "What the workers of a job wrote, as far as it is kept", stream: true, serve: s.logs,
			query: []parameter{
				{name: "worker", about: "only of this worker; default: all", integer: true},
				{name: "follow", about: "whether to go on to the end of the job; default false", values: []string{"true", "false"}},
				{name: "form", about: "text (the default), with each line's worker unless one was asked for, or json, a LogLines per line", values: []string{"text", "json"}},
			},
			answers: []answer{
				{code: http.StatusOK, media: mediaText, about: "the lines; a connection that breaks has not sent all"},
				{code: http.StatusOK, media: mediaLines},
			}, errors: ofJob, also: []any{LogLines{}}},
	}
}
