package collective_test

import (
	"testing"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// exchangeCases has the numbers of elements per block in Gloo's test cases for collectives
// without a root.
var exchangeCases = map[program.Collective][]int{
	program.AllGather:     {0, 1, 4, 10, 100, 1000, 10000},
	program.AllToAll:      {0, 1, 4, 100, 1000, 10000},
	program.ReduceScatter: {0, 1, 4, 100, 1000, 10000},
	program.Scan:          {0, 1, 100, 1000},
	program.Exscan:        {0, 1, 100, 1000},
}

// TestExchangesInMemory executes the table of exchangeCases in shared memory and with every
// algorithm.
func TestExchangesInMemory(t *testing.T) {
	t.Parallel()
	sizes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	if testsize.Soak {
		sizes = append(sizes, 13, 16, 24, 32)
	}
	for _, p := range sizes {
		for coll := range program.NumCollectives {
			if counts, ok := exchangeCases[coll]; ok {
				w := inMemory(p)
				runCalls(t, w, callsOf(coll, p, counts), 3)
				w.close(t)
			}
		}
	}
	for _, p := range []int{13, 16, 24, 32} {
		for coll := range program.NumCollectives {
			if _, ok := exchangeCases[coll]; ok && !testsize.Soak {
				w := inMemory(p)
				runCalls(t, w, callsOf(coll, p, []int{1, 100}), 3)
				w.close(t)
			}
		}
	}
}

// TestExchangesOverTCP executes the table of exchangeCases over the loopback interface.
func TestExchangesOverTCP(t *testing.T) {
	t.Parallel()
	places := [][][]int{blockLayout(2, 2), blockLayout(4, 4), cyclicLayout(7, 3)}
	if testsize.Soak {
		places = append(places, blockLayout(1, 1), blockLayout(3, 3), blockLayout(8, 8), cyclicLayout(9, 4))
	}
	for _, hosts := range places {
		p := len(flat(hosts))
		w := overTCP(t, p, hosts)
		for coll := range program.NumCollectives {
			if counts, ok := exchangeCases[coll]; ok {
				runCalls(t, w, callsOf(coll, p, counts), 5)
			}
		}
		w.close(t)
	}
}
