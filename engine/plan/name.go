package plan

import (
	"strconv"
	"strings"
)

// label is what a node is called in plans and messages: its kind, with the
// user's label if it has one, such as "Map(parse)"; of a compute stage the label
// alone.
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

// vertexName returns the labels of a chain joined by arrows; branches stand in
// parentheses. Long chains are cut in the middle and bushy ones at the end, so
// that a name stays a name.
func vertexName(nodes []Node, chain []Chained) string {
	const most = 12
	linear := true
	for i, m := range chain {
		linear = linear && m.Parent == i-1
	}
	var b strings.Builder
	if linear {
		for i, m := range chain {
			if len(chain) > most && i >= most-3 && i < len(chain)-2 {
				if i == most-3 {
					b.WriteString(" → … " + strconv.Itoa(len(chain)-most+1) + " more …")
				}
				continue
			}
			if i > 0 {
				b.WriteString(" → ")
			}
			b.WriteString(label(&nodes[m.Node]))
		}
		return b.String()
	}
	kids := make([][]int, len(chain))
	for i, m := range chain {
		if i > 0 {
			kids[m.Parent] = append(kids[m.Parent], i)
		}
	}
	left := most // also bounds the depth of the recursion
	var write func(i int)
	write = func(i int) {
		left--
		b.WriteString(label(&nodes[chain[i].Node]))
		if len(kids[i]) == 0 {
			return
		}
		b.WriteString(" → ")
		if left <= 0 {
			b.WriteString("…")
			return
		}
		if len(kids[i]) == 1 {
			write(kids[i][0])
			return
		}
		b.WriteString("(")
		for k, kid := range kids[i] {
			if k > 0 {
				b.WriteString(", ")
			}
			if left <= 0 {
				b.WriteString("… " + strconv.Itoa(len(kids[i])-k) + " more")
				break
			}
			write(kid)
		}
		b.WriteString(")")
	}
	write(0)
	return b.String()
}
