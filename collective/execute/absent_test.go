package execute

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// slow is a node whose connections wait one second before they read data.
type slow struct{ mesh.Node }

func (n slow) Open(ctx context.Context, routes []mesh.Route) ([]mesh.Conn, error) {
	conns, err := n.Node.Open(ctx, routes)
	for i := range conns {
		conns[i] = slowConn{conns[i]}
	}
	return conns, err
}

type slowConn struct{ mesh.Conn }

func (c slowConn) Read(b []byte) error {
	time.Sleep(time.Second)
	return c.Conn.Read(b)
}

// TestAbsentValuesPassOnWhatTheyWaitFor runs a program that sends a scratch slot in segments to
// a slow receiver, then has a step with an absent value, and then overwrites the slot. The step
// that overwrites the slot depends only on the step with the absent value, which takes no time
// itself. The test requires that the slot is nevertheless overwritten only after the whole slot
// is sent.
func TestAbsentValuesPassOnWhatTheyWaitFor(t *testing.T) {
	one := sharding.Range{Lo: 0, Hi: 1}
	in := func(node int) program.Ref { return program.Chunk(program.In, node, 0) }
	slot := func(k int) program.Ref { return program.Chunk(program.Scratch, k, 0) }
	for name, absent := range map[string]program.Instruction{
		"recv":   {Op: program.DoRecv, Dst: slot(0)},
		"send":   {Op: program.DoSend, Src: []program.Ref{in(1)}},
		"copy":   {Op: program.DoCopy, Dst: slot(1), Src: []program.Ref{in(1)}},
		"reduce": {Op: program.DoReduce, Dst: slot(1), Src: []program.Ref{in(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			absent.After = []program.Dep{{Lane: 1, Step: 0}}
			zero := &program.Program{
				Collective: program.AllReduce, Algorithm: "overwrite", P: 2, Rank: 0, Root: -1, Chunks: 1,
				In: one, Nodes: []sharding.Node{sharding.Leaf(0), sharding.Leaf(1), sharding.Leaf(2)}, Forest: 1,
				Scratch: []sharding.Range{one, one},
				Lanes: []program.Lane{
					{SendPeer: -1, RecvPeer: -1, Steps: []program.Instruction{
						{Op: program.DoCopy, Dst: slot(0), Src: []program.Ref{in(0)}},
						{Op: program.DoCopy, Dst: slot(0), Src: []program.Ref{in(2)}, After: []program.Dep{{Lane: 2, Step: 0}}},
					}},
					{SendPeer: 1, RecvPeer: -1, Steps: []program.Instruction{
						{Op: program.DoSend, Src: []program.Ref{slot(0)}, After: []program.Dep{{Lane: 0, Step: 0}}},
					}},
					{SendPeer: 1, RecvPeer: 1, Channel: 1, Steps: []program.Instruction{absent}},
				},
			}
			other := &program.Program{
				Collective: program.AllReduce, Algorithm: "overwrite", P: 2, Rank: 1, Root: -1, Chunks: 1,
				In: one, Out: one, Nodes: []sharding.Node{sharding.Leaf(3)}, Forest: 1, Scratch: []sharding.Range{one},
				Lanes: []program.Lane{{SendPeer: -1, RecvPeer: 0, Steps: []program.Instruction{
					{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, 0)},
				}}},
			}
			switch name {
			case "recv":
				other.Lanes = append(other.Lanes, program.Lane{SendPeer: 0, RecvPeer: -1, Channel: 1, Steps: []program.Instruction{
					{Op: program.DoSend, Src: []program.Ref{in(0)}}}})
			case "send":
				other.Lanes = append(other.Lanes, program.Lane{SendPeer: -1, RecvPeer: 0, Channel: 1, Steps: []program.Instruction{
					{Op: program.DoRecv, Dst: slot(0)}}})
			}
			synctest.Test(t, func(t *testing.T) {
				// Segments are so long that the connection reads them from the sender's memory.
				const n, segment = 6 * 512, 4096
				nodes := inMemory(t, 2)
				nodes[1] = slow{nodes[1]}
				progs := []*program.Program{zero, other}
				m := newTeam(t, nodes, progs, Options{Segment: segment, SerialLimit: -1})
				defer m.close()
				k := &task{progs: progs, kind: floats, absent: [][]bool{{false, true, false}, {true}}}
				for range progs {
					k.layouts = append(k.layouts, program.Even(n, 1))
				}
				ms, _, errs := m.run(k)
				require.NoError(t, errs[0])
				require.NoError(t, errs[1])
				require.Equal(t, k.in(0, 0), ms[1].out)
			})
		})
	}
}
