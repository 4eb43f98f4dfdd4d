package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func TestObjectsAreMergedInTheTree(t *testing.T) {
	type word struct{ Text string }
	merge := func(a, b word) word { return word{"(" + a.Text + b.Text + ")"} }
	codec := shared.Msgpack[word]()
	t.Run("over ranks", func(t *testing.T) {
		for p, want := range map[int]string{1: "a", 2: "(ab)", 3: "((ab)c)", 5: "(((ab)c)(de))"} {
			g := NewLocalGroup(p)
			for _, err := range onRanks(g, func(c *Comm) error {
				mine := word{string(rune('a' + c.Rank()))}
				got, any, err := AllReduceObject(c, &ObjectReduction[word]{Name: "w", Codec: codec, Merge: merge, Value: &mine})
				if err == nil && (!any || got.Text != want) {
					err = fmt.Errorf("%t %q", any, got.Text)
				}
				return err
			}) {
				require.NoError(t, err)
			}
		}
	})
	t.Run("over shards, whatever the number of ranks", func(t *testing.T) {
		for _, p := range []int{1, 2, 3, 8} {
			g := NewLocalGroup(p)
			for _, err := range onRanks(g, func(c *Comm) error {
				r := &ObjectReduction[word]{Name: "w", Codec: codec, Merge: merge, Shards: 8}
				own := sharding.Split(8, p, c.Rank())
				for s := own.Lo; s < own.Hi; s++ {
					if s != 2 { // an empty shard is absent
						r.Forest = append(r.Forest, sharding.Entry[word]{Node: sharding.Leaf(s), Value: word{fmt.Sprint(s)}})
					}
				}
				got, any, err := AllReduceObject(c, r)
				if err == nil && (!any || got.Text != "(((01)3)((45)(67)))") {
					err = fmt.Errorf("%t %q", any, got.Text)
				}
				return err
			}) {
				require.NoError(t, err)
			}
		}
	})
	t.Run("of nobody", func(t *testing.T) {
		g := NewLocalGroup(3)
		for _, err := range onRanks(g, func(c *Comm) error {
			_, any, err := AllReduceObject(c, &ObjectReduction[word]{Name: "w", Codec: codec, Merge: merge})
			if any {
				err = fmt.Errorf("without any value, the result any must be false")
			}
			return err
		}) {
			require.NoError(t, err)
		}
	})
	t.Run("that cannot be", func(t *testing.T) {
		g := NewLocalGroup(2)
		for _, err := range onRanks(g, func(c *Comm) error {
			_, _, err := AllReduceObject(c, &ObjectReduction[word]{Name: "words", Merge: merge})
			return err
		}) {
			require.ErrorContains(t, err, `"words"`)
		}
	})
}

func FuzzCutEntry(f *testing.F) {
	f.Add([]byte{0, 3, 2, 'a', 'b', 0, 4, 0})
	f.Add([]byte{62, 1, 0})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		for len(payload) > 0 {
			node, body, rest, err := cutEntry(payload)
			if err != nil {
				return
			}
			if node.Level < 0 || node.Index < 0 || node.Range().Lo > node.Range().Hi {
				t.Fatalf("cutEntry must not return the invalid node %v", node)
			}
			if len(body)+len(rest) >= len(payload) {
				t.Fatal("cutEntry must consume bytes")
			}
			payload = rest
		}
	})
}

// sparseOf returns a sparse vector that stores about density·n elements of very different
// magnitudes. Some stored elements are zeros of both signs.
func sparseOf(r *rand.Rand, n int, density float64) SparseVector[float64] {
	v := SparseVector[float64]{Length: n, Index: []int32{}}
	for i := range n {
		if r.Float64() >= density {
			continue
		}
		x := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(25)-8))
		switch r.IntN(20) {
		case 0:
			x = math.Copysign(0, -1)
		case 1:
			x = 0
		}
		v.Index, v.Value = append(v.Index, int32(i)), append(v.Value, x)
	}
	return v
}

// denseSum returns the sum of leaves as a dense vector. As in a sparse sum, an absent element
// and −0 both count as +0.
func denseSum(n int, leaves []SparseVector[float64]) []float64 {
	dense := make([][]float64, len(leaves))
	for k, v := range leaves {
		dense[k] = make([]float64, n)
		for i, at := range v.Index {
			dense[k][at] = v.Value[i] + 0
		}
	}
	return treeOverShards(Sum[float64](), dense)
}

