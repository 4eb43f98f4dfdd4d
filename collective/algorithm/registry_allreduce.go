package algorithm

// allReduces lists the algorithms for AllReduce.
func allReduces() []*Algorithm {
	return []*Algorithm{
		Direct(), recursiveDoubling(), halvingDoubling(), ringAllReduce(),
		binomialAllReduce(), doubleTree(),
	}
}

// reduceScatters lists the algorithms for ReduceScatter.
func reduceScatters() []*Algorithm { return []*Algorithm{} }
