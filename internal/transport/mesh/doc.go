// Package mesh connects the ranks of a group by channels of messages: in memory
// ([NewLocal]), over TCP, and, for tests, through connections that misbehave by
// plan.
package mesh
