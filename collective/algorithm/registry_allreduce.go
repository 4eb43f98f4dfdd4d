package algorithm

// allReduces lists the algorithms for AllReduce.
func allReduces() []*Algorithm { return []*Algorithm{Direct()} }

func reduceScatters() []*Algorithm { return []*Algorithm{} }
