// Package client talks to a job manager for programs and commands: it finds the
// address, the token and the certificates, uploads executables, submits jobs and
// follows them.
package client
