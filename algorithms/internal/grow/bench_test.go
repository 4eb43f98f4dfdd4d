package grow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// BenchmarkBoost grows trees for the logistic loss on 1,000,000 rows of 28 features with 255
// bins. It reports the time of a boosting round, which computes gradients, a tree and new
// margins.
func BenchmarkBoost(b *testing.B) {
	const n, d = 1_000_000, 28
	x, label := boostRows(n, d)
	for _, leafWise := range []bool{false, true} {
		for _, p := range []int{1, 2} {
			params := Params{MaxDepth: 6, Lambda: 1, MinChildWeight: 1}
			name := fmt.Sprintf("depth=6/p=%d", p)
			if leafWise {
				params.LeafWise, params.MaxDepth, params.MaxLeaves = true, -1, 255
				name = fmt.Sprintf("leaves=255/p=%d", p)
			}
			b.Run(name, func(b *testing.B) { boost(b, params, x, label, p, b.N, packedFrom, b.ResetTimer) })
		}
	}
}

// boostRows returns n rows of d features with random bins, and labels that depend on some of
// the features.
func boostRows(n, d int) (*bins.Data, []float64) {
	rng := rand.New(rand.NewPCG(7, 7))
	l := &bins.Layout{Slots: d * 256, ColumnSlots: d * 256}
	for f := range d {
		feature := bins.Feature{Number: f, Bins: 255, Column: f, Slot: f * 256, Implicit: -1}
		for c := range 254 {
			feature.Cuts = append(feature.Cuts, float32(c)+0.5)
		}
		l.Features = append(l.Features, feature)
		l.Columns = append(l.Columns, bins.Column{Slot: f * 256, Width: 256, Features: []int{f}, Offset: f})
	}
	data := &bins.Data{Facts: &bins.Facts{Rows: int64(n)}, Layout: l, Rows: n, Blocks: []bins.Block{{Stride: d, Bins: make([]byte, n*d)}}}
	label := make([]float64, n)
	for r := range n {
		row := data.Blocks[0].Bins[r*d:][:d]
		for c := range row {
			row[c] = byte(rng.IntN(255))
		}
		score := 0.0
		for k := range 8 {
			score += (float64(row[k]) - 127) * (float64(row[k+1]) - 127) / 16000 * float64(k%3)
		}
		if rng.Float64() < kernel.Sigmoid(score+float64(row[20])/100-1.3) {
			label[r] = 1
		}
	}
	return data, label
}

// boost runs rounds of logistic boosting and returns the margins of all rows. first is
// called when the first round begins.
func boost(b testing.TB, params Params, data *bins.Data, label []float64, p, rounds int, packedFrom int64, first func()) []float64 {
	g := New(params)
	g.packedFrom = packedFrom
	all := make([]float64, data.Rows)
	margins := shared.Scratch[[]float64]("margins")
	n, d := data.Rows, data.Blocks[0].Stride
	own := func(ctx *comqueue.ComContext) sharding.Range { return sharding.Split(n, ctx.NumTask(), ctx.TaskID()) }
	begin := func(ctx *comqueue.ComContext) error {
		r := own(ctx)
		s, ok := g.Lookup(ctx)
		if !ok {
			part := *data
			part.Rows = r.Len()
			part.Blocks = []bins.Block{{Stride: d, Bins: data.Blocks[0].Bins[r.Lo*d : r.Hi*d]}}
			var err error
			if s, err = g.Open(ctx, &part); err != nil {
				return err
			}
			margins.Put(ctx, all[r.Lo:r.Hi])
			if ctx.TaskID() == 0 {
				first()
			}
		}
		s.Begin(ctx.StepNo(), 1)
		m := margins.Get(ctx)
		var grad, hess [1024]float64
		for lo := 0; lo < len(m); lo += len(grad) {
			k := min(len(grad), len(m)-lo)
			kernel.SigmoidTo(grad[:k], m[lo:lo+k])
			for i, q := range grad[:k] {
				grad[i], hess[i] = q-label[r.Lo+lo+i], q*(1-q)
			}
			s.Target(0).Set(lo, grad[:k], hess[:k])
		}
		return nil
	}
	end := func(ctx *comqueue.ComContext) error {
		s, m := g.State(ctx), margins.Get(ctx)
		nodes := s.Tree(0).Nodes
		s.EachLeaf(0, func(node int32, rows []int32) {
			value := 0.1 * nodes[node].Value
			for _, r := range rows {
				m[r] += value
			}
		})
		return nil
	}
	trial.Run(b, func(builder *engine.Builder) {
		q := comqueue.New(builder, "growth").Do(begin)
		for _, stage := range g.Stages() {
			q.Add(stage)
		}
		rows := q.Add(comqueue.Named("end", comqueue.Do(end))).SetMaxIter(rounds).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]struct{ X int64 }, error) { return nil, nil })).Exec()
		engine.Collect(rows, "rows")
	}, engine.Parallelism(p), engine.CheckBroadcasts(false))
	return all
}

// TestPackedPairsLoseNothing trains with packed pairs and with fine pairs, and requires that
// the two losses after some rounds are nearly equal. The two trainings choose different splits
// only if the splits are nearly equally good. This changes the loss far less than sampling
// other rows would.
func TestPackedPairsLoseNothing(t *testing.T) {
	x, label := boostRows(12_000, 21)
	loss := func(packedFrom int64) (sum float64) {
		margins := boost(t, Params{MaxDepth: 5, Lambda: 1, MinChildWeight: 1}, x, label, 2, 12, packedFrom, func() {})
		for r, m := range margins {
			sum += kernel.Softplus(m) - label[r]*m
		}
		return sum / float64(len(margins))
	}
	packed, fine := loss(0), loss(math.MaxInt64)
	t.Logf("loss %.12f with packed pairs, %.12f with fine pairs", packed, fine)
	require.Less(t, fine, 0.65, "boosting must reduce the loss well below log 2, the loss before the first round")
	require.NotEqual(t, fine, packed, "packed pairs and fine pairs must give different bits, or the test compares nothing")
	require.InEpsilon(t, fine, packed, 1e-4)
}

// BenchmarkRoute reports the time to route 1,000,000 rows of 28 features through a tree of
// depth 6, and through a tree of 255 leaves.
func BenchmarkRoute(b *testing.B) {
	data, _ := boostRows(1_000_000, 28)
	for _, leaves := range []int{64, 255} {
		g, out, r := randomTree(data, leaves), []int32(nil), router{}
		b.Run(fmt.Sprintf("leaves=%d", leaves), func(b *testing.B) {
			for b.Loop() {
				out = r.route(g, data, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(data.Rows), "ns/row")
		})
	}
}

// randomTree returns a tree with the given number of leaves. It grows breadth first and splits
// random features at the middle of their bins.
func randomTree(data *bins.Data, leaves int) *grown {
	rng := rand.New(rand.NewPCG(5, 6))
	n := 2*leaves - 1
	g := &grown{Tree: tree.Tree{Nodes: make([]tree.Node, n)}, rules: make([]rule, n)}
	for i := 0; 2*i+2 < n; i++ {
		g.Tree.Nodes[i].Left, g.Tree.Nodes[i].Right = int32(2*i+1), int32(2*i+2)
		g.rules[i] = rule{feature: int32(rng.IntN(len(data.Layout.Features))), place: 100 + int32(rng.IntN(50))}
	}
	return g
}
