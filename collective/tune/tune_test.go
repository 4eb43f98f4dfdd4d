package tune

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func query(c program.Collective, p, bytes int) Query {
	return Query{Collective: c, Params: algorithm.Params{P: p}, Bytes: bytes, Elem: 8}
}

// TestTheCheapestCompetitorIsChosen compares every choice with the price of each algorithm. It
// requires that the choice has the least price, or that it has the fewest steps among the
// algorithms whose prices are within 3 % of the least price.
func TestTheCheapestCompetitorIsChosen(t *testing.T) {
	net, err := simulate.Preset("10gbe")
	require.NoError(t, err)
	for _, c := range []program.Collective{program.AllReduce, program.Broadcast, program.AllGather, program.ReduceScatter, program.Barrier} {
		for _, p := range []int{1, 2, 3, 6, 8} {
			for _, bytes := range []int{0, 8, 32 << 10, 4 << 20} {
				q := query(c, p, bytes)
				d, err := (&Tuner{Network: net, AnyTree: true}).Choose(t.Context(), q)
				require.NoError(t, err)
				i := slices.IndexFunc(d.Candidates, func(c Candidate) bool { return c.Algorithm == d.Algorithm })
				chosen, err := algorithm.Find(c, d.Algorithm)
				require.NoError(t, err)
				for _, a := range algorithm.For(c) {
					if a.Supports(q.Params) != nil {
						continue
					}
					r, err := simulate.Price(t.Context(), a, q.Params, bytes, 8, net, simulate.Options{MaxSegments: maxSegments})
					require.NoError(t, err)
					require.LessOrEqual(t, d.Candidates[0].Seconds, r.Time, d.Explain())
					if d.Candidates[i].Seconds > r.Time {
						require.LessOrEqual(t, d.Candidates[i].Seconds, 1.03*d.Candidates[0].Seconds, "%s is cheaper: %s", a.Name, d.Explain())
						require.LessOrEqual(t, chosen.Cost(q.Params).Steps, a.Cost(q.Params).Steps, "%s is cheaper: %s", a.Name, d.Explain())
					}
				}
			}
		}
	}
}

// TestLongDataTravelsInLongSegments requires that segments are long if each segment wakes a
// sleeping rank, and that they are not long if a pipeline would then fill more slowly.
func TestLongDataTravelsInLongSegments(t *testing.T) {
	for _, p := range []int{4, 8} {
		d, err := Default().Choose(t.Context(), query(program.AllReduce, p, 64<<20))
		require.NoError(t, err)
		require.GreaterOrEqual(t, d.Segment, 1<<20, d.Explain())
		d, err = Default().Choose(t.Context(), query(program.AllReduce, p, 1<<20))
		require.NoError(t, err)
		require.Zero(t, d.Segment, d.Explain())
	}
	net, err := simulate.Preset("10gbe")
	require.NoError(t, err)
	d, err := (&Tuner{Network: net}).Choose(t.Context(), query(program.Broadcast, 64, 8<<20))
	require.NoError(t, err)
	i := slices.IndexFunc(d.Candidates, func(c Candidate) bool { return c.Algorithm == "chain" })
	require.Zero(t, d.Candidates[i].Segment, d.Explain())
}

// TestFewMessagesWinWhereCoresAreFew requires that, for the presumed network of one host, the
// algorithms chosen for barriers are the fastest ones in measurements on two cores.
func TestFewMessagesWinWhereCoresAreFew(t *testing.T) {
	for p, want := range map[int]string{2: "tree", 4: "linear", 8: "linear"} { // for 2 ranks, tree and linear are the same
		d, err := Default().Choose(t.Context(), query(program.Barrier, p, 0))
		require.NoError(t, err)
		require.Equal(t, want, d.Algorithm, d.Explain())
	}
}

