package collective

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared"
)

// TestRanksWithoutAnObjectKeepTheirPlaces reduces objects for each subset of ranks that have a
// value. It requires that values are merged in the canonical tree over all ranks, from which
// the leaves of the other ranks are left out.
func TestRanksWithoutAnObjectKeepTheirPlaces(t *testing.T) {
	merge := func(a, b []byte) []byte { return fmt.Appendf(nil, "(%s%s)", a, b) }
	for p := 1; p <= 6; p++ {
		for present := range 1 << p {
			leaves := make([][]byte, p)
			for r := range p {
				if present>>r&1 == 1 {
					leaves[r] = []byte{byte('a' + r)}
				}
			}
			want := textTree(leaves)
			for r, err := range onRanks(NewLocalGroup(p), func(c *Comm) error {
				req := &ObjectReduction[[]byte]{Name: "w", Codec: shared.Msgpack[[]byte](), Merge: merge}
				if leaves[c.Rank()] != nil {
					req.Value = &leaves[c.Rank()]
				}
				got, any, err := AllReduceObject(c, req)
				if err == nil && (any != (present != 0) || string(got) != want) {
					err = fmt.Errorf("any is %t and the result is %q, want %q", any, got, want)
				}
				return err
			}) {
				require.NoError(t, err, "rank %d of %d, present %b", r, p, present)
			}
		}
	}
}

// textTree returns the canonical tree over ranks with the texts x as leaves, in brackets. Nil
// leaves are left out.
func textTree(x [][]byte) string {
	q := 1
	for 2*q <= len(x) {
		q *= 2
	}
	join := func(a, b string) string {
		if a == "" || b == "" {
			return a + b
		}
		return "(" + a + b + ")"
	}
	var level []string
	for i, r := 0, len(x)-q; i < len(x); i++ {
		s := string(x[i])
		if i < 2*r {
			s, i = join(s, string(x[i+1])), i+1
		}
		level = append(level, s)
	}
	for ; len(level) > 1; level = level[:len(level)/2] {
		for i := range len(level) / 2 {
			level[i] = join(level[2*i], level[2*i+1])
		}
	}
	return level[0]
}

// TestSparseSumsWithAbsentRanksAreTheDenseSums requires that sparse sums, to which some ranks
// contribute nothing, equal dense sums. In some cases the vectors are so sparse that they are
// gathered, in others so dense that they are reduced.
func TestSparseSumsWithAbsentRanksAreTheDenseSums(t *testing.T) {
	const n = 200
	for _, p := range []int{1, 2, 3, 4, 5, 7, 8, 16, 33} {
		for _, density := range []float64{min(0.9, 1.8/float64(p)), 0.95} {
			random := rand.New(rand.NewPCG(uint64(p), 7))
			vectors := make([]*SparseVector[float64], p)
			dense := make([][]float64, p)
			for r := range p {
				dense[r] = make([]float64, n)
				if r%3 == 0 && p > 1 {
					continue
				}
				v := sparseOf(random, n, density)
				vectors[r] = &v
				for i, at := range v.Index {
					dense[r][at] = v.Value[i] + 0
				}
			}
			want := treeOverRanks(Sum[float64](), dense)
			for r, err := range onRanks(NewLocalGroup(p), func(c *Comm) error {
				got, err := AllReduceSparse(c, &SparseReduction[float64]{Name: "g", Length: n, Value: vectors[c.Rank()]})
				if err != nil {
					return err
				}
				sum := make([]float64, n)
				if got != nil && got.Index == nil {
					copy(sum, got.Value)
				} else if got != nil {
					for i, at := range got.Index {
						sum[at] = got.Value[i]
					}
				}
				for i := range want {
					if string(bitsOf(sum[i:i+1])) != string(bitsOf([]float64{want[i] + 0})) {
						return fmt.Errorf("element %d has the bits %x, want %x", i, sum[i], want[i])
					}
				}
				return nil
			}) {
				require.NoError(t, err, "rank %d of %d, density %v", r, p, density)
			}
		}
	}
}

// TestObjectsOfDifferentShardsAreRefused requires an error if rank 1 passes a different number
// of shards than the other ranks. The error must name ranks, even if a process has several
// ranks.
func TestObjectsOfDifferentShardsAreRefused(t *testing.T) {
	shards := func(c *Comm) int { return 4 * (c.Rank() & 1) }
	for name, call := range map[string]func(c *Comm) error{
		"objects": func(c *Comm) error {
			_, _, err := AllReduceObject(c, &ObjectReduction[int]{
				Name: "w", Codec: shared.Msgpack[int](), Merge: func(a, b int) int { return a + b }, Shards: shards(c),
			})
			return err
		},
		"sparse vectors": func(c *Comm) error {
			_, err := AllReduceSparse(c, &SparseReduction[float32]{Name: "w", Length: 9, Shards: shards(c)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			executors(t, func(t *testing.T, of ends) {
				for _, err := range callOn(t, of, call) {
					var m *MismatchError
					require.ErrorAs(t, err, &m)
					require.True(t, (m.Rank == 1) != (m.Other == 1), "%v", err)
					require.ErrorContains(t, err, "over 4")
					require.ErrorContains(t, err, "whole v") // "whole values" or "whole vectors"
				}
			})
		})
	}
}

// breaking is a codec whose Encode calls act.
type breaking struct{ act func() }

func (b breaking) Append(dst []byte, v int) ([]byte, error) {
	b.act()
	return append(dst, byte(v)), nil
}
func (b breaking) Decode(src []byte) (int, error) { return int(src[0]), nil }

// TestCodecsThatPanicOrExitEndTheGroup requires that the group ends with an error if the codec
// of one rank panics or ends the goroutine.
func TestCodecsThatPanicOrExitEndTheGroup(t *testing.T) {
	for name, act := range map[string]func(){
		"panic: no room":      func() { panic("no room") },
		"the goroutine ended": runtime.Goexit,
	} {
		g := NewLocalGroup(3)
		onRanks(g, func(c *Comm) error {
			codec := breaking{func() {}}
			if c.Rank() == 1 {
				codec.act = act
			}
			x := c.Rank()
			_, _, err := AllReduceObject(c, &ObjectReduction[int]{
				Name: "w", Codec: codec, Merge: func(a, b int) int { return a + b }, Value: &x,
			})
			require.ErrorContains(t, err, name)
			return err
		})
		require.ErrorContains(t, g.Err(), "rank 1: AllReduce of objects \"w\"")
	}
}
