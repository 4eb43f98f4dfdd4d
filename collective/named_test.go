package collective

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestCanonicalAlgorithmsGiveTheBitsOfSharedMemory requires that every algorithm that claims
// the canonical tree gives the same bits as shared memory, for whole buffers and forests of
// hostile data.
func TestCanonicalAlgorithmsGiveTheBitsOfSharedMemory(t *testing.T) {
	const n, shards = 37, 16
	for p := 1; p <= 9; p++ {
		g := NewLocalGroup(p)
		leaves := make([][]float64, shards)
		for s := range leaves {
			if s%5 != 3 {
				leaves[s] = hostile(uint64(100+s), n)
			}
		}
		reduce := func(algorithm string, forest bool) []float64 {
			outs := make([][]float64, p)
			for _, err := range onRanks(g, func(c *Comm) error {
				r := c.Rank()
				outs[r] = make([]float64, n)
				req := &Reduction[float64]{Name: "x", Op: Sum[float64](), Out: outs[r], Algorithm: algorithm}
				if !forest {
					copy(outs[r], hostile(uint64(r), n))
					req.Whole = outs[r]
					return AllReduce(c, req)
				}
				req.Shards = shards
				own := sharding.Split(shards, p, r)
				for s := own.Lo; s < own.Hi; s++ {
					if leaves[s] != nil {
						req.Forest = append(req.Forest, sharding.Entry[[]float64]{Node: sharding.Leaf(s), Value: leaves[s]})
					}
				}
				return AllReduce(c, req)
			}) {
				require.NoError(t, err, algorithm)
			}
			for _, out := range outs {
				require.Equal(t, bitsOf(outs[0]), bitsOf(out), algorithm)
			}
			return outs[0]
		}
		wantWhole, wantForest := reduce("", false), reduce("", true)
		require.Equal(t, bitsOf(treeOverShards(Sum[float64](), leaves)), bitsOf(wantForest))
		for _, a := range algorithm.For(program.AllReduce) {
			if a.Supports(algorithm.Params{P: p}) != nil {
				continue
			}
			whole, forest := reduce(a.Name, false), reduce(a.Name, true)
			if a.Canonical != nil && a.Canonical(p) {
				require.Equal(t, bitsOf(wantWhole), bitsOf(whole), "%s p=%d", a.Name, p)
				if a.Forests == algorithm.AnyForest {
					require.Equal(t, bitsOf(wantForest), bitsOf(forest), "%s p=%d", a.Name, p)
				}
			}
		}
		for r := range p {
			g.Rank(r).Close(nil)
		}
	}
}

func TestAlgorithmsThatCannotServeAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"rign":    `no algorithm "rign" for allreduce (did you mean ring`,
		"ring:0":  `"0" is no dimension`,
		"ring:2x": `"" is no dimension`,
	} {
		g := NewLocalGroup(2)
		for _, err := range onRanks(g, func(c *Comm) error {
			x := make([]float64, 4)
			return AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x, Algorithm: name})
		}) {
			require.ErrorContains(t, err, want)
		}
	}
	// A ring starts the fold of each chunk at a different rank, so the operator must commute.
	g := NewLocalGroup(3)
	for _, err := range onRanks(g, func(c *Comm) error {
		x := make([]int64, 4)
		return AllReduce(c, &Reduction[int64]{Name: "x", Op: chain(), Whole: x, Out: x, Algorithm: "ring"})
	}) {
		require.ErrorContains(t, err, `ring allreduce among 3 ranks does not keep the order of ranks, and operator "chain" does not commute`)
	}
}

func TestMessagesFromRankToRank(t *testing.T) {
	const p = 4
	g := NewLocalGroup(p)
	for _, err := range onRanks(g, func(c *Comm) error {
		defer c.Close(nil)
		// Each rank sends two messages to the next rank, which receives the second message
		// first.
		next, before := (c.Rank()+1)%p, (c.Rank()+p-1)%p
		big := make([]float64, 300_000)
		for i := range big {
			big[i] = float64(c.Rank() + i)
		}
		send := func() error {
			if err := Send(c, next, 1, []int32{int32(c.Rank())}); err != nil {
				return err
			}
			return Send(c, next, 2, big)
		}
		receive := func() error {
			got := make([]float64, len(big))
			if err := Recv(c, before, 2, got); err != nil {
				return err
			}
			for i, v := range got {
				if v != float64(before+i) {
					return fmt.Errorf("element %d is %v, which was not sent", i, v)
				}
			}
			one := make([]int32, 1)
			if err := Recv(c, before, 1, one); err != nil || one[0] != int32(before) {
				return fmt.Errorf("the message with tag 1 is wrong: %v, error %w", one, err)
			}
			return nil
		}
		// Only one goroutine at a time may use a Comm, so a rank cannot send and receive at the
		// same time. Therefore even ranks send first and odd ranks receive first.
		if c.Rank()%2 == 0 {
			if err := send(); err != nil {
				return err
			}
			return receive()
		}
		if err := receive(); err != nil {
			return err
		}
		return send()
	}) {
		require.NoError(t, err)
	}
}

func TestAMessageOfAnotherLengthEndsTheGroup(t *testing.T) {
	g := NewLocalGroup(2)
	errs := onRanks(g, func(c *Comm) error {
		if c.Rank() == 0 {
			Send(c, 1, 7, make([]int64, 3))
			return c.Barrier(t.Context())
		}
		return Recv(c, 0, 7, make([]int64, 4))
	})
	for _, err := range errs {
		require.ErrorContains(t, err, "24 bytes of int64 where 32 bytes of int64 are expected")
	}
}

// TestMessagesAndSharedMemoryDisagree requires that all ranks get a MismatchError if one rank
// names an algorithm, and so sends messages, while the other ranks wait in shared memory.
func TestMessagesAndSharedMemoryDisagree(t *testing.T) {
	g := NewLocalGroup(3)
	for _, err := range onRanks(g, func(c *Comm) error {
		x := make([]float64, 4)
		req := &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}
		if c.Rank() == 1 {
			req.Algorithm = "ring"
		}
		return AllReduce(c, req)
	}) {
		var m *MismatchError
		require.ErrorAs(t, err, &m)
		require.ErrorContains(t, err, "by ring")
	}
}
