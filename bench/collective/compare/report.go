package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/benchresult"
)

// report is everything that was measured.
type report struct {
	CPUs        int           `json:"cpus"`
	Rounds      int           `json:"rounds"`
	Contestants []*contestant `json:"contestants"`
	Rows        []*row        `json:"rows"`
	Ended       string        `json:"ended,omitempty"` // why measuring ended early; "" if everything was measured
}

// row has the results at a point; Cells has one for each contestant.
type row struct {
	point
	Cells  []*cell  `json:"cells"`
	Ratios []*ratio `json:"ratios"` // one over TCP and one in memory; an element is nil if Superstep has no figure for the transport
}

// cell is the result of a contestant at a point.
type cell struct {
	Rounds [][]result `json:"rounds"`

	// Config is the fastest configuration. P50 and P99 are the 50th and the 99th percentile of
	// its times in seconds, each as the median over the rounds. They are 0 if the contestant
	// has no figure.
	Config string  `json:"config"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`

	// Algorithm is the algorithm that Superstep chose in its last round.
	Algorithm string `json:"algorithm"`

	// TimedOutAfter is the time limit in seconds if a run of the contestant exceeded it at this
	// or an earlier point, so that rounds are missing. Otherwise it is 0.
	TimedOutAfter float64 `json:"gave_up,omitempty"`

	failed bool
}

// ratio compares the first contestant of Superstep over a transport with the best peers.
type ratio struct {
	Transport string  `json:"transport"`
	Best      float64 `json:"best"`      // Superstep's time divided by the time of the best peer; 0 if unknown
	BestPeer  string  `json:"best_peer"` // name of the best peer
	Quiet     float64 `json:"quiet"`     // Superstep's time divided by the time of the best peer that does not poll; 0 if unknown
	QuietPeer string  `json:"quiet_peer"`
}

// configs returns the names of the configurations in all rounds, without duplicates, in the
// order in which they first occur.
func (c *cell) configs() []string {
	var names []string
	for _, round := range c.Rounds {
		for _, r := range round {
			if !slices.Contains(names, r.Config) {
				names = append(names, r.Config)
			}
		}
	}
	return names
}

// values returns the given figure of a configuration, for each round that has a result of the
// configuration.
func (c *cell) values(config string, figure func(result) float64) []float64 {
	var all []float64
	for round := range c.Rounds {
		if i := c.find(round, config); i >= 0 {
			all = append(all, figure(c.Rounds[round][i]))
		}
	}
	return all
}

// find returns the index of a configuration among the results of a round, or −1.
func (c *cell) find(round int, config string) int {
	return slices.IndexFunc(c.Rounds[round], func(r result) bool { return r.Config == config })
}

// times returns the median time of a configuration in each of its rounds, in seconds.
func (c *cell) times(config string) []float64 {
	return c.values(config, func(r result) float64 { return r.P50 })
}

// sum computes the medians and ratios of all rows.
func (r *report) sum() {
	for _, row := range r.Rows {
		for _, c := range row.Cells {
			if c.failed {
				continue
			}
			c.sum()
		}
		row.Ratios = nil
		for _, transport := range []string{overTCP, inMemory} {
			row.Ratios = append(row.Ratios, r.ratio(row, transport))
		}
	}
}

// sum finds the configuration with the best median, and sets the fields of c for it. It
// considers only the configurations with the most rounds, so that the single figure of a
// configuration that was dropped after the first round cannot be chosen.
func (c *cell) sum() {
	names, most := c.configs(), 0
	for _, name := range names {
		most = max(most, len(c.times(name)))
	}
	for _, name := range names {
		all := c.times(name)
		if m := benchresult.Median(all); len(all) == most && (c.P50 == 0 || m < c.P50) {
			c.Config, c.P50 = name, m
			c.P99 = benchresult.Median(c.values(name, func(r result) float64 { return r.P99 }))
		}
	}
	for round := range c.Rounds {
		if i := c.find(round, c.Config); i >= 0 {
			c.Algorithm = c.Rounds[round][i].Algorithm
		}
	}
}

