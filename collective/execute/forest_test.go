package execute

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// forestOf divides shards 0..15 into contiguous ranges, one for each rank. Some ranges may be
// empty.
func forestOf(p, seed int) [][]sharding.Node {
	const shards = 16
	forest := make([][]sharding.Node, p)
	lo := 0
	for r := range p {
		hi := shards
		if r < p-1 {
			hi = min(shards, lo+int(mix(uint64(seed*100+r))%uint64(2*shards/p+1)))
		}
		forest[r] = append([]sharding.Node{}, sharding.Cover(sharding.Range{Lo: lo, Hi: hi})...)
		lo = hi
	}
	return forest
}

// absences returns, by rank and node, whether a node is absent. A node is absent with
// probability of4/4.
func absences(forest [][]sharding.Node, seed, of4 int) [][]bool {
	absent := make([][]bool, len(forest))
	for r, nodes := range forest {
		for k := range nodes {
			absent[r] = append(absent[r], mix(uint64(seed*10000+r*100+k))%4 < uint64(of4))
		}
	}
	return absent
}

func TestForests(t *testing.T) {
	ran := 0
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			for p := 1; p <= 6; p++ {
				if testsize.Few && p != 3 && p != 6 {
					continue
				}
				for seed := range 3 {
					pr := algorithm.Params{P: p, Root: seed % p, Forest: forestOf(p, seed)}
					if seed == 2 { // algorithms that accept only one node per rank accept this forest too
						pr.Forest = onePerRank(p)
					}
					if a.Forests == algorithm.WholeOnly || a.Supports(pr) != nil {
						continue
					}
					ran++
					testForest(t, a, pr, seed)
				}
			}
		}
	}
	require.NotZero(t, ran)
}

func onePerRank(p int) [][]sharding.Node {
	forest := make([][]sharding.Node, p)
	for r := range forest {
		forest[r] = []sharding.Node{sharding.Leaf(r)}
	}
	return forest
}

func testForest(t *testing.T, a *algorithm.Algorithm, pr algorithm.Params, seed int) {
	progs := generate(a, pr)
	for _, mode := range modes {
		m := newTeam(t, inMemory(t, pr.P), progs, mode.opt)
		for _, n := range []int{0, 1, 203} {
			layouts := make([]program.Layout, pr.P)
			for r := range layouts {
				layouts[r] = program.Even(n, progs[0].Chunks)
			}
			for of4 := range 5 {
				for _, inPlace := range []bool{false, true} {
					where := fmt.Sprintf("%s %s p=%d root=%d %s n=%d absent %d of 4 in place: %t",
						a.Collective, a.Name, pr.P, pr.Root, mode.name, n, of4, inPlace)
					requireTask(t, m, &task{
						progs: progs, kind: floats, layouts: layouts, inPlace: inPlace,
						absent: absences(pr.Forest, seed, of4),
					}, where)
				}
			}
		}
		m.close()
	}
}

