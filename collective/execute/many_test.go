package execute

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// handOver returns the programs of a broadcast from rank 0 to rank 1 with one step per chunk.
func handOver(chunks int) []*program.Program {
	progs := make([]*program.Program, 2)
	for r := range progs {
		lane := program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer, Steps: make([]program.Instruction, chunks)}
		progs[r] = &program.Program{Collective: program.Broadcast, Algorithm: "by hand", P: 2, Rank: r, Chunks: chunks,
			Out: sharding.Range{Hi: chunks}}
		for c := range lane.Steps {
			if r == 0 {
				lane.SendPeer, lane.Steps[c] = 1, program.Instruction{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, c)}}
			} else {
				lane.RecvPeer, lane.Steps[c] = 0, program.Instruction{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, c)}
			}
		}
		progs[r].Lanes = []program.Lane{lane}
	}
	progs[0].In, progs[0].Out = progs[0].Out, sharding.Range{}
	return progs
}

// TestMoreMessagesThanHeadersCount sends the data of more than 2^16 steps, or more than 2^16
// segments of one step. It requires that all data arrives at the right positions, also in the
// next operation.
func TestMoreMessagesThanHeadersCount(t *testing.T) {
	const many = 1<<16 + 5
	for name, c := range map[string]struct {
		chunks int
		opt    Options
	}{
		"steps":              {many, Options{SerialLimit: -1}},
		"steps, in turn":     {many, Options{SerialLimit: 1 << 30}},
		"segments":           {1, Options{Segment: 8, SerialLimit: -1}},
		"segments, two ways": {1, Options{Segment: 8, SerialLimit: -1, Channels: 2}},
	} {
		for where, net := range map[string]network{"in memory": inMemory, "over TCP": overTCP} {
			if testsize.Race && name != "steps, in turn" {
				continue // slow under the race detector, which finds no other races in these cases
			}
			t.Run(name+" "+where, func(t *testing.T) {
				progs := handOver(c.chunks)
				m := newTeam(t, net(t, 2), progs, c.opt)
				defer m.close()
				for range 2 {
					in, out := make([]byte, 8*many), make([]byte, 8*many)
					integers.fill(in, int(m.seq), 0)
					m.seq++
					errs := everyone(2, func(r int) error {
						op := &Operation{Seq: m.seq, What: m.what, Elem: 8, Layout: program.Even(many, c.chunks), In: [][]byte{{}}, Out: []byte{}, Reducer: count{}}
						if r == 0 {
							op.In[0] = in
						} else {
							op.Out = out
						}
						_, err := m.runners[r].Run(op)
						return err
					})
					require.Equal(t, []error{nil, nil}, errs)
					require.True(t, string(in) == string(out), "the received data must equal the sent data")
				}
			})
		}
	}
}
