package faulty_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// collectives has the collectives that are tested.
var collectives = []program.Collective{program.AllReduce, program.AllGather, program.Broadcast, program.Barrier}

// modes has options for runs with one goroutine, with many segments, and with stripes.
var modes = []execute.Options{
	{Segment: 1 << 20, SerialLimit: 1 << 20},
	{Segment: 128, SerialLimit: -1},
	{Segment: 256, SerialLimit: -1, Channels: 2},
}

// some returns a random scenario in which the given fault affects one or more of the first
// messages of a connection.
func some(r *rand.Rand, fault mesh.FaultRule) *scenario {
	s := &scenario{p: 2 + r.IntN(4), ops: 1 + r.IntN(4), each: 1 + r.IntN(64), opt: modes[r.IntN(len(modes))], stall: time.Second}
	for {
		s.coll = collectives[r.IntN(len(collectives))]
		all := algorithm.For(s.coll)
		if a := all[r.IntN(len(all))]; a.Supports(algorithm.Params{P: s.p}) == nil {
			s.algo = a.Name
			break
		}
	}
	fault.From, fault.Channel = r.IntN(s.p), mesh.Any
	fault.To = (fault.From + 1 + r.IntN(s.p-1)) % s.p
	if r.IntN(3) == 0 {
		fault.From, fault.To = mesh.Any, mesh.Any
	}
	fault.Message = uint64(1 + r.IntN(6))
	if r.IntN(3) == 0 {
		fault.Message, fault.Out, fault.Of = 0, 1, uint32(2+r.IntN(16))
	}
	s.plan = mesh.FaultPlan{Seed: uint64(r.Uint32()), Rules: []mesh.FaultRule{fault}}
	return s
}

// times returns n with the build tag soak, and a tenth of n otherwise.
func times(n int) int {
	if testsize.Soak {
		return n
	}
	return n / 10
}

// seeds calls run with the scenarios drawn from the n seeds that begin with first. It returns
// how many runs ended with an error.
func seeds(t *testing.T, first, n uint64, fault mesh.FaultRule, run func(t testing.TB, s *scenario) error) (failed int) {
	for seed := first; seed < first+n; seed++ {
		s := some(rand.New(rand.NewPCG(seed, 0)), fault)
		if run(t, s) != nil {
			failed++
		}
	}
	return failed
}

// noticed has the faults that must be detected even if they are injected above a mesh.
// Corrupted payloads are not among them, because a mesh cannot know that a payload was
// corrupted before it was passed to the mesh.
var noticed = []mesh.FaultRule{{Kind: mesh.Drop}, {Kind: mesh.Duplicate}, {Kind: mesh.Truncate}, {Kind: mesh.Corrupt, Header: true}, {Kind: mesh.Cut}}

// nameOf returns the name of the subtest of a fault.
func nameOf(fault mesh.FaultRule) string {
	if fault.Header {
		return fault.Kind.String() + " header"
	}
	return fault.Kind.String()
}

func TestFaultsInMemory(t *testing.T) {
	for k, fault := range noticed {
		t.Run(nameOf(fault), func(t *testing.T) {
			n := times(1000)
			failed := 0
			synctest.Test(t, func(t *testing.T) {
				failed = seeds(t, uint64(k*1_000_000), uint64(n), fault, func(t testing.TB, s *scenario) error {
					return s.run(t, (*scenario).inMemory)
				})
			})
			require.Greater(t, failed, n/10, "more than a tenth of the runs must have met a fault and failed, or the test proves little")
		})
	}
}

func TestFaultsAboveTCP(t *testing.T) {
	for k, fault := range noticed {
		t.Run(nameOf(fault), func(t *testing.T) {
			t.Parallel()
			n := times(150)
			failed := seeds(t, uint64(10_000_000+k*1_000_000), uint64(n), fault, func(t testing.TB, s *scenario) error {
				s.stall = 150 * time.Millisecond
				return s.run(t, (*scenario).overTCP)
			})
			require.Greater(t, failed, n/10, "more than a tenth of the runs must have met a fault and failed, or the test proves little")
		})
	}
}

