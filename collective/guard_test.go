package collective

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// executors runs body, a test of three ranks, for each way to carry out a collective: in shared
// memory, where each rank folds a part or one rank folds everything, and among processes that
// have one rank or several ranks. If body names an algorithm, the ranks send messages in all
// cases.
func executors(t *testing.T, body func(t *testing.T, of ends)) {
	for how, limit := range limits {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			g := groupWithLimit(3, limit)
			body(t, g.Rank)
			for r := range g.Size() {
				g.Rank(r).Close(nil)
			}
		})
	}
	for how, hosts := range map[string][][]int{
		"one each": {{0}, {1}, {2}}, "two and one": {{0, 1}, {2}}, "one and two": {{0}, {1, 2}}, "interleaved": {{0, 2}, {1}},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			groups := tcpGroups(t, 3, hosts)
			defer abandon(groups)
			body(t, endsOf(groups))
		})
	}
}

// errExited stands for the error of a call that did not return because its goroutine ended.
var errExited = errors.New("the goroutine of the test ended")

// callOn runs call on three ranks and returns the error of each rank. If a rank panics, the
// test fails.
func callOn(t *testing.T, of ends, call func(c *Comm) error) []error {
	errs := []error{errExited, errExited, errExited}
	done := make(chan bool, len(errs))
	for r := range errs {
		go func() {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("rank %d: panic: %v", r, v)
				}
				done <- true
			}()
			errs[r] = call(of(r))
		}()
	}
	for range errs {
		<-done
	}
	return errs
}

// TestOperatorsThatBreakEndEveryCollective requires that all ranks get an error if the user's
// operator panics or ends its goroutine, in every collective and algorithm. A rank that has
// completed its part before the failure gets the error from the Barrier that follows the
// collective.
func TestOperatorsThatBreakEndEveryCollective(t *testing.T) {
	for what, act := range map[string]func(dst, src []int64){
		"panic": func(_, _ []int64) { panic("index 7") },
		"exit":  func(_, _ []int64) { runtime.Goexit() },
	} {
		op := UserOp("bad", true, act)
		for name, call := range reductionsBy(op, 300) {
			t.Run(what+"/"+name, func(t *testing.T) {
				executors(t, func(t *testing.T, of ends) {
					for r, err := range callOn(t, of, func(c *Comm) error {
						if err := call(c); err != nil {
							return err
						}
						return c.Barrier(context.Background())
					}) {
						require.Error(t, err, "rank %d", r)
						if what == "panic" {
							require.ErrorContains(t, err, "index 7", "rank %d", r)
						} else if err != errExited {
							require.ErrorContains(t, err, "goroutine", "rank %d", r)
						}
					}
				})
			})
		}
	}
}

// reductionsBy returns, by name, calls of all collectives that reduce, on n elements, with and
// without a named algorithm.
func reductionsBy(op Op[int64], n int) map[string]func(c *Comm) error {
	buffer := func(n int) []int64 { return make([]int64, n) }
	calls := map[string]func(c *Comm) error{}
	for _, named := range []bool{false, true} {
		by := func(name string) string {
			if !named {
				name = ""
			}
			return name
		}
		add := func(name string, call func(c *Comm) error) { calls[fmt.Sprintf("%s named=%t", name, named)] = call }
		add("Reduce", func(c *Comm) error {
			return Reduce(c, 0, op, buffer(n), buffer(n), WithAlgorithm(by("binomial")))
		})
		add("ReduceScatter", func(c *Comm) error {
			return ReduceScatter(c, op, buffer(n), buffer(n/3), WithAlgorithm(by("direct")))
		})
		add("Scan", func(c *Comm) error { return Scan(c, op, buffer(n), buffer(n), WithAlgorithm(by("chain"))) })
		add("Exscan", func(c *Comm) error { return Exscan(c, op, buffer(n), buffer(n), WithAlgorithm(by("chain"))) })
		for _, name := range []string{"ring", "direct"} {
			add("AllReduce "+name, func(c *Comm) error {
				return AllReduce(c, &Reduction[int64]{Name: "x", Op: op, Whole: buffer(n), Out: buffer(n), Algorithm: by(name)})
			})
			add("AllReduce of forests "+name, func(c *Comm) error {
				req := Reduction[int64]{Name: "x", Op: op, Shards: 16, Out: buffer(n), Algorithm: by(name)}
				own := sharding.Split(16, 3, c.Rank())
				for s := own.Lo; s < own.Hi; s++ {
					req.Forest = append(req.Forest, sharding.Entry[[]int64]{Node: sharding.Leaf(s), Value: buffer(n)})
				}
				return AllReduce(c, &req)
			})
		}
	}
	return calls
}

// TestAGoroutineThatEndsKeepsItsSlicesUntilOthersAreDone requires that no rank reads the slices
// of a rank any more when the deferred functions of that rank run, after an operator has ended
// its goroutine. The deferred functions write to the slices, so that the race detector reports
// such reads.
func TestAGoroutineThatEndsKeepsItsSlicesUntilOthersAreDone(t *testing.T) {
	const n = 3000
	for name, call := range map[string]func(c *Comm, op Op[int64], x []int64) error{
		"AllReduce": func(c *Comm, op Op[int64], x []int64) error {
			return AllReduce(c, &Reduction[int64]{Name: "x", Op: op, Whole: x, Out: x})
		},
		"Scan": func(c *Comm, op Op[int64], x []int64) error { return Scan(c, op, x, x) },
	} {
		for range 20 {
			g := groupWithLimit(3, 0)
			callOn(t, g.Rank, func(c *Comm) error {
				x := make([]int64, n)
				defer clear(x)
				return call(c, UserOp("bad", true, func(dst, src []int64) {
					if c.Rank() == 1 {
						runtime.Goexit()
					}
					for i := range dst {
						dst[i] += src[i]
					}
				}), x)
			})
			require.ErrorContains(t, g.Err(), "goroutine ended", name)
		}
	}
}
