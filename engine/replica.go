package engine

import "fmt"

// ReplicaError says that a replicated object is not the same on all subtasks of a queue when a
// superstep begins. Runs that look for that fail with it: those of Check, and those with the
// option CheckBroadcasts.
type ReplicaError struct {
	// Key names the object. Subtask is the first that holds another than subtask 0 does.
	Key     string
	Subtask int
	// Superstep is the one that began so.
	Superstep int
	// Stage made the difference, in the superstep before; "" where that was not looked at.
	Stage string

	What string // differs, and how
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
