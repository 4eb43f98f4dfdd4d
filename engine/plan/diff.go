package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Diff describes how graphs a and b differ, or returns "" if their fingerprints
// are equal. The first line names the first fact, node or queue that differs. At
// most maxDiffLines lines follow: they begin with "- " for what only a has, and
// with "+ " for what only b has. Source lines of nodes are shown but not compared.
func Diff(a, b *Graph) string {
	la, lb := diffLines(a), diffLines(b)
	changes := lineDiff(la, lb)
	if len(changes) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("the graphs first differ at " + firstDifference(a, b, la, lb) + "\n")
	for i, line := range changes {
		if i == maxDiffLines {
			fmt.Fprintf(&out, "… and %d more lines\n", len(changes)-i)
			break
		}
		out.WriteString(clip(line, 400) + "\n")
	}
	return out.String()
}

const (
	maxDiffLines = 40
	// maxDiffCells limits the number of cells in the table of lineDiff.
	maxDiffCells = 1 << 22
)

// diffLine is one property of a graph as a line of text, and its subject.
type diffLine struct {
	text  string
	about string // the subject, such as a fact or a queue; empty if the subject is a node
	node  int    // the node, if about is empty
}

// diffLines returns everything that the fingerprint covers, one property a line,
// without shortening. Each line names its subject, so that it can be understood
// without the other lines.
func diffLines(g *Graph) []diffLine {
	var lines []diffLine
	add := func(about string, node int, format string, args ...any) {
		lines = append(lines, diffLine{fmt.Sprintf(format, args...), about, node})
	}
	add("the job's name", 0, "job %q", g.Job)
	add("the number of shards", 0, "shards %d", g.Shards)
	add("the seed", 0, "seed %d", g.Seed)
	for _, f := range g.Facts {
		add("fact "+strconv.Quote(clip(f.Name, 60)), 0, "fact %q = %q", f.Name, f.Value)
	}
	for _, q := range g.Queues {
		add("queue "+strconv.Quote(clip(q.Name, 60)), 0, "queue %q max-supersteps=%d criterion=%t", q.Name, q.MaxSupersteps, q.HasCriterion)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		// The id is part of the fingerprint and equals the position in valid graphs.
		head := "node " + strconv.Itoa(i) + " " + plain(n.Op) + ":"
		add("", i, "%s id=%d name=%q single=%t sink=%t queue=%q stage=%s order=%s", head, n.ID, n.Name, n.Single, n.Sink, n.Queue, n.Stage, n.Order)
		for port, in := range n.Inputs {
			add("", i, "%s input %d from %d by %s%q as %s func %q", head, port, in.From, in.Partitioner, in.Keys, in.Role, in.Func)
		}
		for _, attr := range n.Attrs {
			add("", i, "%s %q = %q", head, attr.Key, attr.Value)
		}
		if n.Func != "" {
			add("", i, "%s calls %q", head, n.Func)
		}
		for k, col := range n.Schema {
			add("", i, "%s column %d %q %q nullable=%t", head, k, col.Name, col.Type, col.Nullable)
		}
	}
	return lines
}

// firstDifference returns the subject of the first pair of lines that differ.
func firstDifference(a, b *Graph, la, lb []diffLine) string {
	k := 0
	for k < len(la) && k < len(lb) && la[k].text == lb[k].text {
		k++
	}
	rankA, nameA := diffName(a, la, k)
	rankB, nameB := diffName(b, lb, k)
	switch {
	case rankA < rankB || nameA == nameB:
		return nameA // b has no such subject, or both lines have the same subject
	case rankB < rankA:
		return nameB
	}
	return nameA + " against " + nameB
}

// diffName returns the subject of line k and the rank of this subject. The rank
// of a node is its number. Other subjects rank before all nodes, and the end of
// the graph ranks after them.
func diffName(g *Graph, lines []diffLine, k int) (rank int, name string) {
	switch {
	case k >= len(lines):
		return math.MaxInt, "the end of the graph"
	case lines[k].about != "":
		return -1, lines[k].about
	}
	n := &g.Nodes[lines[k].node]
	s := "node " + strconv.Itoa(lines[k].node) + " " + label(n)
	if n.Site != "" {
		s += " (" + plain(clip(n.Site, 200)) + ")"
	}
	return lines[k].node, s
}

// lineDiff returns the lines of a to delete, marked "- ", and the lines of b to
// insert, marked "+ ". It skips the common lines at the beginning and at the end.
// Between them it keeps a longest common subsequence, or nothing if the table for
// it would have more than maxDiffCells cells.
func lineDiff(a, b []diffLine) []string {
	for len(a) > 0 && len(b) > 0 && a[0].text == b[0].text {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].text == b[len(b)-1].text {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out []string
	i, j := 0, 0
	if len(a)*len(b) <= maxDiffCells && len(a) > 0 && len(b) > 0 {
		// common[i*w+j] is the length of a longest common subsequence of a[i:], b[j:].
		w := len(b) + 1
		common := make([]int32, (len(a)+1)*w)
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i].text == b[j].text {
					common[i*w+j] = common[(i+1)*w+j+1] + 1
				} else {
					common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
				}
			}
		}
		for i < len(a) && j < len(b) {
			switch {
			case a[i].text == b[j].text:
				i, j = i+1, j+1
			case common[(i+1)*w+j] >= common[i*w+j+1]:
				out = append(out, "- "+a[i].text)
				i++
			default:
				out = append(out, "+ "+b[j].text)
				j++
			}
		}
	}
	for ; i < len(a); i++ {
		out = append(out, "- "+a[i].text)
	}
	for ; j < len(b); j++ {
		out = append(out, "+ "+b[j].text)
	}
	return out
}
