package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared"
)

// observations are fingerprints of what a run computed. They are of content alone: of rows
// one by one, whatever batches they lie in and however Arrow holds them.
type observations struct {
	graph *plan.Graph
	rows  [][]shardPrint // by node and shard; who emits under a shard has its place alone

	mu      sync.Mutex
	objects map[string][][]shared.Fingerprint // by queue and superstep
}

// shardPrint is the fingerprint of the rows of one shard.
type shardPrint struct {
	rows  int64
	print uint64
	text  []byte // room
}

func newObservations(g *plan.Graph) *observations {
	o := &observations{graph: g, rows: make([][]shardPrint, len(g.Nodes)), objects: map[string][][]shared.Fingerprint{}}
	for i := range o.rows {
		o.rows[i] = make([]shardPrint, g.Shards)
	}
	return o
}

// Rows implements task.Observer.
func (o *observations) Rows(node plan.NodeID, shard int, rows arrow.Record) {
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

// difference returns the first place, in the order of the graph, where two runs differ, or
// nil. What it says has {0} and {1} for the settings of the two.
func (o *observations) difference(other *observations) *CheckError {
	seen := map[string]bool{}
	for i := range o.graph.Nodes {
		n := &o.graph.Nodes[i]
		if n.Queue != "" && !seen[n.Queue] {
			seen[n.Queue] = true
			if e := objectsDiffer(n, o.objects[n.Queue], other.objects[n.Queue]); e != nil {
				return e
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
				what: fmt.Sprintf("the rows that it emits in shard %d differ: %d with {0}, %s with {1}", shard, a.rows, but)}
		}
	}
	return nil
}

// objectsDiffer finds the first superstep after which a replicated object differs.
func objectsDiffer(n *plan.Node, a, b [][]shared.Fingerprint) *CheckError {
	e := &CheckError{Operator: fmt.Sprintf("queue %q", n.Queue), Site: n.Site, Shard: -1}
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

// firstKey returns the first name, of two lists sorted by name, that is not in both with
// the same fingerprint.
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

// count returns how much was seen.
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
