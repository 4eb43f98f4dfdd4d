package collective_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestAThousandRanksInOneProcess executes AllReduce among a thousand ranks, which are
// goroutines of one process. It uses shared memory, and the ring algorithm, which takes two
// thousand steps. With the race detector there are fewer ranks.
func TestAThousandRanksInOneProcess(t *testing.T) {
	t.Parallel()
	p := 1000
	if testsize.Few {
		p = 300
	}
	names := []string{"", "ring"}
	if testsize.Soak {
		names = []string{"", "ring", "recursive-doubling", "halving-doubling", "double-tree", "binomial", "torus", "ring", ""}
	}
	w := inMemory(p)
	w.run(t, func(c *collective.Comm) error {
		for k, name := range names {
			x := allReduceCase{algorithm: name, n: p + 1 + k, inPlace: k%2 == 0}
			if err := allReduceSums(c, &x); err != nil {
				return fmt.Errorf("%v: %w", &x, err)
			}
			if err := collective.Barrier(c); err != nil {
				return err
			}
		}
		return nil
	})
	w.close(t)
}

// allReduceSums executes a case with integers whose sum is known in closed form, and checks the
// result without a loop over the ranks.
func allReduceSums(c *collective.Comm, x *allReduceCase) error {
	p := int64(c.Size())
	in := make([]int64, x.n)
	for i := range in {
		in[i] = int64(c.Rank()+1)*int64(i%1009+1) + int64(i)
	}
	out := in
	if !x.inPlace {
		out = make([]int64, x.n)
	}
	err := collective.AllReduce(c, &collective.Reduction[int64]{
		Name: "x", Op: collective.Sum[int64](), Whole: in, Out: out, Algorithm: x.algorithm,
	})
	for i := range out {
		if want := p*(p+1)/2*int64(i%1009+1) + p*int64(i); err == nil && out[i] != want {
			return fmt.Errorf("element %d is %d, not %d", i, out[i], want)
		}
	}
	return err
}

// TestManyRanksInFewProcesses tests AllReduce and Broadcast with many ranks per process.
func TestManyRanksInFewProcesses(t *testing.T) {
	t.Parallel()
	places := [][][]int{blockLayout(128, 2), cyclicLayout(130, 2)}
	if testsize.Few {
		places = [][][]int{cyclicLayout(60, 2)}
	}
	if testsize.Soak {
		places = append(places, cyclicLayout(512, 2), blockLayout(1000, 4), blockLayout(64, 64))
	}
	for _, hosts := range places {
		p := len(flat(hosts))
		w := overTCP(t, p, hosts)
		w.run(t, func(c *collective.Comm) error {
			for k, name := range []string{"", "ring", "halving-doubling", ""} {
				x := allReduceCase{algorithm: name, n: 300 * k, inPlace: k%2 == 0}
				if err := allReduceSums(c, &x); err != nil {
					return fmt.Errorf("%v: %w", &x, err)
				}
			}
			if err := collective.Barrier(c); err != nil {
				return err
			}
			for _, v := range []int{0, p / 2, p - 1} {
				got, err := c.BroadcastInt64(context.Background(), v, int64(c.Rank()*7))
				if err == nil && got != int64(v*7) {
					err = fmt.Errorf("the broadcast of rank %d gives %d", v, got)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		w.close(t)
	}
}
