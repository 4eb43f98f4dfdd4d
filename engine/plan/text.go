package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/internal/humanize"
)

const (
	// shortFingerprint is the number of digits of a fingerprint that Text shows.
	shortFingerprint = 12
	// widestName limits the width of the column of names, so that one long name does
	// not move the other columns out of sight.
	widestName = 84
	// widestLine limits the width of lists of parameters and columns.
	widestLine = 96
	// widestLabel limits the width of the column of labels below a vertex.
	widestLabel = 50
)

// Text returns a description of the plan for people: one block per vertex, in order.
// The first line of a block has the vertex's chain, subtasks and shards; the other
// lines have its parameters and its incoming edges. A frame surrounds the vertices of
// a queue. The text depends on the plan alone and ends in a newline.
//
// An edge is written as "← v0 Vectorize  hash(species)": the sending vertex, the
// operator in it, and the partitioner. Materialised edges are marked "materialised".
// "↻" marks feedback edges, which lead to the next superstep or to the next round of an
// inner loop.
func (p *Plan) Text() string {
	t := planText{p: p}
	t.header()
	drawn := make(map[string]bool, len(p.Queues))
	byQueue := make(map[string][]VertexID, len(p.Queues))
	for i := range p.Vertices {
		if q := p.Vertices[i].Queue; q != "" {
			byQueue[q] = append(byQueue[q], VertexID(i))
		}
	}
	queues := make(map[string]*Queue, len(p.Queues))
	for i := range p.Queues {
		queues[p.Queues[i].Name] = &p.Queues[i]
	}
	for i := range p.Vertices {
		q := p.Vertices[i].Queue
		if q == "" {
			t.vertex(VertexID(i))
			continue
		}
		if drawn[q] {
			continue
		}
		drawn[q] = true
		end := ":"
		if queue := queues[q]; queue != nil {
			end += " " + ending(queue) + ";"
		}
		resumption := ResumptionOf(p.Nodes, q)
		end += " " + resumption.text(p.Vertices[i].Parallelism)
		fmt.Fprintf(&t.b, "┌ queue %s%s\n", plain(clip(q, 40)), end)
		for _, v := range byQueue[q] {
			t.vertex(v)
		}
		t.b.WriteString("└\n")
	}
	return t.b.String()
}

// StagesOf returns the titles of the nodes of a queue, in the order of the plan. named says of each whether
// the name in its title is stable, and not that of a function.
func (p *Plan) StagesOf(queue string) (titles []string, named []bool) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Queue == queue {
			titles, named = append(titles, n.Title()), append(named, !n.NamedAfterFunc)
		}
	}
	return titles, named
}

// ending returns a text that says when queue q ends.
func ending(q *Queue) string {
	most := "at most " + humanize.Count(q.MaxSupersteps, "superstep")
	switch {
	case !q.HasCriterion:
		return humanize.Count(q.MaxSupersteps, "superstep")
	case q.MaxSupersteps == 0:
		return "until the criterion holds"
	}
	return "until the criterion holds, " + most
}

// Print writes the plan in the form "json", "dot" or "text", and ends it with a newline.
func (p *Plan) Print(w io.Writer, form string) error {
	var text string
	switch form {
	case "json":
		data, err := p.JSON()
		if err != nil {
			return err
		}
		text = string(data)
	case "dot":
		text = p.DOT()
	default:
		text = p.Text()
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(text, "\n"))
	return err
}

// planText is the state of one call of Plan.Text.
type planText struct {
	p       *Plan
	b       strings.Builder
	idWidth int
	// column is the width of the first column in the first lines of vertices, which
	// holds the names. below is its width in the other lines, where it holds labels.
	column, below int
}

func (t *planText) header() {
	p := t.p
	name := plain(clip(p.Job, 60))
	if name == "" {
		name = "(anonymous)"
	}
	fmt.Fprintf(&t.b, "plan of %s at parallelism %d: %s, %s, %s, seed %d, graph %s\n",
		name, p.Parallelism, humanize.CountOf(len(p.Vertices), "vertex", "vertices"), humanize.Count(p.Slots, "slot"),
		humanize.Count(p.Shards, "shard"), p.Seed, clip(p.Fingerprint, shortFingerprint+1))
	t.idWidth = len(strconv.Itoa(max(0, len(p.Vertices)-1))) + 1
	for i := range p.Vertices {
		frame := frameOf(&p.Vertices[i])
		t.column = max(t.column, min(widestName, utf8.RuneCountInString(t.head(frame, VertexID(i)))))
		for _, r := range t.rows(frame, VertexID(i)) {
			t.below = max(t.below, min(widestLabel, utf8.RuneCountInString(r[0])))
		}
	}
}

