package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// label returns the name of a node in plans and messages: its kind, with the
// user's label if it has one, such as "Map(parse)". The name of a compute stage
// is the label alone.
func label(n *Node) string {
	op, name := plain(clip(n.Op, 40)), plain(clip(n.Name, 40))
	switch {
	case name == "" || name == op:
		return op
	case n.Stage == Compute:
		return name
	}
	return op + "(" + name + ")"
}

// EdgeName describes the edge of an index: the operator that receives its rows, the
// line that added this operator, its vertex, and the operator that sends the rows.
// It is "" if there is no such edge.
func (p *Plan) EdgeName(edge int) string {
	if edge < 0 || edge >= len(p.Edges) {
		return ""
	}
	e := &p.Edges[edge]
	to, site := &p.Nodes[e.ToNode], ""
	if to.Site != "" {
		site = " (" + to.Site + ")"
	}
	return fmt.Sprintf("the rows that %s%s, vertex %d, takes from %s", label(to), site, e.To, label(&p.Nodes[e.FromNode]))
}

// longestName is the number of labels that the name of a vertex holds at most.
const longestName = 12

// vertexName returns the labels of a chain joined by arrows; branches stand in
// parentheses. Long chains are cut in the middle and bushy ones at the end, so
// that a name stays a name.
func vertexName(nodes []Node, chain []Chained) string {
	for i, m := range chain {
		if m.Parent != i-1 {
			return treeName(nodes, chain)
		}
	}
	return lineName(nodes, chain)
}

// lineName names a chain without branches.
func lineName(nodes []Node, chain []Chained) string {
	labels := make([]string, 0, longestName)
	first, last := chain, []Chained(nil)
	if len(chain) > longestName {
		first, last = chain[:longestName-3], chain[len(chain)-2:]
	}
	for _, m := range first {
		labels = append(labels, label(&nodes[m.Node]))
	}
	if more := len(chain) - len(first) - len(last); more > 0 {
		labels = append(labels, "… "+strconv.Itoa(more)+" more …")
	}
	for _, m := range last {
		labels = append(labels, label(&nodes[m.Node]))
	}
	return strings.Join(labels, " → ")
}

// treeName names a chain with branches.
func treeName(nodes []Node, chain []Chained) string {
	t := treeNamer{nodes: nodes, chain: chain, children: make([][]int, len(chain)), left: longestName}
	for i, m := range chain {
		if i > 0 {
			t.children[m.Parent] = append(t.children[m.Parent], i)
		}
	}
	t.write(0)
	return t.text.String()
}

// treeNamer writes the labels of a tree, depth first.
type treeNamer struct {
	nodes    []Node
	chain    []Chained
	children [][]int // by position in chain
	left     int     // labels that may follow; also bounds the depth of the recursion
	text     strings.Builder
}

// write writes the label at position i and what is chained behind it.
func (t *treeNamer) write(i int) {
	t.left--
	t.text.WriteString(label(&t.nodes[t.chain[i].Node]))
	kids := t.children[i]
	if len(kids) == 0 {
		return
	}
	t.text.WriteString(" → ")
	switch {
	case t.left <= 0:
		t.text.WriteString("…")
	case len(kids) == 1:
		t.write(kids[0])
	default:
		t.branches(kids)
	}
}

// branches writes several branches in parentheses.
func (t *treeNamer) branches(kids []int) {
	t.text.WriteString("(")
	for k, kid := range kids {
		if k > 0 {
			t.text.WriteString(", ")
		}
		if t.left <= 0 {
			t.text.WriteString("… " + strconv.Itoa(len(kids)-k) + " more")
			break
		}
		t.write(kid)
	}
	t.text.WriteString(")")
}
