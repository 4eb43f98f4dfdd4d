package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// TestClosedForms requires that predicted times on an ideal network equal the formulas of
// textbooks up to rounding.
func TestClosedForms(t *testing.T) {
	n := flat()
	a, b := n.Rack.Latency+n.SendOverhead+n.RecvOverhead, 1/n.Rack.Bandwidth+n.SendCopy+n.RecvCopy
	for _, p := range []int{2, 4, 8, 16, 64} {
		for _, bytes := range []int{0, 64 * 8, 64 << 14} {
			size, chunk := float64(bytes), float64(bytes)/float64(p)
			steps, log := float64(2*(p-1)), float64(bits.Len(uint(p))-1)
			for _, c := range []struct {
				name     string
				generate func(p, rank int) *program.Program
				want     float64
			}{
				{"ring", ring, steps*(a+b*chunk) + steps/2*n.Gamma*chunk},
				{"doubling", doubling, log * (a + (b+n.Gamma)*size)},
				{"chain", chain, float64(p-1) * (a + b*size)},
				// Each message has its own core. The times on the wire add up.
				{"direct", direct, 2*(a+(n.SendCopy+n.RecvCopy)*chunk+float64(p-1)*chunk/n.Rack.Bandwidth) +
					float64(p-1)*n.Gamma*chunk},
			} {
				r := mustRun(t, work(p, bytes, c.generate), n, whole)
				require.InEpsilon(t, c.want, r.Time, 1e-9, "%s p=%d bytes=%d", c.name, p, bytes)
			}
		}
	}
}

func direct(p, rank int) *program.Program {
	return algorithm.Direct().Generate(algorithm.Params{P: p}, rank)
}

// TestChainsArePipelined requires that every chain algorithm of package algorithm is a
// pipeline: folds and copies of a segment must not delay later segments.
func TestChainsArePipelined(t *testing.T) {
	const p, bytes = 8, 16 << 20
	n := flat()
	for _, c := range []program.Collective{program.Broadcast, program.Scan, program.Exscan} {
		a, err := algorithm.Find(c, "chain")
		require.NoError(t, err)
		pr := algorithm.Params{P: p}
		once, err := Price(context.Background(), a, pr, bytes, 8, n, Options{Segment: bytes})
		require.NoError(t, err)
		cut, err := Price(context.Background(), a, pr, bytes, 8, n, Options{Segment: bytes / 64})
		require.NoError(t, err)
		require.Less(t, cut.Time, once.Time/3, "%s: %v in segments, %v as a whole", c, cut.Time, once.Time)
	}
}

// TestSegmentsArePipelined requires that sending S segments along a chain of p − 1 links takes
// as long as one segment needs for all p − 1 links, plus the time of S − 1 segments at the
// slowest stage.
func TestSegmentsArePipelined(t *testing.T) {
	const p, segment, count = 5, 1 << 16, 24
	n := flat()
	r := mustRun(t, work(p, segment*count, chain), n, Options{Segment: segment})
	wire := segment / n.Rack.Bandwidth
	stage := n.SendOverhead + n.RecvOverhead + (n.SendCopy+n.RecvCopy)*segment + n.Rack.Latency + wire
	require.Greater(t, wire, n.RecvOverhead+n.RecvCopy*segment, "the wire must be the slowest stage, or the formula below is wrong")
	require.InEpsilon(t, (p-1)*stage+(count-1)*wire, r.Time, 1e-9)
	require.Equal(t, segment, r.Segment)
}

// TestCoresAreShared requires that ranks of one host share its cores: on c cores, the ranks
// together take at least the sum of their work divided by c, and on one core they take exactly
// the sum.
func TestCoresAreShared(t *testing.T) {
	n := &Network{RanksPerHost: 8, Cores: 1, SendCopy: 1e-9, RecvCopy: 1e-9, Gamma: 1e-9, Window: 1 << 40}
	const p, bytes = 8, 8 << 20
	r := mustRun(t, work(p, bytes, ring), n, whole)
	total := float64(p) * (2*2*float64(p-1)*bytes/p + float64(p-1)*bytes/p) * 1e-9
	require.InEpsilon(t, total, r.Time, 1e-9, "the only core must be busy all the time")
	require.InEpsilon(t, 1, r.Cores, 1e-9)
	for _, cores := range []int{2, 4, 8} {
		n.Cores = cores
		r := mustRun(t, work(p, bytes, ring), n, whole)
		require.GreaterOrEqual(t, r.Time, total/float64(cores)*(1-1e-9))
		require.LessOrEqual(t, r.Time, total/float64(cores)*1.5)
	}
}