func TestFaultsOnTheWire(t *testing.T) {
	for k, fault := range append([]mesh.FaultRule{{Kind: mesh.Truncate, Header: true}, {Kind: mesh.Corrupt}}, noticed...) {
		t.Run(nameOf(fault), func(t *testing.T) {
			t.Parallel()
			n := times(150)
			failed := seeds(t, uint64(20_000_000+k*1_000_000), uint64(n), fault, func(t testing.TB, s *scenario) error {
				s.stall, s.wire = 150*time.Millisecond, true
				return s.run(t, (*scenario).overTCP)
			})
			require.Greater(t, failed, n/10, "more than a tenth of the runs must have met a fault and failed, or the test proves little")
		})
	}
}

func TestDelaysChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seeds(t, 30_000_000, uint64(times(1000)), mesh.FaultRule{Kind: mesh.Delay, Delay: 300 * time.Millisecond}, func(t testing.TB, s *scenario) error {
			err := s.run(t, (*scenario).inMemory)
			require.NoError(t, err, s)
			return nil
		})
	})
	for _, wire := range []bool{false, true} {
		seeds(t, 31_000_000, uint64(times(200)), mesh.FaultRule{Kind: mesh.Delay, Delay: 2 * time.Millisecond}, func(t testing.TB, s *scenario) error {
			s.wire, s.stall = wire, 0
			require.NoError(t, s.run(t, (*scenario).overTCP), s)
			return nil
		})
	}
}

// TestCutsNameTheirEnds cuts connections. The error on all ranks must name the ranks at both
// ends of the cut connection, and the operation. There is one exception: on the wire, the last
// message of an operation may be sent after the sender has ended that operation and before it
// has begun the next operation. A cut at that message belongs to no operation.
func TestCutsNameTheirEnds(t *testing.T) {
	for _, wire := range []bool{false, true} {
		for i := range times(60) {
			p := 2 + i%4
			from, to, at := i%p, (i+1)%p, 1+i%3
			last := 2 * (p - 1) // number of the last message that a rank sends in an operation with the ring algorithm
			cut := mesh.FaultRule{Kind: mesh.Cut, From: from, To: to, Channel: mesh.Any, Message: uint64(at)}
			s := &scenario{plan: mesh.FaultPlan{Seed: uint64(i), Rules: []mesh.FaultRule{cut}}, coll: program.AllReduce, algo: "ring",
				p: p, ops: 3, each: 8, opt: modes[i%2], wire: wire}
			var lost *membership.PeerError
			require.ErrorAs(t, s.run(t, (*scenario).overTCP), &lost, s)
			require.ElementsMatch(t, []int{from, to}, []int{lost.Rank, lost.Reporter}, "%v: %v", s, lost)
			if !wire || at != last || lost.During != "" {
				require.Contains(t, lost.During, "allreduce", s)
			}
		}
	}
}

// TestDropsAreAStandstill requires that if all ranks wait because of a lost message, the error
// says that there is a standstill.
func TestDropsAreAStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drop := mesh.FaultRule{Kind: mesh.Drop, From: 1, To: 2, Channel: mesh.Any, Message: 1}
		s := &scenario{plan: mesh.FaultPlan{Rules: []mesh.FaultRule{drop}}, coll: program.Barrier, algo: "dissemination", p: 3, ops: 1, stall: time.Second}
		began := time.Now()
		err := s.run(t, (*scenario).inMemory)
		require.ErrorIs(t, err, membership.ErrTimeout)
		require.ErrorContains(t, err, "no rank has made progress")
		require.ErrorContains(t, err, "a message was lost")
		require.Less(t, time.Since(began), 2*time.Second)
	})
}

// TestPayloadsNeedChecksums corrupts a payload on the wire. Without checksums the result must
// be wrong, as the documentation of mesh.FaultPlan.OnWire says; with checksums the run must end
// with an error.
func TestPayloadsNeedChecksums(t *testing.T) {
	for _, bare := range []bool{true, false} {
		corrupt := mesh.FaultRule{Kind: mesh.Corrupt, From: 0, To: 1, Channel: mesh.Any, Message: 1}
		s := &scenario{plan: mesh.FaultPlan{Rules: []mesh.FaultRule{corrupt}}, coll: program.AllReduce, algo: "direct", p: 2, ops: 1, each: 16, wire: true, withoutChecksums: bare}
		wrong, failed := 0, 0
		for _, e := range s.overTCP(t, s.plan) {
			if e.wrong != "" {
				wrong++
			}
			if e.err != nil {
				require.ErrorContains(t, e.err, "damaged in transit: its payload has the checksum")
				failed++
			}
		}
		require.Equal(t, !bare, wrong == 0)
		require.Equal(t, !bare, failed > 0)
	}
}
