package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		data, err := g.JSON()
		require.NoError(t, err)
		back, err := DecodeGraph(data)
		require.NoError(t, err)
		require.Equal(t, g, back)
		require.Equal(t, g.Fingerprint(), back.Fingerprint())

		p, err := Compile(g, rapid.IntRange(1, g.Shards).Draw(t, "parallelism"))
		require.NoError(t, err)
		data, err = p.JSON()
		require.NoError(t, err)
		plan, err := DecodePlan(data)
		require.NoError(t, err)
		require.Equal(t, p.Text(), plan.Text())
		again, err := plan.JSON()
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	})
}

func TestDecodeGraphIsStrict(t *testing.T) {
	for _, c := range []struct{ text, message string }{
		{``, "EOF"},
		{`{"shards":1,"nodes":[]} {}`, "after the end"},
		{`{"shards":1,"sheep":2}`, "sheep"},
		{`{"nodes":[{"id":0,"op":"a","colour":"red"}]}`, "colour"},
		{`{"nodes":[{"id":0,"stage":"dance"}]}`, `"dance" is no stage`},
		{`{"nodes":[{"id":0,"inputs":[{"from":0,"partitioner":2}]}]}`, "number"},
		{`{"nodes":[{"id":0,"inputs":[{"from":0,"partitioner":"Hash"}]}]}`, `"Hash" is no partitioner`},
		{`{"nodes":[{"id":1.5}]}`, "1.5"},
		{`{"nodes":[{"id":99999999999999999999}]}`, "99999999999999999999"},
		{`{"seed":-1}`, "-1"},
		{`[]`, "array"},
		{strings.Repeat(" ", MaxJSON+1), "limit"},
	} {
		_, err := DecodeGraph([]byte(c.text))
		require.ErrorContains(t, err, c.message, "%.80s", c.text)
	}
	_, err := (&Graph{Nodes: []Node{{Stage: 77}}}).JSON()
	require.ErrorContains(t, err, "77 is no stage")
}

// TestDecodePlanChecks damages a plan in each way that could make a method panic, and requires
// that DecodePlan refuses the plan.
func TestDecodePlanChecks(t *testing.T) {
	g, err := parseGraph("a = Range : x int64\nb = Map <- a : x int64\nc = Sort <- b range(x) : x int64\nCollect(x) [sink] <- c")
	require.NoError(t, err)
	g.Shards = 4
	for name, breakIt := range map[string]func(p *Plan){
		"shards":       func(p *Plan) { p.Shards = 3 },
		"parallelism":  func(p *Plan) { p.Parallelism = 0 },
		"too many":     func(p *Plan) { p.Parallelism = 5 },
		"node id":      func(p *Plan) { p.Nodes[1].ID = 0 },
		"vertex id":    func(p *Plan) { p.Vertices[1].ID = 0 },
		"empty chain":  func(p *Plan) { p.Vertices[1].Chain = nil },
		"twice":        func(p *Plan) { p.Vertices[1].Chain[1].Node = 0 },
		"no such node": func(p *Plan) { p.Vertices[1].Chain[1].Node = 9 },
		"negative":     func(p *Plan) { p.Vertices[1].Chain[1].Node = -1 },
		"left out":     func(p *Plan) { p.Vertices[1].Chain = p.Vertices[1].Chain[:1] },
		"parent":       func(p *Plan) { p.Vertices[1].Chain[1].Parent = 1 },
		"no parent":    func(p *Plan) { p.Vertices[1].Chain[1].Parent = -1 },
		"head parent":  func(p *Plan) { p.Vertices[1].Chain[0].Parent = 0 },
		"low parent":   func(p *Plan) { p.Vertices[1].Chain[1].Parent = -2 },
		"chain port":   func(p *Plan) { p.Vertices[1].Chain[1].Port = 1 },
		"ranges":       func(p *Plan) { p.Vertices[1].Ranges = p.Vertices[1].Ranges[:1] },
		"range":        func(p *Plan) { p.Vertices[1].Ranges[0].Hi++ },
		"share":        func(p *Plan) { p.Vertices[1].Parallelism = 3 },
		"queue":        func(p *Plan) { p.Vertices[1].Queue = "q" },
		"edge from":    func(p *Plan) { p.Edges[0].FromNode = 2 },
		"edge nowhere": func(p *Plan) { p.Edges[0].FromNode = 7 },
		"edge to":      func(p *Plan) { p.Edges[0].ToNode = 1 },
		"edge off":     func(p *Plan) { p.Edges[0].ToNode = -3 },
		"edge port":    func(p *Plan) { p.Edges[0].Port = 1 },
		"edge order": func(p *Plan) {
			e := p.Edges[0]
			e.From, e.FromNode, e.To, e.ToNode = 0, 0, 0, 1
			p.Edges = append(p.Edges, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(g, 2)
			require.NoError(t, err)
			data, err := json.Marshal(p)
			require.NoError(t, err)
			own, err := DecodePlan(data) // a copy that shares no memory with the graph
			require.NoError(t, err)
			breakIt(own)
			data, err = json.Marshal(own)
			require.NoError(t, err)
			_, err = DecodePlan(data)
			require.Error(t, err)
		})
	}
}

// FuzzDecode decodes arbitrary bytes. Every decoded graph, valid or not, is validated and
// printed in every form. Valid graphs are compiled.
func FuzzDecode(f *testing.F) {
	for _, g := range []*Graph{full(), chainGraph(3), branchGraph(2)} {
		data, err := json.Marshal(g)
		require.NoError(f, err)
		f.Add(data, 2)
	}
	f.Add([]byte(`{"shards":4,"nodes":[{"id":0,"op":"QueueInit","queue":"q","stage":"queue-init"},`+
		`{"id":1,"op":"Compute","queue":"q","stage":"compute","inputs":[{"from":0,"partitioner":"forward","role":"control"},{"from":2,"partitioner":"forward","role":"feedback"}]},`+
		`{"id":2,"op":"Criterion","queue":"q","stage":"criterion","inputs":[{"from":1,"partitioner":"forward","role":"control"}]},`+
		`{"id":3,"op":"QueueClose","queue":"q","stage":"queue-close","inputs":[{"from":2,"partitioner":"forward","role":"control"}]}],`+
		`"queues":[{"name":"q","has_criterion":true}]}`), 3)
	f.Fuzz(func(t *testing.T, data []byte, parallelism int) {
		if p, err := DecodePlan(data); err == nil {
			require.NotEmpty(t, p.Text()+p.DOT())
		}
		g, err := DecodeGraph(data)
		if err != nil {
			return
		}
		exercise(t, g, parallelism)
	})
}
