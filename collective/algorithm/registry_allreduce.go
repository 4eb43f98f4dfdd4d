package algorithm

// allReduces returns the algorithms for AllReduce.
func allReduces() []*Algorithm {
	return []*Algorithm{
		Direct(), linearAllReduce(), allGatherReduce(),
		recursiveDoubling(), halvingDoubling(), binomialAllReduce(), doubleTree(),
		ringAllReduce(), torus(), hierarchical(), blueConnect(), binaryBlocks(),
	}
}

// reduceScatters returns the algorithms for ReduceScatter.
func reduceScatters() []*Algorithm {
	return []*Algorithm{directReduceScatter(), halvingReduceScatter(), ringReduceScatter()}
}