// TestShortMessagesKeepARankOnOneCore requires that a rank uses one core at a time if all
// messages are short, however many cores there are.
func TestShortMessagesKeepARankOnOneCore(t *testing.T) {
	n := flat()
	const p, bytes = 8, 64
	o := n.SendOverhead + n.RecvOverhead
	parallel := mustRun(t, work(p, bytes, direct), n, Options{SerialLimit: -1})
	serial := mustRun(t, work(p, bytes, direct), n, Options{})
	require.InEpsilon(t, 2*(o+n.Rack.Latency), parallel.Time, 1e-2)
	require.GreaterOrEqual(t, serial.Time, 2*(p-1)*o)
	for _, c := range []struct{ long, limit int }{{2 * 8 * 1024, 1024}, {8 * DefaultSerialLimit * 2, 0}} {
		above := mustRun(t, work(p, c.long, direct), n, Options{SerialLimit: c.limit})
		without := mustRun(t, work(p, c.long, direct), n, Options{SerialLimit: -1})
		require.Equal(t, without, above)
	}
}

// TestWaitingRanksAreWoken requires that a waiting rank takes the time WakeUp only once, for
// the first message, and not for messages that arrive while it works.
func TestWaitingRanksAreWoken(t *testing.T) {
	n := flat()
	n.WakeUp = 7e-6
	for _, p := range []int{2, 4, 9} {
		a, err := algorithm.Find(program.Barrier, "linear")
		require.NoError(t, err)
		r, err := Price(t.Context(), a, algorithm.Params{P: p}, 0, 1, n, Options{})
		require.NoError(t, err)
		// All ranks send to rank 0, which receives their messages in turn and answers in turn.
		messages := float64(p) * (n.SendOverhead + n.RecvOverhead)
		require.InEpsilon(t, messages+2*(n.Rack.Latency+n.WakeUp), r.Time, 1e-9, "p=%d", p)

		a, err = algorithm.Find(program.Barrier, "dissemination")
		require.NoError(t, err)
		r, err = Price(t.Context(), a, algorithm.Params{P: p}, 0, 1, n, Options{})
		require.NoError(t, err)
		rounds := float64(bits.Len(uint(p - 1)))
		require.InEpsilon(t, rounds*(n.SendOverhead+n.Rack.Latency+n.WakeUp+n.RecvOverhead), r.Time, 1e-9, "p=%d", p)
	}
}

// TestLinksAreShared requires that the NIC of a host serialises the messages of its ranks, and
// that the uplink of a rack serialises the messages of its hosts.
func TestLinksAreShared(t *testing.T) {
	shift := func(by int) func(p, rank int) *program.Program { // every rank r sends to rank r + by
		return func(p, rank int) *program.Program {
			prog := blank("shift", p, rank, 1)
			prog.Lanes = []program.Lane{{SendPeer: (rank + by) % p, RecvPeer: (rank - by + p) % p, Steps: []program.Instruction{
				{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, 0)}},
				{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, 0)},
			}}}
			return prog
		}
	}
	const size = 1 << 20
	n := &Network{RanksPerHost: 2, HostsPerRack: 2, Rack: Link{Bandwidth: 1e9}, Spine: Link{Bandwidth: 1e9},
		Host: Link{Bandwidth: 1e10}, Window: 1 << 40}
	for _, c := range []struct {
		by      int
		oversub float64
		want    float64
		what    string
	}{
		{2, 1, 2 * size / 1e9, "the two ranks of a host share its NIC"},
		{4, 1, 2 * size / 1e9, "without oversubscription the uplink is as fast as the NICs together"},
		{4, 4, 8 * size / 1e9, "the four ranks of a rack share an uplink of half the rate of a NIC"},
		{8, 4, 8 * size / 1e9, "the same to a more distant rack"},
	} {
		n.Oversubscription = c.oversub
		for _, full := range []bool{false, true} {
			r := mustRun(t, work(16, size, shift(c.by)), n, Options{Segment: size / 128, Full: full})
			require.InEpsilon(t, c.want, r.Time, 2e-2, c.what)
		}
	}
}

// TestDownlinksAreShared requires that messages from three racks to three hosts of one rack
// share its downlink.
func TestDownlinksAreShared(t *testing.T) {
	to := map[int]int{4: 0, 9: 1, 14: 2} // the senders are one rank of each of the other racks
	from := map[int]int{0: 4, 1: 9, 2: 14}
	const size = 1 << 20
	w := work(16, size, func(p, rank int) *program.Program {
		prog := blank("gather", p, rank, 1)
		if peer, ok := to[rank]; ok {
			prog.Lanes = []program.Lane{{SendPeer: peer, RecvPeer: program.NoPeer, Steps: []program.Instruction{
				{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, 0)}}}}}
		} else if peer, ok := from[rank]; ok {
			prog.Lanes = []program.Lane{{SendPeer: program.NoPeer, RecvPeer: peer, Steps: []program.Instruction{
				{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, 0)}}}}
		}
		return prog
	})
	n := &Network{HostsPerRack: 4, Rack: Link{Bandwidth: 1e9}, Spine: Link{Latency: 1e-6, Bandwidth: 1e9}, Window: 1 << 40}
	r := mustRun(t, w, n, Options{Segment: size / 128})
	require.InEpsilon(t, size/1e9, r.Time, 2e-2, "three messages must not delay each other, since the downlink is as fast as four NICs")
	n.Oversubscription = 4
	r = mustRun(t, w, n, Options{Segment: size / 128})
	require.InEpsilon(t, 3*size/1e9, r.Time, 2e-2, "three messages must wait for each other, since the downlink is as fast as one NIC")
	require.InEpsilon(t, 1, r.Uplink, 2e-2)
}

