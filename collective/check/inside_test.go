package check

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
	"pgregory.net/rapid"
)

// TestClocks compares the results of sparse clocks with the results of maps.
func TestClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var clocks []clock
		var dense []map[int32]int32
		for range rapid.IntRange(1, 30).Draw(t, "clocks") {
			c, d := clock(nil), map[int32]int32{}
			if len(clocks) > 1 && rapid.Bool().Draw(t, "merge") {
				a, b := rapid.IntRange(0, len(clocks)-1).Draw(t, "a"), rapid.IntRange(0, len(clocks)-1).Draw(t, "b")
				c = clocks[a].merge(clocks[b])
				for _, from := range []int{a, b} {
					for h, upTo := range dense[from] {
						d[h] = max(d[h], upTo)
					}
				}
			} else {
				h, upTo := rapid.Int32Range(0, 6).Draw(t, "half"), rapid.Int32Range(1, 5).Draw(t, "upTo")
				c, d[h] = clock{{h, upTo}}, upTo
			}
			clocks, dense = append(clocks, c), append(dense, d)
		}
		for i, c := range clocks { // all clocks are compared, since merging a clock into another must not change it
			require.Len(t, c, len(dense[i]))
			for h := range int32(8) {
				require.Equal(t, dense[i][h], c.at(h))
			}
		}
	})
}

// TestForeignLeavesAreFound requires that onceEach finds wrong leaves in terms that no valid
// program can compute.
func TestForeignLeavesAreFound(t *testing.T) {
	c := &checker{sources: []source{{rank: 0}, {rank: 1}}}
	c.terms.init()
	_, err := c.onceEach(folded{c.terms.join(c.terms.leaf(0, 3), c.terms.leaf(1, 2)), 2, 3})
	require.ErrorContains(t, err, "(0[3] 1[2]): has 1[2]")
	ordered, err := c.onceEach(folded{c.terms.join(c.terms.leaf(1, 3), c.terms.leaf(0, 3)), 2, 3})
	require.NoError(t, err)
	require.False(t, ordered)
	_, err = c.onceEach(folded{c.terms.join(c.terms.leaf(0, 3), c.terms.leaf(1, 3)), 1, 3})
	require.ErrorContains(t, err, "has 1 1 times")
	// A term that is joined with itself sixty times has more leaves than can be examined.
	x := c.terms.leaf(0, 3)
	for range 60 {
		x = c.terms.join(x, x)
	}
	_, err = c.onceEach(folded{x, 2, 3})
	require.ErrorContains(t, err, "has 0 7 times")
	require.Less(t, len(c.text(x)), 500)
}

// TestWrongSerialOrdersAreFound requires errors for serial orders that do not fit the programs.
func TestWrongSerialOrdersAreFound(t *testing.T) {
	s := program.Chunk(program.Scratch, 0, 0)
	ring := func(p int) []*program.Program {
		programs := make([]*program.Program, p)
		for r := range programs {
			l := program.Lane{SendPeer: (r + 1) % p, RecvPeer: (r + p - 1) % p, Steps: []program.Instruction{
				{Op: program.DoSend, Src: []program.Ref{s}},
				{Op: program.DoRecvCopySend, Dst: s},
				{Op: program.DoRecv, Dst: s, After: []program.Dep{{Lane: 0, Step: 1}}},
			}}
			programs[r] = &program.Program{P: p, Rank: r, Lanes: []program.Lane{l}}
		}
		return programs
	}
	send := func(step int) program.Part { return program.Part{Step: step, Send: true} }
	recv := func(step int) program.Part { return program.Part{Step: step} }
	order := func(parts ...program.Part) error {
		return serial(ring(3), func(*program.Program) ([]program.Part, error) { return parts, nil })
	}
	require.NoError(t, order(send(0), recv(1), send(1), recv(2)))
	require.NoError(t, serial(ring(4), program.SerialOrder))
	require.ErrorContains(t, order(send(0), recv(1), send(1)), "leaves out lane 0 step 2 (recv scratch0[0] after 0.1)")
	require.ErrorContains(t, order(send(0), recv(1), recv(2), send(1)), "before lane 0 step 1 (recv-copy-send scratch0[0])")
	require.ErrorContains(t, order(send(0), send(1), recv(1), recv(2)), "before its receiving")
	require.ErrorContains(t, order(send(0), send(0)), "(send scratch0[0]) twice")
	require.ErrorContains(t, order(recv(2)), "before lane 0 step 1")
	require.ErrorContains(t, order(recv(0)), "does not exist")
	require.ErrorContains(t, order(send(7)), "does not exist")
	require.ErrorContains(t, order(recv(1), send(0), send(1), recv(2)), "serial execution does not end: rank 0 waits at lane 0 step 1")

	circle := ring(3)
	circle[1].Lanes[0].Steps[1].After = []program.Dep{{Lane: 0, Step: 2}}
	require.Error(t, serial(circle, program.SerialOrder))
}
