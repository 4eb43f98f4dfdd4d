package plan

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestScripts runs the scripts in testdata. Each script defines graphs in the small language of
// parseGraph and states the expected output of commands. After an intended change, "go test
// ./engine/plan -run Scripts -rewrite" rewrites the files. Review the difference like code.
//
// The commands, each followed by a graph, print:
//
//	compile p=N      the text of the plan
//	graph            the text of the graph
//	validate         the mistakes, or "valid"
//	dot [p=N]        Graphviz of the graph, or of the plan at p
//	json [p=N]       JSON of the graph, or of the plan at p
//	diff             the difference between the graph of the previous command and this one
//
// All commands take job=, shards= (default 128) and seed=.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, path := range scripts {
		var before *Graph
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			g, err := parseGraph(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			g.Shards, g.Job = 128, "job"
			p := 0
			d.MaybeScanArgs(t, "job", &g.Job)
			d.MaybeScanArgs(t, "shards", &g.Shards)
			d.MaybeScanArgs(t, "seed", &g.Seed)
			d.MaybeScanArgs(t, "p", &p)
			defer func() { before = g }()
			if d.Cmd == "validate" {
				if err := g.Validate(); err != nil {
					return err.Error() + "\n"
				}
				return "valid\n"
			}
			if d.Cmd == "diff" {
				return Diff(before, g)
			}
			if err := g.Validate(); err != nil {
				d.Fatalf(t, "%v", err)
			}
			var c *Plan
			if p > 0 || d.Cmd == "compile" {
				if c, err = Compile(g, p); err != nil {
					return err.Error() + "\n"
				}
			}
			switch {
			case d.Cmd == "compile":
				return c.Text()
			case d.Cmd == "graph":
				return g.Text()
			case d.Cmd == "dot" && c != nil:
				return c.DOT()
			case d.Cmd == "dot":
				return g.DOT()
			case d.Cmd == "json":
				data, err := g.JSON()
				if c != nil {
					data, err = c.JSON()
				}
				require.NoError(t, err)
				return string(data)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	}
}

// parseGraph reads a graph written line by line:
//
//	fact NAME = VALUE
//	queue NAME [max=N] [criterion]
//	[ID =] OP[(LABEL)] {KEY=VALUE} {[MARK]} [@QUEUE/STAGE] [<- INPUT {; INPUT}] [: COLUMN TYPE[?] {, …}]
//
// A MARK is single, sink, shard-tree, rank-tree, or calls=SYMBOL@LINE. An INPUT is ID
// [PARTITIONER[(KEYS)]] [ROLE] [by FUNC]. By default an input is a forward data edge; a
// broadcast input is a side edge. The ID of an input may also be a node number, such as "#7".
// If a stage of a queue names no input, its input is the node of the previous line; this does
// not hold for the first stage. Feedback edges are added automatically. A node's source line
// is "job.go" with the number of its line. "# …" is a comment.
func parseGraph(text string) (*Graph, error) {
	g := &Graph{}
	ids := map[string]NodeID{}
	first := map[string]int{} // position of the first stage of each queue
	var begins []int          // the repeat-begin nodes of the inner loops that are open
	type pending struct {
		node NodeID
		text string
	}
	var inputs []pending // parsed at the end, as names may refer to later lines
	for k, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "fact "); ok {
			name, value, _ := strings.Cut(rest, " = ")
			g.Facts = append(g.Facts, Fact{name, value})
			continue
		}
		if rest, ok := strings.CutPrefix(line, "queue "); ok {
			q, err := parseQueue(rest)
			if err != nil {
				return nil, err
			}
			g.Queues = append(g.Queues, q)
			continue
		}
		n := Node{ID: NodeID(len(g.Nodes)), Site: fmt.Sprintf("job.go:%d", k+1)}
		if name, rest, ok := strings.Cut(line, " = "); ok {
			ids[strings.TrimSpace(name)], line = n.ID, rest
		}
		line, schema, _ := strings.Cut(line, " : ")
		line, from, _ := strings.Cut(line, " <- ")
		if err := parseNode(&n, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", k+1, err)
		}
		for _, col := range strings.Split(schema, ", ") {
			if name, kind, ok := strings.Cut(col, " "); ok {
				kind, nullable := strings.CutSuffix(kind, "?")
				n.Schema = append(n.Schema, Column{name, kind, nullable})
			}
		}
		if n.Queue != "" && n.Stage != QueueInit && from == "" {
			in := Input{From: n.ID - 1, Role: Control}
			if n.Stage.Exchanges() {
				in = Input{From: n.ID - 1, Partitioner: BySubtask}
			}
			n.Inputs = append(n.Inputs, in)
			if _, ok := first[n.Queue]; !ok {
				first[n.Queue] = int(n.ID)
			}
		}
		g.Nodes = append(g.Nodes, n)
		back := -1
		switch n.Stage {
		case Criterion:
			back = first[n.Queue]
		case RepeatBegin:
			begins = append(begins, int(n.ID))
		case RepeatEnd:
			if k := len(begins) - 1; k >= 0 {
				back, begins = begins[k], begins[:k]
			}
		}
		if back >= 0 {
			begin := &g.Nodes[back]
			begin.Inputs = append(begin.Inputs, Input{From: n.ID, Role: Feedback})
		}
		inputs = append(inputs, pending{n.ID, from})
	}
	for _, p := range inputs {
		for _, part := range strings.Split(p.text, "; ") {
			if part == "" {
				continue
			}
			in, err := parseInput(part, ids)
			if err != nil {
				return nil, err
			}
			g.Nodes[p.node].Inputs = append(g.Nodes[p.node].Inputs, in)
		}
	}
	return g, nil
}

