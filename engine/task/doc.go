// Package task runs a plan's subtasks in one process: inputs → operator chain →
// outputs, exchanges between them, and the superstep loop of queues.
package task
