package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// MaxJSON is the maximum size, in bytes, of JSON that DecodeGraph and DecodePlan read.
const MaxJSON = 64 << 20

// JSON returns the graph as indented JSON ending in a newline; enumerations are
// written by name. If Validate accepts the graph, DecodeGraph reads an equal graph
// from the JSON. JSON fails if an enumeration has an unknown value.
func (g *Graph) JSON() ([]byte, error) { return indented(g) }

// JSON returns the plan as indented JSON ending in a newline; enumerations are
// written by name. DecodePlan reads it back.
func (p *Plan) JSON() ([]byte, error) { return indented(p) }

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // keeps arrows, and the angle brackets of types, readable
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("plan: write JSON: %w", err)
	}
	return b.Bytes(), nil
}

// DecodeGraph reads one graph in JSON. Unknown fields, unknown names of
// enumerations, trailing data and more than MaxJSON bytes are errors. DecodeGraph
// does not call Validate.
func DecodeGraph(data []byte) (*Graph, error) {
	g := new(Graph)
	if err := decode(data, g); err != nil {
		return nil, fmt.Errorf("plan: read graph: %w", err)
	}
	return g, nil
}

// DecodePlan reads one plan in JSON, as strictly as DecodeGraph. It checks that the
// plan is consistent, so that its methods cannot panic: ids equal positions, every
// needed node is in exactly one chain and every other node in none, and the nodes
// that an edge connects are in the vertices that it names. DecodePlan does not check
// that Compile would return this plan.
func DecodePlan(data []byte) (*Plan, error) {
	p := new(Plan)
	if err := decode(data, p); err != nil {
		return nil, fmt.Errorf("plan: read plan: %w", err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("plan: read plan: %w", err)
	}
	return p, nil
}

func decode(data []byte, into any) error {
	if len(data) > MaxJSON {
		return fmt.Errorf("%d bytes: the limit is %d", len(data), MaxJSON)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("data after the end, at byte %d", dec.InputOffset())
	}
	return nil
}

// check returns an error for the first inconsistency that it finds in the plan.
func (p *Plan) check() error {
	if err := sharding.ValidShards(p.Shards); err != nil {
		return err
	}
	if p.Parallelism < 1 || p.Parallelism > p.Shards {
		return fmt.Errorf("parallelism %d is not in 1..%d", p.Parallelism, p.Shards)
	}
	for i := range p.Nodes {
		if int(p.Nodes[i].ID) != i {
			return fmt.Errorf("node %d is at position %d", p.Nodes[i].ID, i)
		}
	}
	queues := make(map[string]bool, len(p.Queues))
	for i := range p.Queues {
		queues[p.Queues[i].Name] = true
	}
	for i := range p.Vertices {
		if q := p.Vertices[i].Queue; q != "" && !queues[q] {
			return fmt.Errorf("vertex %d is of queue %q, which is not declared", i, clip(q, 60))
		}
	}
	place, err := p.places()
	if err != nil {
		return err
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		switch {
		case e.FromNode < 0 || int(e.FromNode) >= len(place) || place[e.FromNode] != e.From:
			return fmt.Errorf("edge %d comes from node %d, which is not in vertex %d", i, e.FromNode, e.From)
		case e.ToNode < 0 || int(e.ToNode) >= len(place) || place[e.ToNode] != e.To:
			return fmt.Errorf("edge %d leads to node %d, which is not in vertex %d", i, e.ToNode, e.To)
		case e.Port < 0 || e.Port >= len(p.Nodes[e.ToNode].Inputs):
			return fmt.Errorf("edge %d leads to input %d of node %d, which has %d", i, e.Port, e.ToNode, len(p.Nodes[e.ToNode].Inputs))
		case i > 0 && p.Edges[i-1].To > e.To:
			return fmt.Errorf("edge %d is not in order of receivers", i)
		}
	}
	return nil
}

// places returns the vertex of each node, or -1 for a node that is in no vertex. It
// fails if the vertices are not consistent.
func (p *Plan) places() ([]VertexID, error) {
	place := make([]VertexID, len(p.Nodes))
	for i := range place {
		place[i] = -1
	}
	for i := range p.Vertices {
		v := &p.Vertices[i]
		if int(v.ID) != i {
			return nil, fmt.Errorf("vertex %d is at position %d", v.ID, i)
		}
		if len(v.Chain) == 0 {
			return nil, fmt.Errorf("vertex %d is empty", i)
		}
		if err := p.checkRanges(v); err != nil {
			return nil, err
		}
		for k, m := range v.Chain {
			if m.Node < 0 || int(m.Node) >= len(place) || place[m.Node] >= 0 {
				return nil, fmt.Errorf("node %d of vertex %d does not exist or is in two chains", m.Node, i)
			}
			if m.Parent >= k || (k == 0) != (m.Parent == -1) || m.Parent < -1 {
				return nil, fmt.Errorf("node %d of vertex %d has parent %d, which does not precede it", m.Node, i, m.Parent)
			}
			if k > 0 && (m.Port < 0 || m.Port >= len(p.Nodes[m.Node].Inputs)) {
				return nil, fmt.Errorf("node %d of vertex %d is fed at input %d, which it does not have", m.Node, i, m.Port)
			}
			place[m.Node] = v.ID
		}
	}
	for i, needed := range Needed(p.Nodes) {
		if needed != (place[i] >= 0) {
			return nil, fmt.Errorf("node %d is in %s", i, map[bool]string{true: "no chain", false: "a chain, though no sink needs it"}[needed])
		}
	}
	return place, nil
}

func (p *Plan) checkRanges(v *Vertex) error {
	if v.Parallelism != p.Parallelism && v.Parallelism != 1 || len(v.Ranges) != v.Parallelism {
		return fmt.Errorf("vertex %d has parallelism %d and %d ranges at parallelism %d", v.ID, v.Parallelism, len(v.Ranges), p.Parallelism)
	}
	for i, r := range v.Ranges {
		if r != sharding.Split(p.Shards, v.Parallelism, i) {
			return fmt.Errorf("subtask %d of vertex %d owns shards %v, not %v", i, v.ID, r, sharding.Split(p.Shards, v.Parallelism, i))
		}
	}
	return nil
}
