package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Fingerprint returns the SHA-256 of the graph in hexadecimal. It covers all
// fields except Site and Within of nodes, which are only for messages. Two builds
// of a job are equal if their fingerprints are equal.
//
// The hash is computed over an encoding of the graph: a version, then the fields
// in the order of their declaration. Numbers take 8 bytes, little endian. The
// length of text and lists is written before them, so that different graphs have
// different encodings.
func (g *Graph) Fingerprint() string {
	e := encoder{h: sha256.New(), buf: make([]byte, 0, 4096)}
	e.text("superstep graph 1")
	e.text(g.Job)
	e.num(g.Shards)
	e.uint(g.Seed)
	e.num(len(g.Facts))
	for i := range g.Facts {
		e.text(g.Facts[i].Name)
		e.text(g.Facts[i].Value)
	}
	e.num(len(g.Nodes))
	for i := range g.Nodes {
		e.node(&g.Nodes[i])
	}
	e.num(len(g.Queues))
	for i := range g.Queues {
		e.text(g.Queues[i].Name)
		e.num(g.Queues[i].MaxSupersteps)
		e.flag(g.Queues[i].HasCriterion)
	}
	e.flush()
	return hex.EncodeToString(e.h.Sum(nil))
}

// encoder writes to a hash through a buffer.
type encoder struct {
	h   hash.Hash
	buf []byte
}

func (e *encoder) flush() {
	e.h.Write(e.buf) // Write of a hash never fails
	e.buf = e.buf[:0]
}

func (e *encoder) uint(v uint64) {
	if len(e.buf)+8 > cap(e.buf) {
		e.flush()
	}
	e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
}

func (e *encoder) num(v int) { e.uint(uint64(v)) }

func (e *encoder) flag(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

func (e *encoder) text(s string) {
	e.num(len(s))
	for len(s) > 0 {
		if len(e.buf) == cap(e.buf) {
			e.flush()
		}
		n := min(len(s), cap(e.buf)-len(e.buf))
		e.buf = append(e.buf, s[:n]...)
		s = s[n:]
	}
}

func (e *encoder) node(n *Node) {
	e.num(int(n.ID))
	e.text(n.Op)
	e.text(n.Name)
	e.num(len(n.Attrs))
	for i := range n.Attrs {
		e.text(n.Attrs[i].Key)
		e.text(n.Attrs[i].Value)
	}
	e.num(len(n.Schema))
	for i := range n.Schema {
		e.text(n.Schema[i].Name)
		e.text(n.Schema[i].Type)
		e.flag(n.Schema[i].Nullable)
	}
	e.num(len(n.Inputs))
	for i := range n.Inputs {
		in := &n.Inputs[i]
		e.num(int(in.From))
		e.num(int(in.Partitioner))
		e.num(len(in.Keys))
		for _, key := range in.Keys {
			e.text(key)
		}
		e.num(int(in.Role))
		e.text(in.Func)
	}
	e.text(n.Func)
	e.flag(n.Single)
	e.flag(n.Sink)
	e.text(n.Queue)
	e.num(int(n.Stage))
	e.num(int(n.Order))
}