// TestTheBestOfTwoCoresIsPresumed requires that the choices for the presumed network of one
// host are algorithms in good. In interleaved measurements between processes on two cores, the
// algorithms in good took at most 1.2 times as long as the best algorithm. A choice for sizes
// up to a power of two is made for three quarters of that power.
func TestTheBestOfTwoCoresIsPresumed(t *testing.T) {
	for _, x := range []struct {
		ranks, from, to int
		good            []string
	}{
		{2, 8, 128 << 10, []string{"linear", "binomial"}},
		{2, 256 << 10, 256 << 10, []string{"recursive-doubling", "allgather-reduce"}},
		{4, 512, 32 << 10, []string{"linear"}},
		{8, 8, 4 << 10, []string{"linear"}},
		{8, 32 << 10, 32 << 10, []string{"linear"}},
		{8, 256 << 10, 256 << 10, []string{"linear", "binomial", "blueconnect"}},
		{4, 1 << 20, 4 << 20, []string{"direct"}},
	} {
		for bytes := x.from; bytes <= x.to; bytes *= 2 {
			d, err := Default().Choose(t.Context(), query(program.AllReduce, x.ranks, bytes*3/4))
			require.NoError(t, err)
			require.Contains(t, x.good, d.Algorithm, d.Explain())
		}
	}
}

// TestNeitherSizeNorNetworkChangesABit requires that the choices for reductions of all sizes on
// all networks fold in the canonical tree.
func TestNeitherSizeNorNetworkChangesABit(t *testing.T) {
	for _, name := range simulate.Presets() {
		net, err := simulate.Preset(name)
		require.NoError(t, err)
		for _, c := range []program.Collective{program.AllReduce, program.Reduce, program.ReduceScatter, program.Scan, program.Exscan} {
			for p := 1; p <= 9; p++ {
				for _, bytes := range []int{8, 64 << 10, 16 << 20} {
					d, err := (&Tuner{Network: net}).Choose(t.Context(), query(c, p, bytes))
					require.NoError(t, err)
					a, err := algorithm.Find(c, d.Algorithm)
					require.NoError(t, err)
					require.True(t, a.Canonical(p), "%s for %s of %d bytes among %d", a.Name, c, bytes, p)
				}
			}
		}
	}
}

func TestOperatorsThatDoNotCommuteKeepTheirOrder(t *testing.T) {
	q := query(program.AllReduce, 6, 1<<20)
	q.InOrder = true
	d, err := (&Tuner{Network: Default().Network, AnyTree: true}).Choose(t.Context(), q)
	require.NoError(t, err)
	for _, c := range d.Candidates {
		a, err := algorithm.Find(q.Collective, c.Algorithm)
		require.NoError(t, err)
		if c.Refused == "" {
			require.True(t, a.RankOrder(6), a.Name)
		}
	}
}

func TestForestsAndUnevenBlocks(t *testing.T) {
	q := query(program.AllReduce, 3, 1<<10)
	for r := range 3 {
		q.Params.Forest = append(q.Params.Forest, sharding.Cover(sharding.Split(16, 3, r)))
	}
	d, err := Default().Choose(t.Context(), q)
	require.NoError(t, err)
	a, err := algorithm.Find(q.Collective, d.Algorithm)
	require.NoError(t, err)
	require.Equal(t, algorithm.AnyForest, a.Forests)

	q = query(program.AllToAll, 4, 1<<10)
	q.Uneven = true
	d, err = Default().Choose(t.Context(), q)
	require.NoError(t, err)
	i := slices.IndexFunc(d.Candidates, func(c Candidate) bool { return c.Algorithm == "bruck" })
	require.Equal(t, "takes blocks of even lengths only", d.Candidates[i].Refused)
}

