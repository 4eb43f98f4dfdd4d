// Package rest serves a job manager by HTTP: a JSON API with an OpenAPI document,
// streams of events and logs, health checks, and metrics for Prometheus.
//
//	s, err := rest.New(rest.Config{Manager: m, Token: token})
//	if err != nil { ... }
//	defer s.Close()
//	fmt.Println("HTTP at", s.URL())
//
// All routes are in one table (table.go), from which both the server and the OpenAPI document
// are made. The schemas of the document are made from the types in documents.go. A test checks
// the answers of the handlers against the document.
//
//	GET  /api/v1/overview                  the cluster at a glance
//	GET  /api/v1/jobs                      ?state=running&state=waiting&limit=20
//	POST /api/v1/jobs                      {"name": "kmeans", "args": {"Input": "/data/iris.csv", "K": 3}, "parallelism": 6}
//	GET  /api/v1/jobs/{id}                 or the start of an ID that fits one job only
//	GET  /api/v1/jobs/{id}/plan            ?form=json|text|dot
//	GET  /api/v1/jobs/{id}/vertices        with rows and shards done
//	GET  /api/v1/jobs/{id}/supersteps      with the values that queues report
//	GET  /api/v1/jobs/{id}/events          server-sent events: states and progress, never rows
//	GET  /api/v1/jobs/{id}/results         what a job that has finished collected and printed
//	GET  /api/v1/jobs/{id}/results/{name}  ?format=csv|arrow|text, or by Accept
//	GET  /api/v1/jobs/{id}/logs            ?worker=0&follow=true&form=text|json
//	POST /api/v1/jobs/{id}/cancel          {"reason": "…"}, or no body
//	GET  /api/v1/taskmanagers
//	GET  /api/v1/config
//	GET  /api/v1/openapi.json
//	GET  /metrics
//	GET  /healthz, /readyz                 without a token
//
// Errors are {"error": "what was wrong", "hint": "what to do"} with a matching HTTP status.
//
// # Who may ask
//
// Every request under /api and /metrics must have the job manager's token in the header
// Authorization. The Host of a request must be a name of the server, and requests from pages of
// other origins are refused, whatever the method. If other machines can reach the address, TLS
// or Config.Insecure is necessary.
//
// All input is bounded: the number of connections and streams, the sizes of headers and bodies
// (1 MiB), and the time for sending a request. If a client does not read a piece of an answer
// within Config.WriteTimeout, its connection is closed. Headers of the answers forbid browsers
// to cache answers, to show them in frames, to guess their type, and to execute them as pages.
//
// # Events
//
// A stream of events begins with the states of the job so far and ends when the job ends. The
// id of an event is the number of the last event of the job that the client need not receive
// again. A client that reconnects with Last-Event-ID continues from there; if it has received
// the final state, it gets status 204. Progress is sent when it changes, and only the latest.
// While there are no events, the stream sends comments, which show that it is alive.
//
// # Metrics
//
//	superstep_build_info                always 1; label version
//	superstep_slots                     slots of the task managers
//	superstep_slots_free                slots that no job has
//	superstep_jobs                      jobs that are kept; label state
//	superstep_jobs_ended_total          jobs that have ended; label state
//	superstep_task_managers             task managers; label state
//	superstep_heartbeat_age_seconds     since a task manager was heard; labels task_manager, id
//	superstep_supersteps_total          supersteps of all queues of all jobs
//	superstep_superstep_seconds_total   that subtask 0 spent in them; label kind: compute or communicate
//	superstep_rows_total                rows that vertices have taken in
//	superstep_exchange_rows_total       rows that went over exchanges
//	superstep_exchange_bytes_total      and their bytes in memory
//	superstep_job_exchange_rows         of one exchange of a live job; labels job, edge (of its plan)
//	superstep_job_exchange_bytes        likewise
//	superstep_result_bytes_total        collected rows and printed text that jobs sent
//	superstep_artifact_bytes            of executables that are kept
//	superstep_artifact_limit_bytes      that they may take
//	superstep_disk_free_bytes           that may still be written to the disk of the work directory
//	superstep_takes_jobs                1, or 0 while no jobs are taken, as on a full disk
//	superstep_followers                 clients to which jobs are attached
//	superstep_http_requests_total       requests answered; labels route, method, code
//	superstep_http_request_seconds      histogram of how long they took, streams excepted; label route
//	superstep_http_streams              open streams of events and logs
//	process_*, go_*                     the process, and the Go runtime
//
// Metrics that end in _total are counters from the start of the job manager. All metrics are
// read at the same moment, when Prometheus requests them.
package rest