// TestWindow requires that at most Window bytes are sent but not received, and that with a
// window of 0 each send waits for its receive.
func TestWindow(t *testing.T) {
	const segment, count = 1 << 10, 64
	n := &Network{Rack: Link{Bandwidth: 1e9}, RecvOverhead: 1e-3}
	finish := func(window int) float64 {
		n.Window = window
		r := mustRun(t, work(2, segment*count, chain), n, Options{Segment: segment})
		require.InEpsilon(t, count*1e-3, r.Time, 1e-2)
		return r.Finish[0]
	}
	require.InEpsilon(t, count*1e-3, finish(0), 1e-2)
	require.InEpsilon(t, (count-1)*1e-3, finish(segment), 2e-2)
	require.InEpsilon(t, (count-16)*1e-3, finish(16*segment), 2e-2)
	require.Less(t, finish(segment*count), 1e-3)
}

// TestStragglersDelayWhatDependsOnThem requires that a straggler delays the ranks that depend
// on it, and that it delays no other rank.
func TestStragglersDelayWhatDependsOnThem(t *testing.T) {
	n := flat()
	even := mustRun(t, work(6, 1<<16, chain), n, whole)
	n.Stragglers = map[int]float64{3: 10}
	slow := mustRun(t, work(6, 1<<16, chain), n, whole)
	for r := range 6 {
		if r < 2 {
			require.Equal(t, even.Finish[r], slow.Finish[r])
		} else if r > 2 { // rank 2 ends once it has sent its message
			require.Greater(t, slow.Finish[r], even.Finish[r])
		}
	}
	require.Equal(t, even.Finish[2], slow.Finish[2])
}

func TestJitterIsReproducible(t *testing.T) {
	n := flat()
	base := mustRun(t, work(16, 1<<16, ring), n, Options{})
	n.Jitter, n.Seed = 0.2, 7
	one := mustRun(t, work(16, 1<<16, ring), n, Options{})
	again := mustRun(t, work(16, 1<<16, ring), n, Options{})
	require.Equal(t, one, again)
	n.Seed = 8
	other := mustRun(t, work(16, 1<<16, ring), n, Options{})
	require.NotEqual(t, one.Time, other.Time)
	for _, r := range []*Result{one, other} {
		require.Greater(t, r.Time, base.Time)
		require.Less(t, r.Time, base.Time*2)
		require.Nil(t, r.Symmetry)
	}
}

// TestTimesAreMonotone requires that no AllReduce becomes faster with more data, slower links
// or higher costs of messages. An algorithm may become up to 3 per cent faster, since a delay
// may by chance let a queue serve a more important segment first (Graham's anomalies).
func TestTimesAreMonotone(t *testing.T) {
	worse := map[string]func(*Network){
		"latency":   func(n *Network) { n.Rack.Latency *= 2 },
		"bandwidth": func(n *Network) { n.Rack.Bandwidth /= 2 },
		"overhead":  func(n *Network) { n.RecvOverhead *= 3 },
		"wake-ups":  func(n *Network) { n.WakeUp = 5 * n.RecvOverhead },
		"copies":    func(n *Network) { n.SendCopy *= 3 },
		"gamma":     func(n *Network) { n.Gamma *= 3 },
	}
	for _, a := range algorithm.For(program.AllReduce) {
		for _, p := range []int{2, 5, 8, 12} {
			pr := algorithm.Params{P: p}
			if a.Supports(pr) != nil {
				continue
			}
			last := 0.0
			for bytes := 8; bytes <= 1<<22; bytes *= 8 {
				r, err := Price(t.Context(), a, pr, bytes, 8, flat(), Options{})
				require.NoError(t, err)
				require.GreaterOrEqual(t, r.Time, last*0.97, "%s p=%d bytes=%d", a.Name, p, bytes)
				last = r.Time
				for what, change := range worse {
					n := flat()
					change(n)
					w, err := Price(t.Context(), a, pr, bytes, 8, n, Options{})
					require.NoError(t, err)
					require.GreaterOrEqual(t, w.Time, r.Time*0.97, "%s p=%d bytes=%d %s", a.Name, p, bytes, what)
				}
			}
		}
	}
}

