package execute

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// TestNoAllocations requires that a repeated operation allocates nothing on any rank.
func TestNoAllocations(t *testing.T) {
	for _, name := range []string{"direct", "ring", "recursive-doubling", "double-tree"} {
		for net, nodes := range map[string]network{"memory": inMemory, "TCP": overTCP} {
			for _, mode := range modes {
				t.Run(name+"/"+mode.name+"/"+net, func(t *testing.T) { noAllocations(t, name, nodes(t, 3), mode.opt) })
			}
		}
	}
}

func noAllocations(t *testing.T, name string, nodes []mesh.Node, opt Options) {
	progs := progsOf(t, program.AllReduce, name, 3)
	m := newTeam(t, nodes, progs, opt)
	defer m.close()
	ops := make([]*Operation, 3)
	turns := make([]chan bool, 3)
	for r := range ops {
		ops[r] = sumOf(progs[r], 0, what, 100)
		turns[r] = make(chan bool)
	}
	errs := make(chan error, 3)
	for r := 1; r < 3; r++ {
		go func() {
			for range turns[r] {
				ops[r].Seq++
				_, err := m.runners[r].Run(ops[r])
				errs <- err
			}
			errs <- nil
		}()
	}
	var failed error
	once := func() {
		turns[1] <- true
		turns[2] <- true
		ops[0].Seq++
		_, err := m.runners[0].Run(ops[0])
		for _, e := range []error{err, <-errs, <-errs} {
			if e != nil {
				failed = e
			}
		}
	}
	for range 20 {
		once() // so that every buffer has its final size
	}
	allocs := testing.AllocsPerRun(50, once)
	close(turns[1])
	close(turns[2])
	<-errs
	<-errs
	require.NoError(t, failed)
	if !testsize.Race { // under the race detector, sync.Pool drops values at random
		require.Zero(t, allocs)
	}
}

// TestManyRanks compares an AllReduce in a ring of many ranks in one process with the
// reference.
func TestManyRanks(t *testing.T) {
	p := 100
	if testsize.Soak {
		p = 1000
	}
	progs := progsOf(t, program.AllReduce, "ring", p)
	pool := NewPool()
	defer pool.Close()
	for _, opt := range []Options{{}, {SerialLimit: -1, Segment: 64}} {
		opt.Workers = pool
		m := newTeam(t, inMemory(t, p), progs, opt)
		layouts := make([]program.Layout, p)
		for r := range layouts {
			layouts[r] = program.Even(3*p+5, p)
		}
		requireTask(t, m, &task{progs: progs, kind: integers, layouts: layouts}, fmt.Sprint(p, " ranks"))
		m.close()
	}
}

// TestRunnersMayShareWorkers runs programs of different shapes alternately on one pool, with
// lengths that grow and shrink, and compares their results with the reference.
func TestRunnersMayShareWorkers(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	nodes := inMemory(t, 4)
	var teams []*team
	for _, name := range []string{"direct", "ring", "halving-doubling"} {
		teams = append(teams, newTeam(t, nodes, progsOf(t, program.AllReduce, name, 4), Options{Workers: pool, SerialLimit: 100, Segment: 128}))
	}
	seq := uint64(0)
	for _, n := range []int{1000, 3, 0, 50, 2000, 7} {
		for _, m := range teams {
			layouts := make([]program.Layout, 4)
			progs := make([]*program.Program, 4)
			for r := range layouts {
				progs[r] = m.runners[r].prog
				layouts[r] = program.Even(n, progs[r].Chunks)
			}
			m.seq, seq = seq, seq+1
			requireTask(t, m, &task{progs: progs, kind: integers, layouts: layouts}, fmt.Sprint(progs[0].Algorithm, " ", n))
		}
	}
	for _, m := range teams {
		m.close()
	}
}