func TestRulesComeFirst(t *testing.T) {
	rules, err := ReadRules(strings.NewReader(`{"rules": [
		{"collective": "allreduce", "max_bytes": 4096, "algorithm": "ring", "segment": 65536},
		{"collective": "allreduce", "min_ranks": 4, "max_ranks": 8, "algorithm": "torus:2x3", "channels": 2}
	]}`))
	require.NoError(t, err)
	tuner := Default()
	tuner.Rules = rules
	d, err := tuner.Choose(t.Context(), query(program.AllReduce, 6, 100))
	require.NoError(t, err)
	require.Equal(t, Choice{Algorithm: "ring", Segment: 65536}, d.Choice)
	d, err = tuner.Choose(t.Context(), query(program.AllReduce, 6, 5000))
	require.NoError(t, err)
	require.Equal(t, Choice{Algorithm: "torus", Dims: []int{2, 3}, Channels: 2}, d.Choice)
	require.Contains(t, d.Explain(), "allreduce of 4 to 8 ranks by torus:2x3, 2 channels")
	_, err = tuner.Choose(t.Context(), query(program.AllReduce, 8, 5000))
	require.ErrorContains(t, err, "torus:2x3", "a rule that cannot be followed must be an error")
	d, err = tuner.Choose(t.Context(), query(program.AllReduce, 9, 5000))
	require.NoError(t, err)
	require.Nil(t, d.Rule)
}

func TestInvalidRules(t *testing.T) {
	for text, want := range map[string]string{
		`{"rules": [{"collective": "allreduce", "algorithm": "rign"}]}`:                                 `tuning rule 1: no algorithm "rign"`,
		`{"rules": [{"collective": "reduceall", "algorithm": "ring"}]}`:                                 `tuning rule 1: no collective "reduceall"`,
		`{"rules": [{"collective": "allreduce", "algorithm": "ring", "bytes": 3}]}`:                     `unknown field "bytes"`,
		`{"rules": [{"collective": "allreduce", "algorithm": "ring", "min_ranks": 9, "max_ranks": 3}]}`: "its least is above its most",
		`{"rules": [{"collective": "allreduce", "algorithm": "ring", "segment": -1}]}`:                  "-1 is below zero",
		`{"rules": [{"collective": "allreduce", "algorithm": "torus:ax2"}]}`:                            `"a" is no dimension`,
		`{"rules": []} {}`: "more text after the rules",
		``:                 "EOF",
	} {
		_, err := ReadRules(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzReadRules(f *testing.F) {
	f.Add(`{"rules": [{"collective": "allreduce", "max_bytes": 4096, "algorithm": "torus:2x2"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ReadRules(strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range rules {
			if _, err := algorithm.Find(rules[i].Collective, rules[i].Choice.Algorithm); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func ExampleTuner_Choose() {
	d, err := Default().Choose(context.Background(), Query{
		Collective: program.AllGather, Params: algorithm.Params{P: 6}, Bytes: 480, Elem: 8,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range strings.Split(d.Explain(), "\n") {
		if strings.Contains(line, "power of two") {
			fmt.Println(strings.Join(strings.Fields(line), " "))
		}
	}
	// Output:
	// recursive-doubling 6 ranks are not a power of two; bruck serves any number
}

func TestMeasurementsCorrectTheModel(t *testing.T) {
	q := query(program.AllReduce, 8, 1<<20)
	plain, err := Default().Choose(t.Context(), q)
	require.NoError(t, err)
	tuner := Default()
	for _, bytes := range []int{1 << 10, 1 << 22} {
		tuner.Corrections = append(tuner.Corrections, Correction{program.AllReduce, plain.Algorithm, 8, bytes, 1000})
	}
	d, err := tuner.Choose(t.Context(), q)
	require.NoError(t, err)
	require.NotEqual(t, plain.Algorithm, d.Algorithm)
	q.Params.P = 4 // nothing was measured for 4 ranks
	other, err := tuner.Choose(t.Context(), q)
	require.NoError(t, err)
	again, err := Default().Choose(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, again.Choice, other.Choice)

	tuner.Corrections = []Correction{{program.AllReduce, "ring", 4, 1 << 10, 2}, {program.AllReduce, "ring", 4, 1 << 20, 4}}
	for bytes, want := range map[int]float64{0: 2, 1 << 10: 2, 1 << 15: 3, 1 << 20: 4, 1 << 30: 4} {
		q.Bytes = bytes
		require.Equal(t, want, tuner.correction(q, "ring"))
	}
}
