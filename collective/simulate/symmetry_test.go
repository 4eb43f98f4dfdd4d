package simulate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// networksOfBlocks returns networks that are invariant under some relabellings of 64 ranks.
func networksOfBlocks() map[string]*Network {
	tenGigabit, _ := Preset("10gbe")
	racks, _ := Preset("two-tier")
	racks.HostsPerRack = 4
	hosts, _ := Preset("two-tier")
	hosts.RanksPerHost, hosts.HostsPerRack = 2, 2
	tight, _ := Preset("10gbe")
	tight.Window, tight.RanksPerHost, tight.Cores = 1<<10, 4, 1
	return map[string]*Network{"flat": flat(), "10gbe": tenGigabit, "racks": racks, "hosts in racks": hosts, "tight": tight}
}

// TestSymmetryIsTheFullSimulation requires, for every algorithm with a symmetry, that
// simulating one rank of each class gives the same result as simulating all ranks.
func TestSymmetryIsTheFullSimulation(t *testing.T) {
	seen := map[string]int{}
	sizes := []int{4 << 10, 1 << 20}
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			for _, p := range []int{2, 6, 8, 12, 24, 36, 64} {
				pr := algorithm.Params{P: p}
				if a.Supports(pr) != nil {
					continue
				}
				for name, n := range networksOfBlocks() {
					// The number of elements is a multiple of the number of chunks, so that
					// lengths are not rounded.
					elements := a.Generate(pr, 0).Chunks * sizes[p%len(sizes)] / 512
					quick, err := Price(t.Context(), a, pr, elements*8, 8, n, Options{Segment: 16 << 10})
					require.NoError(t, err)
					if quick.Symmetry == nil {
						continue
					}
					seen[fmt.Sprintf("%s %s", c, a.Name)]++
					full, err := Price(t.Context(), a, pr, elements*8, 8, n, Options{Segment: 16 << 10, Full: true})
					require.NoError(t, err)
					require.Nil(t, full.Symmetry)
					require.Equal(t, p, quick.Symmetry.Checked)
					what := fmt.Sprintf("%s %s p=%d %s %s", c, a.Name, p, name, quick.Symmetry)
					require.Equal(t, full.Time, quick.Time, what)
					require.Equal(t, full.Finish, quick.Finish, what)
					require.Equal(t, [2]int{full.Messages, full.Bytes}, [2]int{quick.Messages, quick.Bytes}, what)
					require.Equal(t, [3]float64{full.NIC, full.Uplink, full.Cores}, [3]float64{quick.NIC, quick.Uplink, quick.Cores}, what)
				}
			}
		}
	}
	t.Log(seen)
	require.NotZero(t, seen["allreduce direct"])
}

// TestSymmetryRoundsUp requires that data whose length is not a multiple of the number of
// chunks takes the time of padded data, if symmetry is used.
func TestSymmetryRoundsUp(t *testing.T) {
	n := flat()
	filled := mustRun(t, work(16, 8*1008, ring), n, Options{})
	odd := mustRun(t, work(16, 8*1001, ring), n, Options{})
	full := mustRun(t, work(16, 8*1001, ring), n, Options{Full: true})
	require.Equal(t, filled.Time, odd.Time)
	require.LessOrEqual(t, full.Time, odd.Time)
	require.InEpsilon(t, full.Time, odd.Time, 0.01)
}

func TestSymmetriesFound(t *testing.T) {
	torus := func(p, rank int) *program.Program { // rows of 4 ranks: one step along the row, and one step along the column
		prog := blank("torus", p, rank, 1)
		x, y, rows := rank%4, rank/4, p/4
		prog.Lanes = []program.Lane{
			{SendPeer: y*4 + (x+1)%4, RecvPeer: y*4 + (x+3)%4},
			{SendPeer: (y+1)%rows*4 + x, RecvPeer: (y+rows-1)%rows*4 + x},
		}
		for l := range prog.Lanes {
			prog.Lanes[l].Steps = []program.Instruction{
				{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, 0)}},
				{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, 0)},
			}
		}
		return prog
	}
	// Rank 5 of each group of 8 has one more lane than the other ranks.
	odd := func(p, rank int) *program.Program {
		prog := ring(p, rank)
		if rank%8 == 5 {
			prog.Lanes = append(prog.Lanes, program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer})
		}
		return prog
	}
	racks, _ := Preset("two-tier")
	jittery := flat()
	jittery.Jitter = 0.1
	for _, c := range []struct {
		generate func(p, rank int) *program.Program
		p        int
		n        *Network
		want     string
		ranks    int
	}{
		{ring, 48, flat(), "rotation by 1", 1},
		{doubling, 32, flat(), "exclusive or", 1},
		{torus, 24, flat(), "rotation in 4 x 6", 1},
		{odd, 48, flat(), "rotation by 8", 8},
		{ring, 48, racks, "rotation by 16", 16},
		{doubling, 64, racks, "exclusive or of blocks of 16", 16},
		{ring, 47, racks, "none", 47},
		{chain, 16, flat(), "none", 16},
		{ring, 16, jittery, "none", 16},
	} {
		r := mustRun(t, work(c.p, 1<<16, c.generate), c.n, Options{})
		got := "none"
		if r.Symmetry != nil {
			got = r.Symmetry.String()
		}
		require.Equal(t, c.want, got)
		require.Equal(t, c.ranks, r.Ranks)
	}
}

// TestSymmetryIsCheckedOnEveryRank requires that no symmetry is used for programs that are
// symmetric except for one rank.
func TestSymmetryIsCheckedOnEveryRank(t *testing.T) {
	for odd := range 32 {
		r := mustRun(t, work(32, 1<<12, func(p, rank int) *program.Program {
			prog := ring(p, rank)
			if rank == odd {
				prog.Lanes = append(prog.Lanes, program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer})
			}
			return prog
		}), flat(), Options{})
		require.Nil(t, r.Symmetry)
	}
}
