package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// Text returns a description of the graph for people: the facts, the queues, then
// a block per node with its inputs, parameters, user function and columns. It
// depends on the graph alone and ends in a newline. As long names and lists are
// shortened, different graphs may have the same text; use Diff to compare graphs.
func (g *Graph) Text() string {
	var b strings.Builder
	name := plain(clip(g.Job, 60))
	if name == "" {
		name = "(anonymous)"
	}
	fmt.Fprintf(&b, "graph of %s: %s, %s, seed %d, fingerprint %s\n", name,
		humanize.Count(len(g.Nodes), "node"), humanize.Count(g.Shards, "shard"), g.Seed, clip(g.Fingerprint(), shortFingerprint+1))
	for _, f := range g.Facts {
		fmt.Fprintf(&b, "fact %s = %s\n", plain(clip(f.Name, 60)), value(f.Value, 80))
	}
	for i := range g.Queues {
		fmt.Fprintf(&b, "queue %s: %s\n", plain(clip(g.Queues[i].Name, 40)), ending(&g.Queues[i]))
	}
	idWidth := len(strconv.Itoa(max(0, len(g.Nodes)-1)))
	width := 0
	for i := range g.Nodes {
		width = max(width, min(utf8.RuneCountInString(label(&g.Nodes[i])), widestName/2))
	}
	indent := strings.Repeat(" ", idWidth+4)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		line := fmt.Sprintf("%*d  %s  %s", idWidth, i, pad(label(n), width), strings.Join(inputsText(n), "; "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, more := range []string{annotations(n), nodeFacts(n), funcText(n), schemaText(n.Schema)} {
			if more != "" {
				b.WriteString(indent + more + "\n")
			}
		}
	}
	return b.String()
}

// inputsText returns each input of a node in the form "← 3 hash(species)".
func inputsText(n *Node) []string {
	var parts []string
	for i, in := range n.Inputs {
		const most = 16
		if i == most {
			parts = append(parts, fmt.Sprintf("… %d more", len(n.Inputs)-most))
			break
		}
		arrow := "← "
		if in.Role == Feedback {
			arrow = "↻ "
		}
		s := arrow + strconv.Itoa(int(in.From)) + " " + routeText(in.Partitioner, in.Keys, in.Role)
		if in.Func != "" {
			s += " by " + plain(clip(in.Func, 60))
		}
		parts = append(parts, s)
	}
	return parts
}

func annotations(n *Node) string {
	var parts []string
	if n.Stage != NoStage {
		parts = append(parts, n.Stage.String()+" of queue "+plain(clip(n.Queue, 40)))
	}
	if n.Single {
		parts = append(parts, "single")
	}
	if n.Sink {
		parts = append(parts, "sink")
	}
	return strings.Join(parts, ", ")
}

func funcText(n *Node) string {
	if n.Func == "" {
		return ""
	}
	return "calls " + plain(clip(n.Func, widestLine))
}

func schemaText(schema []Column) string {
	if len(schema) == 0 {
		return ""
	}
	parts := make([]string, len(schema))
	for i, col := range schema {
		parts[i] = plain(clip(col.Name, 40)) + " " + plain(clip(col.Type, 40))
		if col.Nullable {
			parts[i] += "?"
		}
	}
	return "emits " + fit(parts, ", ")
}
