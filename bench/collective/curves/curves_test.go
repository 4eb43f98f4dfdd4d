package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/internal/benchresult"
)

// TestCrossoversAgreeWithExhaustiveSearch compares crossovers with the crossovers found by
// pricing every algorithm at every size.
func TestCrossoversAgreeWithExhaustiveSearch(t *testing.T) {
	net, err := simulate.Named("10gbe")
	require.NoError(t, err)
	const ranks, most = 12, 1 << 18
	for _, takes := range []func(*algorithm.Algorithm, int) bool{nil, canonical} {
		found, err := newPricer(t.Context(), net).crossovers(ranks, most, takes)
		require.NoError(t, err)
		require.Zero(t, found[len(found)-1].upTo)
		for bytes := elem; bytes <= most; bytes = bytes*5/4/elem*elem + elem {
			var at string
			near := false
			for _, s := range found {
				if near = near || s.upTo > 0 && bytes > s.upTo*95/100-64 && bytes < s.upTo*105/100+64; at == "" && (s.upTo == 0 || bytes < s.upTo) {
					at = s.name
				}
			}
			least, here := math.Inf(1), 0.0
			for _, a := range allReduces() {
				if takes != nil && !takes(a, ranks) || a.Supports(algorithm.Params{P: ranks}) != nil {
					continue
				}
				r, err := simulate.Price(t.Context(), a, algorithm.Params{P: ranks}, bytes, elem, net, simulate.Options{})
				require.NoError(t, err)
				if least = min(least, r.Time); a.Name == at {
					here = r.Time
				}
			}
			if !near {
				require.LessOrEqual(t, lead*here, least, "%s for %d bytes", at, bytes)
			}
		}
	}
}

func TestDraw(t *testing.T) {
	dir := t.TempDir()
	c := drawCommand{Network: []string{"10gbe", "two-tier"}, Out: dir, At: 4, Short: 1 << 10, Long: 1 << 16,
		MaxRanks: 8, Ranks: []int{4}, MaxBytes: 1 << 16}
	require.NoError(t, c.Validate())
	var out strings.Builder
	require.NoError(t, c.Run(t.Context(), &out))
	require.Contains(t, out.String(), "10gbe, all algorithms:")
	require.Contains(t, out.String(), "two-tier, canonical order only:")
	for _, name := range c.Network {
		for _, kind := range []string{"by-size", "short-by-ranks", "long-by-ranks"} {
			info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("allreduce-%s-%s.png", name, kind)))
			require.NoError(t, err)
			require.Greater(t, info.Size(), int64(10_000))
		}
	}
	c.Network = []string{"token-ring"}
	require.ErrorContains(t, c.Run(t.Context(), &out), `no network "token-ring"`)
}

// TestCompare compares the errors in the report with errors that were computed by hand.
func TestCompare(t *testing.T) {
	net, err := simulate.Preset("loopback")
	require.NoError(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.jsonl")
	var text strings.Builder
	add := func(name string, ranks, bytes int, off float64) {
		a, err := algorithm.Find(program.AllReduce, name)
		require.NoError(t, err)
		r, err := simulate.Price(t.Context(), a, algorithm.Params{P: ranks}, bytes, 8, net, simulate.Options{})
		require.NoError(t, err)
		line, err := json.Marshal(benchresult.Line{Collective: "allreduce", Algorithm: name, Type: "float64", Ranks: ranks, Bytes: bytes, P50: off * r.Time * 1e6})
		require.NoError(t, err)
		fmt.Fprintf(&text, "chatter\n%s\n", line)
	}
	add("direct", 2, 1<<20, 0.8) // priced 25 % too high
	add("ring", 2, 1<<22, 1)     // exact
	add("ring", 2, 1<<10, 100)   // too few bytes to be considered
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))

	var out strings.Builder
	c := compareCommand{Measured: path, Network: "loopback", Check: true}
	require.NoError(t, c.Run(t.Context(), &out))
	require.Contains(t, out.String(), "| allreduce | direct | 1 MiB |")
	require.Contains(t, out.String(), "+25 % |")
	require.Contains(t, out.String(), "At 2 ranks from 1 MiB up, the worst of 2 prices is off by 25 %.")
	require.NotContains(t, out.String(), "| 1 KiB |")

	add("ring", 2, 1<<24, 2) // priced 50 % too low
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	out.Reset()
	require.ErrorContains(t, c.Run(t.Context(), &out), "not as near")
	require.Contains(t, out.String(), "off by 50 %")
}