func TestSparseSumsAreTheDenseSumsAtAnyParallelism(t *testing.T) {
	const n, shards = 500, 8
	r := rand.New(rand.NewPCG(7, 8))
	for _, density := range []float64{0.002, 0.02, 0.2, 0.9} {
		leaves := make([]SparseVector[float64], shards)
		for s := range leaves {
			leaves[s] = sparseOf(r, n, density)
		}
		want := denseSum(n, leaves)
		var first *SparseVector[float64]
		for _, p := range []int{1, 2, 3, 8} {
			results := make([]*SparseVector[float64], p)
			g := NewLocalGroup(p)
			for _, err := range onRanks(g, func(c *Comm) (err error) {
				req := &SparseReduction[float64]{Name: "gradient", Length: n, Shards: shards}
				own := sharding.Split(shards, p, c.Rank())
				for s := own.Lo; s < own.Hi; s++ {
					req.Forest = append(req.Forest, sharding.Entry[SparseVector[float64]]{Node: sharding.Leaf(s), Value: leaves[s]})
				}
				results[c.Rank()], err = AllReduceSparse(c, req)
				return err
			}) {
				require.NoError(t, err)
			}
			for _, got := range results {
				require.NotNil(t, got)
				dense := make([]float64, n)
				if got.Index == nil {
					copy(dense, got.Value)
				}
				for i, at := range got.Index {
					dense[at] = got.Value[i]
				}
				require.Equal(t, bitsOf(want), bitsOf(dense), "p=%d density=%g", p, density)
				if first == nil {
					first = got
				}
				require.Equal(t, first, got, "the form of the result must depend only on the sum")
			}
		}
	}
}

func TestSparseSumsOfSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.Float64frombits(0x7ff8dead00000001)
	for name, x := range map[string]struct{ a, b, want SparseVector[float64] }{
		"one NaN": {
			SparseVector[float64]{4, []int32{1}, []float64{nan}}, SparseVector[float64]{4, []int32{1, 2}, []float64{1, inf}},
			SparseVector[float64]{4, []int32{1, 2}, []float64{math.NaN(), inf}},
		},
		"what cancels out is absent": {
			SparseVector[float64]{9, []int32{1, 3}, []float64{5, 1}}, SparseVector[float64]{9, []int32{1}, []float64{-5}},
			SparseVector[float64]{9, []int32{3}, []float64{1}},
		},
		"dense and sparse": {
			SparseVector[float64]{2, nil, []float64{1, 2}}, SparseVector[float64]{2, []int32{1}, []float64{-1}},
			SparseVector[float64]{2, nil, []float64{1, 1}},
		},
	} {
		g := NewLocalGroup(2)
		for _, err := range onRanks(g, func(c *Comm) error {
			mine := []SparseVector[float64]{x.a, x.b}[c.Rank()]
			got, err := AllReduceSparse(c, &SparseReduction[float64]{Name: "x", Length: mine.Length, Value: &mine})
			if err != nil {
				return err
			}
			if !slices.Equal(got.Index, x.want.Index) || !slices.Equal(bitsOf(got.Value), bitsOf(x.want.Value)) {
				return fmt.Errorf("%v", got)
			}
			return nil
		}) {
			require.NoError(t, err, name)
		}
	}
}

func TestInvalidSparseVectors(t *testing.T) {
	for want, v := range map[string]SparseVector[float64]{
		"indices ascend":              {4, []int32{2, 2}, []float64{1, 1}},
		"index 4":                     {4, []int32{4}, []float64{1}},
		"1 indices and 2 values":      {4, []int32{1}, []float64{1, 2}},
		"a vector of 5 elements":      {5, []int32{1}, []float64{1}},
		"with 0 indices and 3 values": {4, nil, []float64{1, 2, 3}},
	} {
		g := NewLocalGroup(1)
		_, err := AllReduceSparse(g.Rank(0), &SparseReduction[float64]{Name: "x", Length: 4, Value: &v})
		require.ErrorContains(t, err, want)
	}
}

func FuzzSparseCodec(f *testing.F) {
	ok, _ := sparseCodec[float64]{100}.Append(nil, SparseVector[float64]{100, []int32{0, 7, 99}, []float64{1, 2, 3}})
	f.Add(ok)
	f.Add([]byte{3, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := sparseCodec[float64]{100}.Decode(src)
		if err != nil {
			return
		}
		for i, at := range v.Index {
			if at < 0 || at >= 100 || i > 0 && at <= v.Index[i-1] {
				t.Fatalf("the indices must be ascending and below 100: %v", v.Index)
			}
		}
	})
}
