package collective

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestRulesAreFollowed requires that a group uses the algorithm that a rule of its tuner names.
func TestRulesAreFollowed(t *testing.T) {
	for _, name := range []string{"ring", "binomial", "direct"} {
		rules := []tune.Rule{{Collective: program.AllReduce, Choice: tune.Choice{Algorithm: name}}}
		groups := tcpGroups(t, 3, nil, func(cfg *TCPConfig) { cfg.Tuning = &tune.Tuner{Rules: rules} })
		for _, err := range outcomesOf(groups, 3, func(c *Comm) error {
			x := []int64{1, 2, 3, 4}
			err := AllReduce(c, &Reduction[int64]{Name: "x", Op: Sum[int64](), Whole: x, Out: x})
			if by := c.Describe().Algorithm; err == nil && (by != name || fmt.Sprint(x) != "[3 6 9 12]") {
				err = fmt.Errorf("%v by %s", x, by)
			}
			return err
		}) {
			require.NoError(t, err, name)
		}
		closeAll(t, groups)
	}
}

// TestRulesThatCannotBeFollowedEndTheGroup requires that all ranks get the error if a rule of
// rank 0 cannot be followed. Only the rules of rank 0 are used.
func TestRulesThatCannotBeFollowedEndTheGroup(t *testing.T) {
	for want, choice := range map[string]tune.Choice{
		"torus:4x8":                {Algorithm: "torus", Dims: []int{4, 8}},
		`no algorithm "nope"`:      {Algorithm: "nope"},
		"segments of -5 bytes":     {Algorithm: "direct", Segment: -5},
		"on 600 channels":          {Algorithm: "direct", Channels: 600},
		"takes more than 512 byte": {Algorithm: "blueconnect", Dims: append([]int{3}, ones(400)...)},
	} {
		groups := tcpGroups(t, 3, nil, func(cfg *TCPConfig) {
			cfg.Tuning = &tune.Tuner{Rules: []tune.Rule{{Collective: program.AllReduce, Choice: choice}}}
		})
		for _, err := range outcomesOf(groups, 3, func(c *Comm) error { return AllReduce(c, wholeOf(100)) }) {
			require.ErrorContains(t, err, want)
		}
		abandon(groups)
	}
}

func ones(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// TestMessagesAllocateNothing requires that Send and Recv in a loop allocate nothing, in memory
// and over TCP.
func TestMessagesAllocateNothing(t *testing.T) {
	groups := tcpGroups(t, 2, nil)
	defer closeAll(t, groups)
	local := NewLocalGroup(2)
	for name, of := range map[string]ends{"messages": local.Rank, "TCP": endsOf(groups)} {
		const turns = 100
		step, done := make(chan bool), make(chan error)
		ctx := t.Context()
		go func() {
			x := make([]float64, 8)
			for range step {
				var err error
				for k := 0; k < turns && err == nil; k++ {
					if err = Recv(of(1), 0, 1, x, WithContext(ctx)); err == nil {
						err = Send(of(1), 0, 1, x)
					}
				}
				done <- err
			}
		}()
		x := make([]float64, 8)
		run := func() {
			step <- true
			for range turns {
				if err := Send(of(0), 1, 1, x, WithContext(ctx)); err != nil {
					t.Error(err)
				}
				if err := Recv(of(0), 1, 1, x); err != nil {
					t.Error(err)
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		run()
		allocs := testing.AllocsPerRun(5, run)
		close(step)
		if !testsize.Race {
			require.Less(t, allocs/turns, 0.1, name)
		}
	}
	local.Rank(0).Close(nil)
	local.Rank(1).Close(nil)
}
