// Package remote carries batches of rows between the workers of a job over TCP. Its
// Network is a transport.Network whose inboxes live in several processes.
package remote
