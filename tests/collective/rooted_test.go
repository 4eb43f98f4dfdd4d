package collective_test

import (
	"testing"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// rootedCases has the numbers of elements in Gloo's test cases for the collectives with a root.
// Every rank is the root in turn. The tests use Gloo's numbers of ranks, and also 3, 5 and 6
// ranks.
var rootedCases = map[program.Collective][]int{
	program.Broadcast: {0, 1, 10, 100, 1000},
	program.Gather:    {0, 1, 10, 100, 1000},
	program.Scatter:   {0, 1, 10, 100, 1000},
	program.Reduce:    {0, 1, 10, 100, 1000},
}

// TestRootedInMemory executes the table of rootedCases in shared memory and with every
// algorithm.
func TestRootedInMemory(t *testing.T) {
	t.Parallel()
	for _, p := range []int{1, 2, 3, 4, 5, 6, 7} {
		for coll := range program.NumCollectives {
			if counts, ok := rootedCases[coll]; ok {
				w := inMemory(p)
				runCalls(t, w, callsOf(coll, p, counts), 3)
				w.close(t)
			}
		}
	}
}

// TestRootedOverTCP executes the table of rootedCases over the loopback interface.
func TestRootedOverTCP(t *testing.T) {
	t.Parallel()
	places := [][][]int{blockLayout(2, 2), blockLayout(4, 4), cyclicLayout(7, 3)}
	if testsize.Soak {
		places = append(places, blockLayout(1, 1), blockLayout(3, 3), blockLayout(7, 7), cyclicLayout(4, 2))
	}
	for _, hosts := range places {
		p := len(flat(hosts))
		w := overTCP(t, p, hosts)
		for coll := range program.NumCollectives {
			if counts, ok := rootedCases[coll]; ok {
				runCalls(t, w, callsOf(coll, p, counts), 5)
			}
		}
		w.close(t)
	}
}

// flat returns the ranks of all hosts in one list, host by host.
func flat(hosts [][]int) []int {
	var ranks []int
	for _, h := range hosts {
		ranks = append(ranks, h...)
	}
	return ranks
}
