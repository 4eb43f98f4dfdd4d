package collective

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/execute"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/zeebo/xxh3"
)

// localDecider stands where nothing is left to decide: messages among the ranks of
// one process are sent by an algorithm that was asked for.
type localDecider struct{}

func (localDecider) decide(_ *calls, q *request, _ decisionKey) (*choice, error) {
	return nil, fmt.Errorf("%s without an algorithm", titles[q.coll])
}

// channels is one: what is copied within a process waits for no socket.
func (localDecider) channels(*calls, decisionKey) int { return 1 }

// channels depends on what all parties know.
func (n *network) channels(k *calls, key decisionKey) int {
	return tune.Channels(key.bytes(), k.node.Size())
}

// decide has the first party choose and all learn of it, so that all agree whatever
// they would have chosen themselves.
func (n *network) decide(k *calls, q *request, key decisionKey) (*choice, error) {
	var payload [decisionBytes]byte
	if k.node.Rank() == 0 {
		if err := n.chooseFor(k, q, key, payload[:]); err != nil {
			return nil, err
		}
	}
	if err := k.spread(q, payload[:]); err != nil {
		return nil, err
	}
	return readDecision(payload[:], q.coll)
}

// chooseFor asks the tuner and encodes its choice.
func (n *network) chooseFor(k *calls, q *request, key decisionKey, payload []byte) error {
	ctx := q.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	d, err := n.tuner.Choose(ctx, tune.Query{
		Collective: q.coll, Params: k.params(q, nil), Bytes: key.bytes(), Elem: q.elem,
		Uneven: key.uneven, InOrder: key.inOrder,
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(d.Choice)
	if err != nil {
		return err
	}
	if len(text) > len(payload) {
		return fmt.Errorf("the choice of %s takes more than %d bytes to tell", d.Choice, len(payload))
	}
	copy(payload, text)
	return nil
}

// decisionBytes is the length of the message that tells a choice.
const decisionBytes = 512

// spread broadcasts what party 0 decided, before the operation that it is about.
func (k *calls) spread(q *request, payload []byte) error {
	by, err := algorithm.Find(program.Broadcast, "binomial")
	if err != nil {
		return err
	}
	r := request{header: q.header, ctx: q.ctx, coll: program.Broadcast}
	p, err := k.prepare(&r, &choice{algorithm: by})
	if err != nil {
		return err
	}
	kin := q.header.kin()
	text := kin.describe()
	op := execute.Operation{
		Seq: q.header.seq, What: &mesh.Operation{Hash: xxh3.HashString("the choice for " + text), Text: text}, Before: q.before,
		Elem: 1, Layout: program.Even(len(payload), p.prog.Chunks), In: [][]byte{noBytes}, Out: payload,
	}
	if k.node.Rank() == 0 {
		op.In[0] = payload
	}
	_, err = p.runner.Run(&op)
	return err
}

// readDecision decodes a choice.
func readDecision(payload []byte, coll program.Collective) (*choice, error) {
	var c tune.Choice
	if err := json.Unmarshal(bytes.TrimRight(payload, "\x00"), &c); err != nil {
		return nil, fmt.Errorf("what rank 0 chose cannot be read: %w", err)
	}
	a, err := algorithm.Find(coll, c.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("what rank 0 chose: %w", err)
	}
	return &choice{algorithm: a, dims: c.Dims, options: execute.Options{Segment: c.Segment, Channels: c.Channels}}, nil
}
