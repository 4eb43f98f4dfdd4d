package tree

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// peer is a model of another library, with the results of the library for some rows.
type peer struct {
	Ensemble                             Ensemble
	Rows                                 [][]*float64 // nil means missing
	Margins, Contributions, Interactions []float64
	Leaves                               []int32
	Importances                          map[string]map[string]float64
}

// TestPeers compares results with those of XGBoost and LightGBM; see testdata/README.md.
func TestPeers(t *testing.T) {
	text, err := os.ReadFile("testdata/peers.json")
	require.NoError(t, err)
	var peers map[string]*peer
	require.NoError(t, json.Unmarshal(text, &peers))
	require.Len(t, peers, 4)
	for name, p := range peers {
		t.Run(name, func(t *testing.T) { p.check(t, strings.HasPrefix(name, "lightgbm")) })
	}
}

func (p *peer) check(t *testing.T, counts bool) {
	e := &p.Ensemble
	n, d, k := len(p.Rows), len(e.Features), e.Outputs
	x := make([]float64, 0, n*d)
	for _, row := range p.Rows {
		for _, v := range row {
			if v == nil {
				x = append(x, math.NaN())
			} else {
				x = append(x, *v)
			}
		}
	}
	const near = 3e-6 // tolerance: the libraries add in float32
	s := e.Scorer()
	scores := make([]float64, n*k)
	s.Dense(x, n, scores, 1)
	require.InDeltaSlice(t, p.Margins, scores, near)
	leaves := make([]int32, n*len(e.Trees))
	s.DenseLeaves(x, n, leaves, 1)
	require.Equal(t, p.Leaves, leaves)

	explainer, err := e.Explainer(ExplainOptions{ByCount: counts})
	require.NoError(t, err)
	values := make([]float64, n*k*(d+1))
	explainer.DenseValues(x, n, values, 1)
	require.InDeltaSlice(t, p.Contributions, values, near)
	if len(p.Interactions) > 0 {
		pairs := make([]float64, n*k*(d+1)*(d+1))
		explainer.DenseInteractions(x, n, pairs, 1)
		require.InDeltaSlice(t, p.Interactions, pairs, near)
	}
	for _, i := range e.Importances() {
		for kind, got := range map[string]float64{
			"weight": float64(i.Splits), "gain": i.Gain(), "cover": i.Cover(), "total_gain": i.TotalGain, "total_cover": i.TotalCover,
		} {
			if all, ok := p.Importances[kind]; ok {
				require.InDelta(t, all[i.Feature], got, 1e-5*all[i.Feature], "%s of %s", kind, i.Feature)
			}
		}
	}
}