func TestOrders(t *testing.T) {
	find := func(name string) *algorithm.Algorithm {
		a, err := algorithm.Find(program.AllReduce, name)
		require.NoError(t, err)
		return a
	}
	var runs []simulate.Sample
	add := func(name string, ranks int, seconds float64) {
		runs = append(runs, simulate.Sample{Kind: simulate.Collective, Algorithm: find(name),
			Params: algorithm.Params{P: ranks}, Bytes: 1024, Seconds: seconds})
	}
	add("direct", 4, 1)
	add("ring", 4, 2)
	add("linear", 4, 2.2) // within 20 % of the time of ring: no pair
	add("binomial", 4, 4)
	add("direct", 8, 1) // another number of ranks: no pair
	add("binomial", 2, 1)
	add("linear", 2, 9) // the same program with two ranks: no pair
	ordered, pairs, wrong := orders(runs, []float64{3, 2, 1, 4, 9, 1, 1})
	require.Equal(t, [2]int{3, 5}, [2]int{ordered, pairs})
	require.Equal(t, []string{
		"| 4 | 1 KiB | direct | ring | 2.00 | 0.67 |",
		"| 4 | 1 KiB | direct | linear | 2.20 | 0.33 |",
	}, wrong)
}

func TestReadMeasurementsSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "no run of an algorithm",
		"{":                                    "line 1: ",
		"\n{\"kind\":\"gossip\",\"p50_us\":1}": `line 2: no kind of measurement "gossip"`,
		`{"collective":"allreduce","algorithm":"ring","ranks":4,"bytes":8}`:                  "line 1: 8 bytes in 0 µs",
		`{"collective":"allreduce","algorithm":"rong","ranks":4,"p50_us":1}`:                 "did you mean ring?",
		`{"collective":"alltoone","algorithm":"ring","ranks":4,"p50_us":1}`:                  `no collective "alltoone"`,
		`{"collective":"allreduce","algorithm":"ring","ranks":0,"p50_us":1}`:                 "among 0 ranks",
		`{"collective":"allreduce","algorithm":"ring","ranks":2,"p50_us":1,"type":"float8"}`: `no type "float8"`,
	} {
		_, err := readMeasurements(strings.NewReader(text), medianRound)
		require.ErrorContains(t, err, want)
	}
	p50 := func(l *benchresult.Line) float64 { return l.P50 }
	m, err := readMeasurements(strings.NewReader(
		`{"kind":"ping-pong","bytes":8,"p50_us":20}`+"\n"+
			`{"collective":"allreduce","algorithm":"ring","ranks":2,"bytes":8,"p50_us":50,"type":"float32"}`), p50)
	require.NoError(t, err)
	require.Equal(t, []simulate.Sample{{Kind: simulate.PingPong, Bytes: 8, Seconds: 20 / 1e6}}, m.probes)
	require.Equal(t, "allreduce ring among 2 of 8 bytes", m.runs[0].String())
	require.Equal(t, 4, m.runs[0].Elem)

	m, err = readMeasurements(strings.NewReader(`{"raw_gbs":3.1}`+"\n"+
		`{"collective":"allreduce","algorithm":"torus:2x4","ranks":8,"bytes":8,"p50_us":50}`), p50)
	require.NoError(t, err)
	require.Len(t, m.runs, 1)
	require.Equal(t, []int{2, 4}, m.runs[0].Params.Dims)
}

// TestThePageIsTrue requires that docs/collectives.md lists every algorithm, shows the programs
// that algorithms generate now, and has the crossovers that this command computes. Of the
// crossovers it tests only the rows for 4 ranks, which are quick to compute.
func TestThePageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../../docs/collectives.md")
	require.NoError(t, err)
	page := string(text)
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			row := fmt.Sprintf("| %s | `%s` | %s | %s |", c, a.Name, a.Summary, alwaysCanonical(a))
			require.Contains(t, page, row)
		}
	}
	for name, ranks := range map[string]int{"ring": 3, "direct": 2} {
		a, err := algorithm.Find(program.AllReduce, name)
		require.NoError(t, err)
		require.Contains(t, page, "```\n"+a.Generate(algorithm.Params{P: ranks}, 0).String()+"```\n")
	}
	_, example, ok := strings.Cut(page, "```json\n")
	require.True(t, ok)
	example, _, _ = strings.Cut(example, "```")
	_, err = simulate.Read(strings.NewReader(example))
	require.NoError(t, err)

	const most = 256 << 20
	for _, name := range []string{"10gbe", "two-tier"} {
		net, err := simulate.Named(name)
		require.NoError(t, err)
		found, err := newPricer(t.Context(), net).crossovers(4, most, nil)
		require.NoError(t, err)
		_, section, ok := strings.Cut(page, "\n"+name+", all algorithms:\n")
		require.True(t, ok)
		section, _, _ = strings.Cut(section, ":\n")
		require.Contains(t, section, fmt.Sprintf("| 4 | %s |", sentence(found)))
	}
}

// alwaysCanonical returns the text in the page's column about the order of an algorithm: "yes"
// if the algorithm folds in the canonical order for every number of ranks up to 64, and
// otherwise "".
func alwaysCanonical(a *algorithm.Algorithm) string {
	for p := 1; p <= 64; p++ {
		if !canonical(a, p) {
			return ""
		}
	}
	return "yes"
}
