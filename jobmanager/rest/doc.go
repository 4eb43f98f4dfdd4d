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
//	GET  /api/v1/overview                  a summary of the cluster
//	GET  /api/v1/jobs                      ?state=running&state=waiting&limit=20
//	POST /api/v1/jobs                      {"name": "kmeans", "args": {"Input": "/data/iris.csv", "K": 3}, "parallelism": 6}
//	GET  /api/v1/jobs/{id}                 or a prefix of the ID of exactly one job
//	GET  /api/v1/jobs/{id}/plan            ?form=json|text|dot
//	GET  /api/v1/jobs/{id}/vertices        with rows and shards done
//	GET  /api/v1/jobs/{id}/supersteps      with the values that queues report
//	GET  /api/v1/jobs/{id}/checkpoints     the last ones, and what prevents further ones
//	GET  /api/v1/jobs/{id}/events          server-sent events: states and progress, never rows
//	GET  /api/v1/jobs/{id}/results         what a job that has finished collected and printed
//	GET  /api/v1/jobs/{id}/results/{name}  ?format=csv|arrow|text, or by Accept
//	GET  /api/v1/jobs/{id}/logs            ?worker=0&follow=true&form=text|json
//	POST /api/v1/jobs/{id}/cancel          {"reason": "…"}, or no body
//	GET  /api/v1/taskmanagers
//	POST /api/v1/taskmanagers/{name}/cordon  {"reason": "…"}, or no body
//	POST /api/v1/taskmanagers/{name}/uncordon
//	POST /api/v1/taskmanagers/{name}/drain   {"within": "30s"}, or no body
//	POST /api/v1/jobs/{id}/scale           {"parallelism": "2:8"}
//	POST /api/v1/jobs/{id}/savepoint       {"place": "/shared/savepoint"}
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
// Authorization. The Host of a request must be a name or address of the server. Requests from
// pages of other origins are refused, whatever the method. If other machines can reach the
// address, TLS or Config.Insecure is necessary.
//
// All input is bounded: the number of connections and streams, the sizes of headers and bodies
// (1 MiB), and the time for sending a request. If a client does not read a piece of an answer
// within Config.WriteTimeout, its connection is closed. By headers, answers forbid browsers to
// cache them, to show them in frames, to guess their media type, and to run scripts in them.
//
// # Events
//
// A stream of events begins with all earlier states of the job and ends when the job ends. When
// a client has received an event, it need not receive again the job's events up to the number
// that is the event's id. A client that reconnects with the header Last-Event-ID gets the
// events after that number; if it has received the final state, it gets status 204. The latest
// progress is sent when it changes. While there are no events, the stream sends comments, which
// show that the server is alive.
//
// # Metrics
//
//	superstep_build_info                always 1; label version
//	superstep_slots                     slots of the task managers
//	superstep_slots_free                slots that no job uses
//	superstep_slots_cordoned            slots of cordoned task managers
//	superstep_jobs                      jobs in the history or running; label state
//	superstep_jobs_ended_total          jobs that have ended; label state
//	superstep_task_managers             task managers; label state
//	superstep_heartbeat_age_seconds     time since a task manager was last heard; labels task_manager, id
//	superstep_task_manager_cordoned     1 if a task manager is cordoned, else 0; labels task_manager, id
//	superstep_task_manager_avoided      1 if other task managers come first, as workers died there, else 0; same labels
//	superstep_supersteps_total          supersteps of all queues of all jobs
//	superstep_superstep_seconds_total   time that subtask 0 spent in supersteps; label kind: compute or communicate
//	superstep_rows_total                rows that vertices have received
//	superstep_exchange_rows_total       rows sent over exchanges
//	superstep_exchange_bytes_total      size in memory of the rows sent over exchanges
//	superstep_job_exchange_rows         rows sent over one exchange of a live job; labels job, edge (index in its plan)
//	superstep_job_exchange_bytes        size in memory of these rows; same labels
//	superstep_checkpoints_total         checkpoints written
//	superstep_checkpoint_failures_total  writes of checkpoints that failed
//	superstep_checkpoint_bytes_total    bytes written as checkpoints
//	superstep_checkpoint_seconds_total  time that writes of checkpoints took, except for those that failed
//	superstep_job_checkpoint_age_seconds  time since the newest checkpoint of a running job that has checkpoints, or since it began to run; label job
//	superstep_job_restarts_total        restarts of jobs after losses that were not announced
//	superstep_job_moves_total           attempts that ended so that their jobs go on with other slots: scaled, drained, or on a task manager that left
//	superstep_attempts_lost_total       attempts that were lost; label kind: user (the program crashed), lost, peer (a connection between workers), misuse, cluster
//	superstep_recovery_seconds          histogram of the time from the detection of such a loss to the end of a phase; label phase: agreed, placed, connected, moved, resumed
//	superstep_result_bytes_total        collected rows and printed text that jobs sent
//	superstep_artifact_bytes            size of all stored executables
//	superstep_artifact_limit_bytes      limit of the size of all stored executables
//	superstep_disk_free_bytes           bytes that can still be written to the disk of the work directory
//	superstep_takes_jobs                1 if jobs are accepted, else 0, as on a full disk
//	superstep_followers                 clients to which jobs are attached
//	superstep_http_requests_total       answered requests; labels route, method, code
//	superstep_http_request_seconds      histogram of the duration of requests other than streams; label route
//	superstep_http_streams              open streams of events and logs
//	process_*, go_*                     metrics of the process and of the Go runtime
//
// Metrics that end in _total are counters from the start of the job manager. All metrics are
// read at the same time, when Prometheus requests them.
package rest
