package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// observations holds fingerprints of what a run has computed. They depend only on the contents of
// rows, and not on the boundaries of batches or on the layout of Arrow arrays.
type observations struct {
	graph *plan.Graph
	rows  [][]shardPrint // by node and shard; only the goroutine that emits a shard writes its element

	mu      sync.Mutex
	objects map[string][][]shared.Fingerprint // by queue and superstep
	sums    map[plan.NodeID]map[sumPlace]float64
	queues  []task.QueueReport // reports with the series of values; set when the run has ended
}

// sumPlace is the name and the shard of a value that an operator has accumulated.
type sumPlace struct {
	name  string
	shard int
}

// shardPrint is the fingerprint of the rows of one shard.
type shardPrint struct {
	rows  int64
	print uint64
	text  []byte // buffer that is reused for each row
}

func newObservations(g *plan.Graph) *observations {
	o := &observations{graph: g, rows: make([][]shardPrint, len(g.Nodes)), objects: map[string][][]shared.Fingerprint{},
		sums: map[plan.NodeID]map[sumPlace]float64{}}
	for i := range o.rows {
		o.rows[i] = make([]shardPrint, g.Shards)
	}
	return o
}

// Rows implements task.Observer.
func (o *observations) Rows(node plan.NodeID, shard int, emitted columnar.Batch) {
	rows := arrowrows.Record(emitted)
	s := &o.rows[node][shard]
	columns := make([]batch.Printer, rows.NumCols())
	for i := range columns {
		columns[i] = batch.NewPrinter(rows.Column(i))
	}
	for row := range int(rows.NumRows()) {
		s.text = s.text[:0]
		for i := range columns {
			if columns[i].Null(row) {
				s.text = append(s.text, 0)
				continue
			}
			at := len(s.text)
			s.text = append(s.text, 1, 0, 0, 0, 0, 0, 0, 0, 0)
			s.text = columns[i].Append(s.text, row)
			binary.LittleEndian.PutUint64(s.text[at+1:], uint64(len(s.text)-at-9))
		}
		s.print = xxh3.HashSeed(s.text, s.print)
	}
	s.rows += rows.NumRows()
}

// Objects implements task.Observer.
func (o *observations) Objects(queue string, _ int, held []shared.Fingerprint) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[queue] = append(o.objects[queue], slices.Clone(held))
}

// Sums implements task.Observer.
func (o *observations) Sums(node plan.NodeID, name string, shards []int, sums []float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sums[node] == nil {
		o.sums[node] = map[sumPlace]float64{}
	}
	for i, shard := range shards {
		o.sums[node][sumPlace{name, shard}] = sums[i]
	}
}

// ended stores the reports of the run's queues.
func (o *observations) ended(r *task.Report) { o.queues = r.Queues }

// series returns the values that a queue reported.
func (o *observations) series(queue string) map[string][]float64 {
	series := map[string][]float64{}
	for _, q := range o.queues {
		if q.Name == queue {
			for _, s := range q.Series {
				series[s.Name] = s.Values
			}
		}
	}
	return series
}

// difference returns the first difference between two runs, in the order of the graph, or nil.
// In its text {0} and {1} are placeholders for the settings of the two runs.
func (o *observations) difference(other *observations) *CheckError {
	seen := map[string]bool{}
	for i := range o.graph.Nodes {
		n := &o.graph.Nodes[i]
		if n.Queue != "" && !seen[n.Queue] {
			seen[n.Queue] = true
			objects := objectsDiffer(n, o.objects[n.Queue], other.objects[n.Queue])
			series := seriesDiffer(n, o.series(n.Queue), other.series(n.Queue))
			switch {
			case series != nil && (objects == nil || series.Superstep < objects.Superstep):
				return series
			case objects != nil:
				return objects
			}
		}
		for shard := range o.rows[i] {
			a, b := &o.rows[i][shard], &other.rows[i][shard]
			if a.rows == b.rows && a.print == b.print {
				continue
			}
			but := "others"
			if a.rows != b.rows {
				but = fmt.Sprint(b.rows)
			}
			return &CheckError{Operator: nodeTitle(n), Site: n.Site, Shard: shard,
				within: n.Within,
				what:   fmt.Sprintf("the rows that it emits in shard %d differ: %d with {0}, %s with {1}", shard, a.rows, but)}
		}
		if e := sumsDiffer(n, o.sums[n.ID], other.sums[n.ID]); e != nil {
			return e
		}
	}
	return nil
}

