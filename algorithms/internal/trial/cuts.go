package trial

import "github.com/superstep-ml/superstep/engine"

// cutting is a run that is stopped and resumed at other parallelisms: the one that it begins
// with, and the one at which it resumes after each superstep.
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

// afterEach cuts queues after every superstep, the last one included. The run resumes at the
// given parallelisms in turn.
func afterEach(supersteps int, parallelisms ...int) cutting {
	c := cutting{p: parallelisms[len(parallelisms)-1], at: make(map[int]int)}
	for superstep := 1; superstep <= supersteps; superstep++ {
		c.at[superstep] = parallelisms[(superstep-1)%len(parallelisms)]
	}
	return c
}

// Cuts returns the options of runs in which queues of that many supersteps are cut and
// resume at another parallelism, of at most 8.
func Cuts(supersteps int) (runs [][]engine.Option) {
	for _, c := range cuts(supersteps) {
		runs = append(runs, c.options())
	}
	return runs
}
