package engine

import "fmt"

// ReplicaError says that a replicated object is not the same on all subtasks of a queue when a
// superstep begins. Runs of Check and runs with the option CheckBroadcasts fail with it.
type ReplicaError struct {
	// Key names the object. Subtask is the first whose object differs from that of subtask 0.
	Key     string
	Subtask int
	// Superstep is the superstep that began so.
	Superstep int
	// Stage made the difference, in the superstep before; "" if it was not looked for.
	Stage string

	What string // says what differs, and how
}

// Error names the usual causes.
func (e *ReplicaError) Error() string {
	whose := "engine.Check (--check) names the stage that made the difference"
	if e.Stage != "" {
		whose = "what made the difference is " + e.Stage
	}
	return fmt.Sprintf("%s at the beginning of superstep %d; replicated objects must be the same on every subtask: %s; "+
		"look for a variable that the function captures and changes, such as a counter, for the use of TaskID, NumTask or Shards, and for iteration over a map, math/rand and the clock; "+
		"what belongs to a subtask alone goes under a Scratch or PerShard key", e.What, e.Superstep, whose)
}
