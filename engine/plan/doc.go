// Package plan holds a job's graph and its plan as plain data.
//
// A Graph is what the user wrote: operators, their inputs and the facts they
// rest on. Compile turns it, as a pure function, into a Plan for one
// parallelism: forward edges are chained into vertices, the others become
// exchanges, shards are assigned to subtasks. Both print as text, JSON and
// Graphviz, and neither holds a function, a lock or a channel: whoever runs a
// plan binds functions to its nodes.
package plan
