package tree

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Condition returns the condition under which rows go left at a node with children, such as
// "age < 31", "port in {C, Q}" or "port not in {S}". Categories without names are printed as
// numbers.
func (e *Ensemble) Condition(tree int, node int32) string {
	t := &e.Trees[tree]
	n := &t.Nodes[node]
	name := e.Features[n.Feature]
	if n.Flags&Categorical == 0 {
		return name + " < " + number(n.Threshold)
	}
	word := " in {"
	if n.Flags&SetRight != 0 {
		word = " not in {"
	}
	return name + word + strings.Join(e.categories(t, node), ", ") + "}"
}

// categories returns the names of the categories in the set of a node.
func (e *Ensemble) categories(t *Tree, node int32) []string {
	n := &t.Nodes[node]
	names := at(e.Categories, int(n.Feature))
	var in []string
	for c := int32(0); c>>5 < n.SetWords; c++ {
		if !t.Has(node, c) {
			continue
		}
		if int(c) < len(names) {
			in = append(in, names[c])
		} else {
			in = append(in, strconv.Itoa(int(c)))
		}
	}
	return in
}

// missingWay returns the side to which a node sends missing values.
func (n *Node) missingWay() string {
	way := "right"
	if n.Flags&DefaultLeft != 0 {
		way = "left"
	}
	switch {
	case n.Flags&ZeroMissing != 0:
		return way + " and zero"
	case n.Flags&NaNIsZero != 0:
		return "is zero"
	}
	return way
}

// number returns the shortest text that reads back as x.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// values returns the values of a node: one value, or a value for each output.
func (e *Ensemble) values(t *Tree, node int32) []float64 {
	if t.Values == nil {
		return []float64{t.Nodes[node].Value}
	}
	return t.Values[int(node)*e.Outputs:][:e.Outputs]
}

// eachNode traverses a tree depth first, left children before right ones. It calls before when
// it reaches a node, and after when all nodes below the node have been visited.
func (t *Tree) eachNode(before, after func(node int32, depth int)) {
	type step struct {
		node  int32
		depth int
		done  bool
	}
	for open := []step{{}}; len(open) > 0; {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if s.done {
			after(s.node, s.depth)
			continue
		}
		before(s.node, s.depth)
		if n := &t.Nodes[s.node]; !n.Leaf() {
			open = append(open, step{s.node, s.depth, true}, step{n.Right, s.depth + 1, false}, step{n.Left, s.depth + 1, false})
		}
	}
}

// WriteText writes the trees as text for humans, one node per line. Children are indented and
// follow their parent. Rows that satisfy the condition go to the first child:
//
//	tree 0
//	0: age < 31, missing left, gain 0.5, cover 5
//	  1: leaf 0.25, cover 2
//	  2: leaf -0.125, cover 3
func (e *Ensemble) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range e.Trees {
		t := &e.Trees[i]
		fmt.Fprintf(b, "tree %d", i)
		if e.Outputs > 1 && t.Values == nil {
			fmt.Fprintf(b, ", output %d", t.Output)
		}
		if t.Weight != 1 {
			fmt.Fprintf(b, ", weight %s", number(t.Weight))
		}
		b.WriteByte('\n')
		t.eachNode(func(node int32, depth int) {
			n := &t.Nodes[node]
			for range depth {
				b.WriteString("  ")
			}
			if n.Leaf() {
				texts := make([]string, 0, e.Outputs)
				for _, v := range e.values(t, node) {
					texts = append(texts, number(v))
				}
				fmt.Fprintf(b, "%d: leaf %s", node, strings.Join(texts, " "))
			} else {
				fmt.Fprintf(b, "%d: %s, missing %s, gain %s", node, e.Condition(i, node), n.missingWay(), number(n.Gain))
			}
			fmt.Fprintf(b, ", cover %s", number(n.Cover))
			if n.Count > 0 {
				fmt.Fprintf(b, ", count %d", n.Count)
			}
			b.WriteByte('\n')
		}, func(int32, int) {})
	}
	return b.Flush()
}