func parseQueue(text string) (Queue, error) {
	fields := strings.Fields(text)
	q := Queue{Name: fields[0]}
	for _, f := range fields[1:] {
		if n, ok := strings.CutPrefix(f, "max="); ok {
			var err error
			if q.MaxSupersteps, err = strconv.Atoi(n); err != nil {
				return q, err
			}
		} else if f == "criterion" {
			q.HasCriterion = true
		} else {
			return q, fmt.Errorf("queue: %q", f)
		}
	}
	return q, nil
}

func parseNode(n *Node, text string) error {
	for i, f := range strings.Fields(text) {
		mark, isMark := strings.CutPrefix(f, "[")
		mark = strings.TrimSuffix(mark, "]")
		switch {
		case i == 0:
			op, name, _ := strings.Cut(f, "(")
			n.Op, n.Name = op, strings.TrimSuffix(name, ")")
		case strings.HasPrefix(f, "@"):
			queue, stage, _ := strings.Cut(f[1:], "/")
			n.Queue = queue
			if err := n.Stage.UnmarshalText([]byte(stage)); err != nil {
				return err
			}
		case isMark && mark == "single":
			n.Single = true
		case isMark && mark == "sink":
			n.Sink = true
		case isMark && strings.HasPrefix(mark, "calls="):
			n.Func = strings.Replace(mark[len("calls="):], "@", " ", 1)
		case isMark:
			if err := n.Order.UnmarshalText([]byte(mark)); err != nil {
				return err
			}
		default:
			key, value, _ := strings.Cut(f, "=")
			n.Attrs = append(n.Attrs, Attr{key, value})
		}
	}
	return nil
}

func parseInput(text string, ids map[string]NodeID) (Input, error) {
	var in Input
	text, in.Func, _ = strings.Cut(text, " by ")
	if head, rest, ok := strings.Cut(text, "("); ok {
		keys, tail, _ := strings.Cut(rest, ")")
		in.Keys, text = strings.Split(keys, ","), head+tail
	}
	fields := strings.Fields(text)
	if id, ok := ids[fields[0]]; ok {
		in.From = id
	} else {
		id, err := strconv.Atoi(strings.TrimPrefix(fields[0], "#"))
		if err != nil {
			return in, fmt.Errorf("input %q does not exist", fields[0])
		}
		in.From = NodeID(id)
	}
	for _, f := range fields[1:] {
		if in.Partitioner.UnmarshalText([]byte(f)) == nil {
			if in.Partitioner == Broadcast {
				in.Role = Side
			}
			continue
		}
		if err := in.Role.UnmarshalText([]byte(f)); err != nil {
			return in, err
		}
	}
	return in, nil
}