// mixedForests returns programs of two ranks in which the chunks of a reference have different
// origins, so that some may be absent and others present. Rank 0 copies chunk 0 of its first
// node and chunk 1 of its second node into one slot, and sends the slot. Rank 1 folds chunk 0
// of its first node and chunk 1 of its second node with the received chunks, folds its first
// node into the result, and sends the result back.
func mixedForests() []*program.Program {
	all := sharding.Range{Lo: 0, Hi: 2}
	at := program.Chunk
	span := func(b program.Buffer, slot int) program.Ref { return program.Span(b, slot, 0, 2) }
	pair := []sharding.FoldStep{{Left: 0, Right: 1}}
	zero := &program.Program{
		Collective: program.AllReduce, Algorithm: "patchwork", P: 2, Rank: 0, Root: -1, Chunks: 2,
		In: all, Out: all, Nodes: []sharding.Node{sharding.Leaf(0), sharding.Leaf(1)}, Forest: 1,
		Scratch: []sharding.Range{all, all},
		Lanes: []program.Lane{
			{SendPeer: -1, RecvPeer: -1, Steps: []program.Instruction{
				{Op: program.DoCopy, Dst: at(program.Scratch, 0, 0), Src: []program.Ref{at(program.In, 0, 0)}},
				{Op: program.DoCopy, Dst: at(program.Scratch, 0, 1), Src: []program.Ref{at(program.In, 1, 1)}},
				{Op: program.DoCopy, Dst: span(program.Scratch, 1), Src: []program.Ref{span(program.Scratch, 0)}},
			}},
			{SendPeer: 1, RecvPeer: 1, Steps: []program.Instruction{
				{Op: program.DoSend, Src: []program.Ref{span(program.Scratch, 1)}, After: []program.Dep{{Lane: 0, Step: 2}}},
				{Op: program.DoRecv, Dst: span(program.Out, 0)},
			}},
		},
	}
	one := &program.Program{
		Collective: program.AllReduce, Algorithm: "patchwork", P: 2, Rank: 1, Root: -1, Chunks: 2,
		In: all, Out: all, Nodes: []sharding.Node{sharding.Leaf(2), sharding.Leaf(3)}, Forest: 1,
		Scratch: []sharding.Range{all, all},
		Lanes: []program.Lane{
			{SendPeer: -1, RecvPeer: -1, Steps: []program.Instruction{
				{Op: program.DoCopy, Dst: at(program.Scratch, 0, 0), Src: []program.Ref{at(program.In, 0, 0)}},
				{Op: program.DoCopy, Dst: at(program.Scratch, 0, 1), Src: []program.Ref{at(program.In, 1, 1)}},
				{Op: program.DoReduce, Dst: span(program.Out, 0), Src: []program.Ref{span(program.Scratch, 1), span(program.In, 0)},
					Fold: pair, After: []program.Dep{{Lane: 1, Step: 0}}},
			}},
			{SendPeer: 0, RecvPeer: 0, Steps: []program.Instruction{
				{Op: program.DoRecvReduce, Dst: span(program.Scratch, 1), Src: []program.Ref{span(program.Scratch, 0)},
					RecvLeft: true, After: []program.Dep{{Lane: 0, Step: 1}}},
				{Op: program.DoSend, Src: []program.Ref{span(program.Out, 0)}, After: []program.Dep{{Lane: 0, Step: 2}}},
			}},
		},
	}
	return []*program.Program{zero, one}
}

func TestSomeChunksAbsent(t *testing.T) {
	progs := mixedForests()
	for _, mode := range modes {
		m := newTeam(t, inMemory(t, 2), progs, mode.opt)
		for _, n := range []int{0, 1, 2, 75} {
			for mask := range 16 {
				k := &task{
					progs: progs, kind: floats, layouts: []program.Layout{program.Even(n, 2), program.Even(n, 2)},
					absent: [][]bool{{mask&1 != 0, mask&2 != 0}, {mask&4 != 0, mask&8 != 0}},
				}
				ms, _, errs := m.run(k)
				for r := range progs {
					require.NoError(t, errs[r])
					for c := range 2 {
						var want []byte // fold of chunk c of node c of rank 0, node c of rank 1, and node 0 of rank 1
						for _, x := range [][]byte{k.chunk(0, c, c), k.chunk(1, c, c), k.chunk(1, 0, c)} {
							switch {
							case want == nil:
								want = append([]byte(nil), x...)
							case x != nil:
								sum{}.Fold(want, want, x)
							}
						}
						off := k.layouts[r].Out
						got := ms[r].out[off[c]*8 : off[c+1]*8]
						if want == nil {
							want = make([]byte, len(got))
						}
						if len(want) > 0 {
							require.Equal(t, want, got, "%s n=%d mask %04b rank %d chunk %d", mode.name, n, mask, r, c)
						}
					}
				}
			}
		}
		m.close()
	}
}
