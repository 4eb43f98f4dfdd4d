package engine

import "fmt"

// ReplicaError says that a replicated object is not the same on all subtasks of a queue when a
// superstep begins. Runs of Check and runs with the option CheckBroadcasts fail with it.
type ReplicaError struct {
	// Key names the object. Subtask is the first subtask whose object differs from the object of
	// subtask 0.
	Key     string
	Subtask int
	// Superstep is the superstep at whose beginning the objects differed.
	Superstep int
	// Stage is the stage of the previous superstep that made the objects differ. It is "" if the
	// run did not look for it.
	Stage string

	What string // describes the difference
}

// Error describes the difference and the usual causes.
func (e *ReplicaError) Error() string {
	whose := "engine.Check (--check) names the stage that made the difference"
	if e.Stage != "" {
		whose = "what made the difference is " + e.Stage
	}
	return fmt.Sprintf("%s at the beginning of superstep %d; replicated objects must be the same on every subtask: %s; "+
		"look for a variable that the function captures and changes, such as a counter, for the use of TaskID, NumTask or Shards, and for iteration over a map, math/rand and the clock; "+
		"what belongs to a subtask alone goes under a Scratch or PerShard key", e.What, e.Superstep, whose)
}
