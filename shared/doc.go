// Package shared has the objects that the stages of an iterative queue share,
// and the arithmetic of shards, ranks and trees that makes results independent
// of parallelism. It knows nothing of networks, plans or operators.
package shared