// frameOf returns the part of a queue's frame that begins each line of vertex v.
func frameOf(v *Vertex) string {
	if v.Queue == "" {
		return ""
	}
	return "│ "
}

// head returns the first column of the first line of a vertex.
func (t *planText) head(frame string, id VertexID) string {
	return fmt.Sprintf("%s%-*s %s", frame, t.idWidth, "v"+strconv.Itoa(int(id)), t.p.Vertices[id].Name)
}

// rows returns the lines below the first line of a vertex, which have two columns.
// They give its parameters, then its incoming edges.
func (t *planText) rows(frame string, id VertexID) [][2]string {
	v := &t.p.Vertices[id]
	indent := frame + strings.Repeat(" ", t.idWidth+3)
	var rows [][2]string
	for _, m := range v.Chain {
		n := &t.p.Nodes[m.Node]
		if facts := nodeFacts(n); facts != "" {
			rows = append(rows, [2]string{indent + label(n), facts})
		}
	}
	for _, e := range t.p.In(id) {
		from := label(&t.p.Nodes[e.FromNode])
		arrow, to := "← ", ""
		if e.Role == Feedback {
			arrow = "↻ "
		}
		if e.ToNode != v.Chain[0].Node {
			to = " → " + label(&t.p.Nodes[e.ToNode])
		}
		rows = append(rows, [2]string{indent + arrow + "v" + strconv.Itoa(int(e.From)) + " " + from + to, edgeText(&e)})
	}
	return rows
}

func (t *planText) vertex(id VertexID) {
	frame := frameOf(&t.p.Vertices[id])
	fmt.Fprintf(&t.b, "%s  %s\n", pad(t.head(frame, id), t.column), share(&t.p.Vertices[id]))
	for _, r := range t.rows(frame, id) {
		fmt.Fprintf(&t.b, "%s  %s\n", pad(r[0], t.below), r[1])
	}
}

// share returns the number of subtasks of a vertex and of the shards that each owns.
func share(v *Vertex) string {
	if len(v.Ranges) == 0 {
		return humanize.Count(v.Parallelism, "subtask")
	}
	least, most := v.Ranges[0].Len(), v.Ranges[0].Len()
	for _, r := range v.Ranges {
		least, most = min(least, r.Len()), max(most, r.Len())
	}
	shards := humanize.Count(most, "shard")
	if least != most {
		shards = strconv.Itoa(least) + "–" + shards
	}
	return humanize.Count(v.Parallelism, "subtask") + " × " + shards
}

// nodeFacts returns the text that a plan shows for a node in addition to its label:
// its order of reduction, if any, and its parameters.
func nodeFacts(n *Node) string {
	var parts []string
	switch n.Order {
	case NoReduction:
	case RankTree:
		parts = append(parts, "[rank-tree: depends on parallelism]")
	default:
		parts = append(parts, "["+n.Order.String()+"]")
	}
	for _, a := range n.Attrs {
		parts = append(parts, plain(clip(a.Key, 30))+"="+value(a.Value, 40))
	}
	return fit(parts, " ")
}

// edgeText returns the text of routeText for an edge, followed by the mode if the edge
// is materialised.
func edgeText(e *Edge) string {
	s := routeText(e.Partitioner, e.Keys, e.Role)
	if e.Mode != Pipelined {
		s += ", " + e.Mode.String()
	}
	return s
}

// routeText returns the partitioner and the keys of an edge, followed by its role if it
// is not a data edge. For a forward edge without rows it returns the role alone.
func routeText(p Partitioner, keys []string, r Role) string {
	switch {
	case r == Data:
		return partitionText(p, keys)
	case r != Side && p == Forward:
		return r.String()
	}
	return partitionText(p, keys) + " " + r.String()
}

func partitionText(p Partitioner, keys []string) string {
	if len(keys) == 0 {
		return p.String()
	}
	shown := make([]string, len(keys))
	for i, key := range keys {
		shown[i] = plain(clip(key, 30))
	}
	return p.String() + "(" + fit(shown, ", ") + ")"
}

// value returns s, the value of a parameter, cut to at most the given number of runes. It is
// quoted unless it is one word.
func value(s string, most int) string {
	short := clip(s, most)
	if s == "" || strings.ContainsAny(s, " \t\"=") || plain(short) != short {
		return strconv.Quote(short)
	}
	return short
}

// fit joins parts until the line is full, and appends the number of parts left out.
func fit(parts []string, separator string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			if b.Len()+len(part) > widestLine {
				fmt.Fprintf(&b, "%s… %d more", separator, len(parts)-i)
				break
			}
			b.WriteString(separator)
		}
		b.WriteString(part)
	}
	return b.String()
}

// pad appends spaces to s up to a width in runes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
