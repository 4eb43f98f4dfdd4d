// Package security keeps strangers out of a cluster: the token that every client and
// task manager shows, the certificates of managers, and the credentials with which
// the workers of one attempt know each other.
package security