// sumsDiffer returns the first difference between accumulated values, or nil. Values are
// compared in the order of shards and, within a shard, of names.
func sumsDiffer(n *plan.Node, a, b map[sumPlace]float64) *CheckError {
	places := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(places, func(p, q sumPlace) int { return cmp.Or(p.shard-q.shard, cmp.Compare(p.name, q.name)) })
	for _, p := range places {
		x, inA := a[p]
		y, inB := b[p]
		if inA == inB && sameValue(x, y) {
			continue
		}
		return &CheckError{Operator: nodeTitle(n), Site: n.Site, Shard: p.shard, Key: p.name, within: n.Within,
			what: fmt.Sprintf("what it accumulates as %q in shard %d differs: %s with {0}, %s with {1}", p.name, p.shard, valueText(x, inA), valueText(y, inB))}
	}
	return nil
}

// seriesDiffer returns the first difference between reported values, or nil. Values are
// compared in the order of supersteps and, within a superstep, of names. A missing value is
// NaN.
func seriesDiffer(n *plan.Node, a, b map[string][]float64) *CheckError {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var first *CheckError
	for _, name := range names {
		at := func(values []float64, step int) float64 {
			if step < len(values) {
				return values[step]
			}
			return math.NaN()
		}
		for step := range max(len(a[name]), len(b[name])) {
			x, y := at(a[name], step), at(b[name], step)
			if sameValue(x, y) {
				continue
			}
			if first == nil || step+1 < first.Superstep {
				first = &CheckError{Operator: fmt.Sprintf("queue %q", n.Queue), Site: n.Site, Shard: -1, Superstep: step + 1, Key: name, within: n.Within,
					what: fmt.Sprintf("what it reports as %q in superstep %d differs: %s with {0}, %s with {1}", name, step+1, valueText(x, true), valueText(y, true))}
			}
			break
		}
	}
	return first
}

// sameValue reports whether x and y have the same bits or are both NaN.
func sameValue(x, y float64) bool {
	return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
}

// valueText returns v as text, or another text if there is false, which means that there is no
// value. Different values have different texts.
func valueText(v float64, there bool) string {
	if !there {
		return "nothing"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// objectsDiffer returns the difference for the first superstep after which a replicated object
// differs, or nil.
func objectsDiffer(n *plan.Node, a, b [][]shared.Fingerprint) *CheckError {
	e := &CheckError{Operator: fmt.Sprintf("queue %q", n.Queue), Site: n.Site, Shard: -1, within: n.Within}
	for step := range min(len(a), len(b)) {
		if key, differs := firstKey(a[step], b[step]); differs {
			e.Superstep, e.Key = step+1, key
			e.what = fmt.Sprintf("its replicated object %q differs after superstep %d, between {0} and {1}", key, step+1)
			return e
		}
	}
	if len(a) != len(b) {
		e.Superstep = min(len(a), len(b)) + 1
		e.what = fmt.Sprintf("it ends after %d supersteps with {0}, and after %d with {1}", len(a), len(b))
		return e
	}
	return nil
}

// firstKey compares two lists that are sorted by name. It returns the first name whose fingerprint
// differs or that only one list contains, and whether there is such a name.
func firstKey(a, b []shared.Fingerprint) (string, bool) {
	for i := range max(len(a), len(b)) {
		switch {
		case i == len(a):
			return b[i].Name, true
		case i == len(b):
			return a[i].Name, true
		case a[i] != b[i]:
			return slices.MinFunc([]string{a[i].Name, b[i].Name}, cmp.Compare[string]), true
		}
	}
	return "", false
}

// count returns the numbers of operators, shards and supersteps that were observed.
func (o *observations) count() (operators, shards, supersteps int) {
	for i := range o.graph.Nodes {
		if n := &o.graph.Nodes[i]; !n.Sink && (n.Queue == "" || n.Stage == plan.QueueClose) {
			operators++
		}
	}
	for _, steps := range o.objects {
		supersteps += len(steps)
	}
	return operators, o.graph.Shards, supersteps
}
