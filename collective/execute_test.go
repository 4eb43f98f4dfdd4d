package collective

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared"
)

// executeAll runs the programs of all ranks over a Rendezvous.
func executeAll[T Number](g Generator, p int, op Op[T], in, out [][]T) error {
	net := NewRendezvous(p)
	errs := make([]error, p)
	var wg sync.WaitGroup
	for r := range p {
		wg.Go(func() {
			prog := g.Generate(p, r)
			errs[r] = Execute(context.Background(), &prog, net.Rank(r), op, Buffers[T]{In: in[r], Out: out[r]})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func testExecute[T Number](t *testing.T, op Op[T]) {
	for p := 1; p <= 9; p++ {
		local := NewLocalGroup(p)
		for _, n := range lengths(p) {
			for _, inPlace := range []bool{false, true} {
				in, out := make([][]T, p), make([][]T, p)
				for r := range in {
					in[r] = convert[T](hostile(uint64(r), n))
					out[r] = make([]T, n)
				}
				want := wholeOnAll(t, local, op, in, false)
				if inPlace {
					out = in
				}
				require.NoError(t, executeAll(Direct, p, op, in, out))
				for r := range out {
					require.Equal(t, bitsOf(want), bitsOf(out[r]), "%s p=%d n=%d rank %d in place: %t", op.Name(), p, n, r, inPlace)
				}
			}
		}
	}
}

// TestTheProgramGivesTheSameBitsAsSharedMemory runs GenerateDirect as it stands.
func TestTheProgramGivesTheSameBitsAsSharedMemory(t *testing.T) {
	testExecute(t, Sum[float64]())
	testExecute(t, lean())
	testExecute(t, chain())
	testExecute(t, Max[uint8]())
}

func TestFusedInstructionsAreExecuted(t *testing.T) {
	for p := 2; p <= 7; p++ {
		for _, n := range lengths(p) {
			in := make([][]int64, p)
			for r := range in {
				in[r] = convert[int64](hostile(uint64(r), n))
			}
			want := make([]int64, n)
			for c := range p { // chunk c goes round the ring from rank c on
				e := shared.Split(n, p, c)
				x := append([]int64(nil), in[c][e.Lo:e.Hi]...)
				for k := 1; k < p; k++ {
					chain().fold(x, in[(c+k)%p][e.Lo:e.Hi])
				}
				copy(want[e.Lo:], x)
			}
			out := in // in place
			require.NoError(t, executeAll(ring, p, chain(), in, out))
			for r := range out {
				require.Equal(t, want, out[r], "p=%d n=%d rank %d", p, n, r)
			}
		}
	}
	in := [][]int64{{1, 2}, {3, 4}}
	out := [][]int64{make([]int64, 2), make([]int64, 2)}
	require.NoError(t, executeAll(exchange, 2, chain(), in, out))
	require.Equal(t, []int64{31 - 21 + 1, 62 - 28 + 1}, out[0])
	require.Equal(t, out[0], out[1])
}

func TestExecuteRefuses(t *testing.T) {
	ctx := context.Background()
	end := NewRendezvous(1).Rank(0)
	good, bad := GenerateDirect(1, 0), GenerateDirect(3, 1)
	bad.Lanes[0].Steps[0].Fold = nil
	x := []float64{1}
	require.ErrorContains(t, Execute(ctx, &bad, end, Sum[float64](), Buffers[float64]{x, x}), "every operand")
	require.ErrorContains(t, Execute(ctx, &good, end, Sum[float64](), Buffers[float64]{x, nil}), "room for 0")
	require.ErrorContains(t, Execute(ctx, &good, end, Op[float64]{}, Buffers[float64]{x, x}), "no operator")
}

// failingEnd breaks one receive.
type failingEnd struct {
	Endpoint
	cause error
}

func (f failingEnd) Recv(context.Context, int, int, []byte) error { return f.cause }

func TestExecuteEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("cable cut")
	net := NewRendezvous(3)
	prog := GenerateDirect(3, 1)
	x := make([]float64, 9)
	err := Execute(context.Background(), &prog, failingEnd{net.Rank(1), broken}, Sum[float64](), Buffers[float64]{x, x})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "allreduce direct: rank 1: lane ")

	// Nobody else comes: only the context can end it.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(broken)
	err = Execute(ctx, &prog, net.Rank(1), Sum[float64](), Buffers[float64]{x, x})
	require.ErrorIs(t, err, broken)
}

func TestRendezvousChecksLengths(t *testing.T) {
	net := NewRendezvous(2)
	ctx := context.Background()
	sent := make(chan error)
	go func() { sent <- net.Rank(0).Send(ctx, 1, 5, make([]byte, 3)) }()
	err := net.Rank(1).Recv(ctx, 0, 5, make([]byte, 4))
	require.ErrorContains(t, err, "rank 0 sends 3 bytes on channel 5 where rank 1 expects 4")
	require.Equal(t, err, <-sent)
	require.ErrorContains(t, net.Rank(0).Send(ctx, 2, 0, nil), "no route")
	require.ErrorContains(t, net.Rank(0).Recv(ctx, 0, 0, nil), "no route")
}
