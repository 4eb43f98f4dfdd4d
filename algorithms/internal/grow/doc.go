// Package grow grows histogram trees within a queue, level by level or leaf by leaf, over
// the binned rows of all subtasks.
package grow
