// Package rest serves a job manager by HTTP: a JSON API with an OpenAPI document,
// streams of events and logs, and health checks.
//
//	s, err := rest.New(rest.Config{Manager: m, Token: token})
//	if err != nil { ... }
//	defer s.Close()
//	fmt.Println("HTTP at", s.URL())
package rest