// TestSentElementsAreConserved requires that ranks send as many elements as their generators
// declare, and that NICs are busy for at least the transmission time of these elements.
func TestSentElementsAreConserved(t *testing.T) {
	const elements = 5000
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			for _, p := range []int{1, 2, 3, 7, 8, 16} {
				pr := algorithm.Params{P: p}
				if a.Supports(pr) != nil {
					continue
				}
				n := flat()
				r, err := Price(t.Context(), a, pr, elements*8, 8, n, Options{Full: true})
				require.NoError(t, err, "%s %s p=%d", c, a.Name, p)
				cost := a.Cost(pr)
				want, most := 0, 0
				for rank := range p {
					if cost.Sent != nil {
						l := program.Even(elements, a.Generate(pr, rank).Chunks)
						sent := 8 * cost.Sent(rank, l)
						want, most = want+sent, max(most, sent)
					}
				}
				require.Equal(t, want, r.Bytes, "%s %s p=%d", c, a.Name, p)
				require.GreaterOrEqual(t, r.Time*r.NIC*(1+1e-9), float64(most)/n.Rack.Bandwidth, "%s %s p=%d", c, a.Name, p)
				if c == program.AllReduce { // the longest chain of messages has the declared number of steps, each with a latency
					require.GreaterOrEqual(t, r.Time*(1+1e-9), float64(cost.Steps)*n.Rack.Latency, "%s %s p=%d", c, a.Name, p)
				}
				require.LessOrEqual(t, r.NIC, 1+1e-9)
			}
		}
	}
}

func TestEndlessAndUnmatchedPrograms(t *testing.T) {
	lonely := func(op program.OpCode) func(p, rank int) *program.Program {
		return func(p, rank int) *program.Program {
			prog := blank("lonely", p, rank, 1)
			prog.Lanes = []program.Lane{{SendPeer: 1 - rank, RecvPeer: 1 - rank}}
			if rank == 0 {
				in := program.Instruction{Op: op, Dst: program.Chunk(program.Out, 0, 0)}
				if op == program.DoSend {
					in = program.Instruction{Op: op, Src: []program.Ref{program.Chunk(program.In, 0, 0)}}
				}
				prog.Lanes[0].Steps = []program.Instruction{in}
			}
			return prog
		}
	}
	_, err := Run(t.Context(), work(2, 8, lonely(program.DoRecv)), flat(), Options{})
	require.ErrorContains(t, err, "rank 0 waits for ever in lane 0 step 0 (recv)")
	_, err = Run(t.Context(), work(2, 8, lonely(program.DoSend)), flat(), Options{})
	require.ErrorContains(t, err, "rank 1 is sent more than it receives in lane 0")

	_, err = Run(t.Context(), work(2, 8, func(p, rank int) *program.Program {
		prog := chain(p, rank)
		prog.Lanes[0].Channel = rank
		return prog
	}), flat(), Options{})
	require.ErrorContains(t, err, "rank 0 sends to rank 1 on channel 0 in lane 0, where no other lane receives it")
}

func TestMisuse(t *testing.T) {
	a := algorithm.Direct()
	price := func(p, bytes, elem int, n *Network) error {
		_, err := Price(t.Context(), a, algorithm.Params{P: p}, bytes, elem, n, Options{})
		return err
	}
	require.ErrorContains(t, price(0, 8, 8, flat()), "among 0 ranks")
	require.ErrorContains(t, price(2, -1, 8, flat()), "-1 bytes in elements of 8")
	require.ErrorContains(t, price(2, 8, 0, flat()), "8 bytes in elements of 0")
	require.ErrorContains(t, price(2, 8, 8, &Network{Placement: []int{0}}), "placement has 1 ranks, the collective 2")
	require.ErrorContains(t, price(2, 8, 8, &Network{Gamma: math.NaN()}), "gamma is NaN")
	require.NoError(t, price(1, 8, 8, flat()))

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := Run(ctx, work(4, 8, ring), flat(), Options{})
	require.ErrorContains(t, err, "enough")
}

// TestWithoutSymmetryThereAreLimits requires an error that states the number of lanes if the
// work has too many lanes, before the simulation runs out of memory.
func TestWithoutSymmetryThereAreLimits(t *testing.T) {
	lanes := make([]program.Lane, maxHalves>>7)
	for i := range lanes {
		lanes[i] = program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer}
	}
	w := work(256, 8, func(p, rank int) *program.Program {
		prog := blank("wide", p, rank, 1)
		prog.Lanes = lanes
		return prog
	})
	_, err := Run(t.Context(), w, flat(), Options{Full: true})
	require.ErrorContains(t, err, fmt.Sprintf("about %d lanes", 256*len(lanes)))
}
