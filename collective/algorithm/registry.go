package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// registry returns all algorithms, by collective. The first algorithm of each collective
// accepts every number of ranks, every root and every layout, and keeps rank order.
func registry() [program.NumCollectives][]*Algorithm {
	return [program.NumCollectives][]*Algorithm{
		program.AllReduce:     allReduces(),
		program.Broadcast:     broadcasts(),
		program.Reduce:        reduces(),
		program.Gather:        gathers(),
		program.AllGather:     allGathers(),
		program.Scatter:       scatters(),
		program.ReduceScatter: reduceScatters(),
		program.AllToAll:      allToAlls(),
		program.Barrier:       barriers(),
		program.Scan:          scans(),
		program.Exscan:        exscans(),
	}
}
