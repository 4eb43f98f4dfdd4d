// Package jobmanager is the server of a cluster: it hears task managers and clients
// by gRPC and HTTP, lets its core decide, and keeps artifacts, results and the
// history of jobs.
package jobmanager
