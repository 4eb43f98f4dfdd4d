// Package rest serves a job manager by HTTP: a JSON API with an OpenAPI document,
// streams of events and logs, and health checks.
//
//	s, err := rest.New(rest.Config{Manager: m, Token: token})
//	if err != nil { ... }
//	defer s.Close()
//	fmt.Println("HTTP at", s.URL())
//
// What can be asked for is one table (table.go). The server is made from it, and so is
// the OpenAPI document, with the types of documents.go as its schemas; a test holds what
// the handlers answer against the document.
//
//	GET  /api/v1/overview                  the cluster at a glance
//	GET  /api/v1/jobs                      ?state=running&state=waiting&limit=20
//	POST /api/v1/jobs                      {"name": "kmeans", "args": {"Input": "/data/iris.csv", "K": 3}, "parallelism": 6}
//	GET  /api/v1/jobs/{id}                 or the start of an ID that fits one job only
//	GET  /api/v1/jobs/{id}/plan            ?form=json|text|dot
//	GET  /api/v1/jobs/{id}/vertices        with rows and shards done
//	GET  /api/v1/jobs/{id}/supersteps      with the values that queues report
//	GET  /api/v1/jobs/{id}/events          server-sent events: states and progress, never rows
//	GET  /api/v1/jobs/{id}/logs            ?worker=0&follow=true&form=text|json
//	POST /api/v1/jobs/{id}/cancel          {"reason": "…"}, or no body
//	GET  /api/v1/taskmanagers
//	GET  /api/v1/config
//	GET  /api/v1/openapi.json
//	GET  /healthz, /readyz                 without a token
//
// Errors are {"error": "what was wrong", "hint": "what to do"} with the status that
// fits.
//
// # Who may ask
//
// Everything under /api wants the job manager's token in the header
// Authorization, on every request. Requests must name the server by a host that is its
// own, and pages of other origins are refused, whatever the method. An address that
// other machines reach needs TLS or Config.Insecure.
//
// What arrives is bounded: connections, headers, bodies (1 MiB), streams, and the time
// to send a request. What is sent has to be read: each piece of an answer within
// Config.WriteTimeout, or the client is cut. Answers may not be kept, framed, guessed
// the type of, or run as pages.
//
// # Events
//
// A stream of events begins with the states of the job so far and ends with the job. An
// event's id is the number of the last event of the job that need not be heard again: a
// client that comes back with Last-Event-ID goes on where it was, and one that has heard
// the end gets status 204. How far a job is comes as it changes, the latest only;
// comments show that the stream lives while nothing happens.
package rest
