package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// DOT returns the graph in the language of Graphviz: a box per node, a cluster
// per queue, dashed side edges and dotted control and feedback edges.
func (g *Graph) DOT() string {
	d := dot{}
	d.begin(g.Job)
	byQueue := make(map[string][]int)
	for i := range g.Nodes {
		if q := g.Nodes[i].Queue; q != "" {
			byQueue[q] = append(byQueue[q], i)
		} else {
			d.node("  ", &g.Nodes[i], i)
		}
	}
	for k := range g.Queues {
		q := &g.Queues[k]
		fmt.Fprintf(&d.b, "  subgraph cluster_q%d {\n    label=%s; style=rounded;\n", k, quote("queue "+clip(q.Name, 40)+": "+ending(q)))
		for _, i := range byQueue[q.Name] {
			d.node("    ", &g.Nodes[i], i)
		}
		d.b.WriteString("  }\n")
	}
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs {
			d.edge(int(in.From), i, routeText(in.Partitioner, in.Keys, in.Role), in.Role, Pipelined)
		}
	}
	return d.end()
}

// DOT returns the plan in the language of Graphviz. Each node is a box, each
// vertex is a cluster of boxes, and another cluster surrounds the vertices of a
// queue. Chained edges have no label. Exchanges are labelled with their
// partitioner, and materialised exchanges are drawn thick.
func (p *Plan) DOT() string {
	d := dot{}
	d.begin(p.Job)
	byQueue := make(map[string][]int)
	for i := range p.Vertices {
		if q := p.Vertices[i].Queue; q != "" {
			byQueue[q] = append(byQueue[q], i)
		} else {
			d.vertex("  ", p, i)
		}
	}
	for k := range p.Queues {
		q := &p.Queues[k]
		fmt.Fprintf(&d.b, "  subgraph cluster_q%d {\n    label=%s; style=rounded;\n", k, quote("queue "+clip(q.Name, 40)+": "+ending(q)))
		for _, i := range byQueue[q.Name] {
			d.vertex("    ", p, i)
		}
		d.b.WriteString("  }\n")
	}
	for i := range p.Vertices {
		chain := p.Vertices[i].Chain
		for _, m := range chain[1:] {
			fmt.Fprintf(&d.b, "  n%d -> n%d;\n", chain[m.Parent].Node, m.Node)
		}
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		d.edge(int(e.FromNode), int(e.ToNode), routeText(e.Partitioner, e.Keys, e.Role), e.Role, e.Mode)
	}
	return d.end()
}

// dot writes text in the language of Graphviz.
type dot struct{ b strings.Builder }

func (d *dot) begin(job string) {
	fmt.Fprintf(&d.b, "digraph %s {\n  rankdir=TB; node [shape=box, style=rounded];\n", quote(clip(job, 60)))
}

func (d *dot) end() string {
	d.b.WriteString("}\n")
	return d.b.String()
}

func (d *dot) node(indent string, n *Node, i int) {
	text := label(n)
	if facts := nodeFacts(n); facts != "" {
		text += "\n" + facts
	}
	fmt.Fprintf(&d.b, "%sn%d [label=%s];\n", indent, i, quote(text))
}

func (d *dot) vertex(indent string, p *Plan, i int) {
	v := &p.Vertices[i]
	fmt.Fprintf(&d.b, "%ssubgraph cluster_v%d {\n%s  label=%s; style=filled; color=lightgrey;\n",
		indent, i, indent, quote("v"+strconv.Itoa(i)+"\n"+share(v)))
	for _, m := range v.Chain {
		d.node(indent+"  ", &p.Nodes[m.Node], int(m.Node))
	}
	d.b.WriteString(indent + "}\n")
}

func (d *dot) edge(from, to int, text string, role Role, mode Mode) {
	attrs := "label=" + quote(text)
	switch role {
	case Side:
		attrs += ", style=dashed"
	case Control, Feedback:
		attrs += ", style=dotted"
	}
	if role == Feedback {
		attrs += ", constraint=false"
	}
	if mode == Materialised {
		attrs += ", penwidth=2"
	}
	fmt.Fprintf(&d.b, "  n%d -> n%d [%s];\n", from, to, attrs)
}

// quote returns s as a Graphviz string. It escapes double quotes and backslashes,
// and writes line breaks as \n and other unprintable characters as spaces, so that
// no character of s ends the string or is read as an escape.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case !strconv.IsPrint(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
