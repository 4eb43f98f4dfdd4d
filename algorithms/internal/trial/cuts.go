package trial

import "github.com/superstep-ml/superstep/engine"

// cutting describes a run that is stopped after supersteps and resumed at another parallelism.
// p is the parallelism at which the run begins, and at[n] is the parallelism at which it
// resumes after superstep n.
type cutting struct {
	p  int
	at map[int]int
}

func (c cutting) options() []engine.Option {
	options := []engine.Option{engine.Parallelism(c.p)}
	for superstep, p := range c.at {
		options = append(options, engine.CheckResume(superstep, p))
	}
	return options
}

// afterEach returns a run that is stopped after every superstep, including the last one. It
// resumes at the given parallelisms in turn.
func afterEach(supersteps int, parallelisms ...int) cutting {
	c := cutting{p: parallelisms[len(parallelisms)-1], at: make(map[int]int)}
	for superstep := 1; superstep <= supersteps; superstep++ {
		c.at[superstep] = parallelisms[(superstep-1)%len(parallelisms)]
	}
	return c
}

// Cuts returns the options of runs in which queues are stopped and resumed at another
// parallelism. supersteps is the number of supersteps of the queues. Parallelisms are at most
// 8.
func Cuts(supersteps int) (runs [][]engine.Option) {
	for _, c := range cuts(supersteps) {
		runs = append(runs, c.options())
	}
	return runs
}
