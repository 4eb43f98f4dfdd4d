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

// Title returns the name of the node in messages: its kind, and the user's label in quotes if it
// has one, such as `Map "parse"`.
func (n *Node) Title() string {
	if n.Name != "" {
		return fmt.Sprintf("%s %q", n.Op, n.Name)
	}
	return n.Op
}

// EdgeName describes p.Edges[edge]: the operator that receives its rows, the source
// line that added this operator, its vertex, and the operator that sends the rows.
// It returns "" if there is no such edge.
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

// longestName is the maximum number of labels in the name of a vertex.
const longestName = 12

// vertexName returns the labels of a chain joined by arrows; branches are in parentheses. A
// chain of more than longestName operators is shortened: in the middle if it has no branches,
// and at the end if it has branches.
func vertexName(nodes []Node, chain []Chained) string {
	for i, m := range chain {
		if m.Parent != i-1 {
			return treeName(nodes, chain)
		}
	}
	return lineName(nodes, chain)
}

// lineName returns the name of a chain without branches.
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

// treeName returns the name of a chain with branches.
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
	children [][]int // positions of the children of each element of chain
	left     int     // number of further labels allowed; also limits the depth of the recursion
	text     strings.Builder
}

// write writes the labels of the subtree of chain[i].
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

// branches writes the subtrees of kids, in parentheses.
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