// WriteDump writes the trees as JSON for other programs. Each node contains its children, and
// features and categories are given by name. Model files use the different format of
// MarshalJSON. A dump cannot be read back.
//
//	[{"tree": 0, "output": 0, "weight": 1, "root":
//	  {"node": 0, "feature": "age", "less": 31, "missing": "left", "gain": 0.5, "cover": 5,
//	   "left": {"node": 1, "leaf": [0.25], "cover": 2}, "right": {…}}}]
//
// Categorical nodes have "in" or "notIn", a list of names, instead of "less".
func (e *Ensemble) WriteDump(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteByte('[')
	for i := range e.Trees {
		t := &e.Trees[i]
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(b, `{"tree":%d,"output":%d,"weight":%s,"root":`, i, t.Output, number(t.Weight))
		parent := make([]int32, len(t.Nodes))
		t.eachNode(func(node int32, depth int) {
			n := &t.Nodes[node]
			if node > 0 && t.Nodes[parent[node]].Left == node {
				b.WriteString(`,"left":`)
			} else if node > 0 {
				b.WriteString(`,"right":`)
			}
			b.Write(e.dumpNode(t, node))
			if n.Leaf() {
				b.WriteByte('}')
				return
			}
			parent[n.Left], parent[n.Right] = node, node
		}, func(int32, int) { b.WriteByte('}') })
		b.WriteByte('}')
	}
	b.WriteString("]\n")
	return b.Flush()
}

// dumpNode returns the members of a node except its children.
func (e *Ensemble) dumpNode(t *Tree, node int32) []byte {
	n := &t.Nodes[node]
	b := fmt.Appendf(nil, `{"node":%d`, node)
	if n.Leaf() {
		b = appendList(b, "leaf", e.values(t, node), appendFloat)
	} else {
		b = append(b, `,"feature":`...)
		b = append(b, quote(e.Features[n.Feature])...)
		switch {
		case n.Flags&Categorical == 0:
			b = appendFloat(append(b, `,"less":`...), n.Threshold)
		case n.Flags&SetRight == 0:
			b = appendList(b, "in", e.categories(t, node), func(b []byte, s string) []byte { return append(b, quote(s)...) })
		default:
			b = appendList(b, "notIn", e.categories(t, node), func(b []byte, s string) []byte { return append(b, quote(s)...) })
		}
		b = append(fmt.Appendf(b, `,"missing":%q,"gain":`, n.missingWay()), number(n.Gain)...)
	}
	b = append(append(b, `,"cover":`...), number(n.Cover)...)
	if n.Count > 0 {
		b = fmt.Appendf(b, `,"count":%d`, n.Count)
	}
	return b
}

// quote returns s as a JSON string. Bytes that are not UTF-8 are replaced.
func quote(s string) []byte {
	text, _ := json.Marshal(s) // Marshal does not fail for a string
	return text
}

// WriteDot writes one tree as a graph for Graphviz. Rows that satisfy the condition of a node
// follow the solid edge; other rows follow the dashed edge. Of these two edges, the one that
// missing values follow is bold.
func (e *Ensemble) WriteDot(w io.Writer, tree int) error {
	t := &e.Trees[tree]
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph tree%d {\n  node [shape=box];\n", tree)
	t.eachNode(func(node int32, _ int) {
		n := &t.Nodes[node]
		if n.Leaf() {
			texts := make([]string, 0, e.Outputs)
			for _, v := range e.values(t, node) {
				texts = append(texts, short(v))
			}
			fmt.Fprintf(b, "  %d [label=%s, style=rounded];\n", node, dotQuote(strings.Join(texts, " ")))
			return
		}
		fmt.Fprintf(b, "  %d [label=%s];\n", node, dotQuote(e.Condition(tree, node)))
		yes, no := "", ", style=dashed"
		switch {
		case n.Flags&(NaNIsZero|ZeroMissing) == NaNIsZero:
		case n.Flags&DefaultLeft != 0:
			yes = ", penwidth=2"
		default:
			no += ", penwidth=2"
		}
		fmt.Fprintf(b, "  %d -> %d [label=\"yes\"%s];\n  %d -> %d [label=\"no\"%s];\n", node, n.Left, yes, node, n.Right, no)
	}, func(int32, int) {})
	b.WriteString("}\n")
	return b.Flush()
}

// dotQuote returns s quoted for Graphviz.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// short returns x as text with four significant digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