// ratio compares the first contestant of Superstep over a transport with the best peers in a
// row. It returns nil if the contestant of Superstep has no figure.
func (r *report) ratio(row *row, transport string) *ratio {
	i := slices.IndexFunc(r.Contestants, func(k *contestant) bool { return k.Ours && k.Transport == transport })
	if i < 0 || row.Cells[i].P50 == 0 {
		return nil
	}
	found := &ratio{Transport: transport}
	for _, quiet := range []bool{false, true} {
		best := -1
		for j, k := range r.Contestants {
			if k.Ours || k.Baseline || k.Transport != transport || row.Cells[j].P50 == 0 || quiet && (k.polls() || k.IdleCPU < 0) {
				continue
			}
			if best < 0 || row.Cells[j].P50 < row.Cells[best].P50 {
				best = j
			}
		}
		if best < 0 {
			continue
		}
		m, name := benchresult.Median(perRound(row.Cells[i], row.Cells[best])), r.Contestants[best].Name
		if quiet {
			found.Quiet, found.QuietPeer = m, name
		} else {
			found.Best, found.BestPeer = m, name
		}
	}
	return found
}

// perRound returns the ratio of the times of a and b in each round in which both have a result.
func perRound(a, b *cell) []float64 {
	var all []float64
	for round := range min(len(a.Rounds), len(b.Rounds)) {
		if i, j := a.find(round, a.Config), b.find(round, b.Config); i >= 0 && j >= 0 {
			all = append(all, a.Rounds[round][i].P50/b.Rounds[round][j].P50)
		}
	}
	return all
}

// print writes one table for each transport with figures, and then the processor times of
// waiting.
func (r *report) print(w io.Writer) error {
	for i, transport := range []string{overTCP, inMemory} {
		var columns []int
		for j, k := range r.Contestants {
			if k.Transport == transport && slices.ContainsFunc(r.Rows, func(x *row) bool { return x.Cells[j].text() != none }) {
				columns = append(columns, j)
			}
		}
		if len(columns) == 0 {
			continue
		}
		if err := r.printTable(w, i, columns); err != nil {
			return err
		}
	}
	if err := r.printIdle(w); err != nil || r.Ended == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "Not all was measured: %s.\n", r.Ended)
	return err
}

// titles are the titles of the transports' tables.
var titles = map[string]string{overTCP: "Between processes over loopback TCP", inMemory: "In shared memory"}

func (r *report) printTable(w io.Writer, which int, columns []int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, float64 sums, medians of %d rounds on %d CPUs; contestants with a * poll:\n\n", titles[[]string{overTCP, inMemory}[which]], r.Rounds, r.CPUs)
	head, rule := "| collective | ranks | size |", "|---|---|---|"
	for _, j := range columns {
		head += " " + r.Contestants[j].Name
		if r.Contestants[j].polls() {
			head += " *"
		}
		head, rule = head+" |", rule+"---|"
	}
	fmt.Fprintln(&b, head+" ours to best quiet peer | ours to best peer |")
	fmt.Fprintln(&b, rule+"---|---|")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %d | %s |", row.Collective, row.Ranks, sizeText(row.Bytes))
		for _, j := range columns {
			fmt.Fprintf(&b, " %s |", row.Cells[j].text())
		}
		if x := row.Ratios[which]; x != nil {
			fmt.Fprintf(&b, " %s | %s |\n", ratioText(x.Quiet, x.QuietPeer), ratioText(x.Best, x.BestPeer))
		} else {
			fmt.Fprintf(&b, " – | – |\n")
		}
	}
	fmt.Fprintln(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// sizeText returns a size as text, which is empty for barriers.
func sizeText(bytes int) string {
	if bytes == 0 {
		return ""
	}
	return benchresult.Size(bytes)
}

// printIdle writes the table of processor times of waiting.
func (r *report) printIdle(w io.Writer) error {
	var b strings.Builder
	for _, k := range r.Contestants {
		if k.IdleCPU >= 0 {
			fmt.Fprintf(&b, "| %s | %.2f s |\n", k.Name, k.IdleCPU)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "Processor time of a rank that waits for a second:\n\n| contestant | time |\n|---|---|\n%s\n", b.String())
	return err
}

// none is the text of a cell without a figure.
const none = "–"

func (c *cell) text() string {
	text := none
	if c.P50 > 0 {
		text = benchresult.Duration(c.P50)
		if how := strings.Trim(c.Algorithm+", "+c.Config, ", "); how != "" {
			text += " (" + how + ")"
		}
	}
	if c.TimedOutAfter > 0 {
		text = strings.TrimPrefix(text+", ", none+", ") + fmt.Sprintf("gave up after %g s", c.TimedOutAfter)
	}
	return text
}

func ratioText(ratio float64, peer string) string {
	if ratio == 0 {
		return none
	}
	return fmt.Sprintf("%.2f (%s)", ratio, peer)
}
