package collective

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
	"github.com/superstep-ml/superstep/shared/sharding"
	"github.com/zeebo/xxh3"
)

// network reaches the ranks of other processes. AllReduces, barriers, broadcasts of single
// values and gatherings of objects run among processes: the ranks of a process meet, and the
// last rank to arrive runs one program with the other processes. All other collectives run
// among ranks, and so do all collectives with a named algorithm.
type network struct {
	mesh    meshGroup
	size    int
	hosts   [][]int // hosts[p]: ranks of process p, ascending
	process int     // number of this process
	tuner   *tune.Tuner

	closed      atomic.Int32 // number of ranks of this process that have closed their Comms
	sendGoodbye func()       // notifies the other processes that this process leaves; does not wait

	// calls runs programs among processes. The rank that leads a meeting of this process uses
	// calls and the fields below.
	calls    calls
	trials   calls // replaces calls while algorithms are measured: see calibration.With
	request  request
	header   header
	word     [8]byte
	payloads [][]byte      // payloads[r]: payload of rank r in the latest reduction of objects
	packings [numTypes]any // packings[t]: *packing of element type t
	whole    *processNodes
	shards   map[int]*processNodes
}

// meshGroup has the methods of the mesh of connections between ranks that a group calls.
type meshGroup interface {
	Node(rank int) mesh.Node
	Leave(rank int)
	Close() error
}

func newNetwork(m meshGroup, size int, hosts [][]int, process int, t *tune.Tuner) *network {
	n := &network{mesh: m, size: size, hosts: hosts, process: process, tuner: t, shards: map[int]*processNodes{}}
	leaders := make([]int, len(hosts))
	for h, ranks := range hosts {
		leaders[h] = ranks[0]
	}
	node := processNode{Node: m.Node(leaders[process]), process: process, leaders: leaders, channels: processChannels}
	aside := node
	aside.channels = trialChannels
	n.calls, n.trials = newCalls(&node, n), newCalls(&aside, n)
	return n
}

func (n *network) node(rank int) mesh.Node { return n.mesh.Node(rank) }

// fail notifies all processes of err and returns the first cause. It calls the node of a rank
// instead of a processNode, since err already identifies ranks and not processes.
func (n *network) fail(err error) error { return n.node(n.hosts[n.process][0]).Fail(err) }

// enter announces that this rank is in the operation of h. From these announcements the
// membership finds ranks that wait too long and ranks that wait in different operations.
func (c *Comm) enter(h *header) {
	n := c.group.net
	if n == nil {
		return
	}
	if c.node == nil {
		c.node, c.announced = n.node(c.Rank()), map[header]*mesh.Operation{}
	}
	kin := h.withoutNumber()
	op := c.announced[kin]
	if op == nil {
		if len(c.announced) >= maxOperations {
			clear(c.announced)
		}
		text := kin.describe()
		op = &mesh.Operation{Hash: xxh3.HashString(text), Text: text}
		c.announced[kin] = op
	}
	c.node.Begin(h.seq, op)
	if h.seq > c.history.seq { // false at a second meeting of the same operation
		c.history.seq, c.history.digest = h.seq, (c.history.digest^op.Hash)*0x9e3779b97f4a7c15
	}
}

// history is a digest of the collectives that a rank has begun. A rank that only sends may
// complete a collective before other ranks find that they are in a different one. So the digest
// is sent with the messages of all later collectives, and a mismatch is found there.
type history struct{ seq, digest uint64 }

// leave announces that this rank has completed its operation.
func (c *Comm) leave() {
	if c.node != nil {
		c.node.End()
	}
}

// processNode is a mesh.Node of a group in which the processes take the place of ranks.
// Messages to a process are sent to its lowest rank.
type processNode struct {
	mesh.Node
	process  int
	leaders  []int
	channels int // the first channel of programs among processes
}

func (n *processNode) Rank() int { return n.process }
func (n *processNode) Size() int { return len(n.leaders) }

func (n *processNode) Open(ctx context.Context, routes []mesh.Route) ([]mesh.Conn, error) {
	real := slices.Clone(routes)
	for i := range real {
		// The offset separates these channels from the channels of programs among ranks.
		real[i].Peer, real[i].Channel = n.leaders[real[i].Peer], real[i].Channel+n.channels
	}
	return n.Node.Open(ctx, real)
}

// Fail calls Fail of the mesh with err. If err is a mismatch, Fail first replaces its process
// numbers by ranks.
func (n *processNode) Fail(err error) error {
	if cause := n.Err(); cause != nil {
		return cause
	}
	var m *MismatchError
	if errors.As(err, &m) {
		real := *m
		real.Rank, real.Other = n.leaders[m.Rank], n.leaders[m.Other]
		err = &real
	}
	return n.Node.Fail(err)
}

// processChannels is the first channel number of programs among processes, and directChannel is
// the channel of messages from rank to rank. Both are above all channels of programs among
// ranks, which have many channels because each lane has several connections. trialChannels is
// the first channel on which algorithms are measured. Programs among ranks do not reach it
// unless their lanes have more connections than usual.
const (
	trialChannels   = 256
	processChannels = 512
	directChannel   = 1023
)

// processNodes has the nodes that the processes give as input to a reduction of all ranks. The
// nodes of a process cover the input of its ranks in the tree.
type processNodes struct {
	forest *memberForest // nil if each process has one buffer, folded in the tree over ranks
	nodes  [][]sharding.Node
	mine   []sharding.Node
}

// processNodesFor returns the processNodes of a reduction of whole buffers, or of forests over
// the given number of shards. Rank r owns the shards of sharding.Split(shards, size, r).
func (n *network) processNodesFor(mode inputMode, shards int) *processNodes {
	if mode == wholeBuffers {
		if n.whole == nil {
			n.whole = n.makeWhole()
		}
		return n.whole
	}
	p := n.shards[shards]
	if p == nil {
		p = n.makeProcessNodes(func(rank int, dst []sharding.Node) []sharding.Node {
			return sharding.AppendCover(dst, sharding.Split(shards, n.size, rank))
		})
		n.shards[shards] = p
	}
	return p
}

// makeWhole makes the processNodes of a reduction of whole buffers.
func (n *network) makeWhole() *processNodes {
	p := n.makeProcessNodes(func(rank int, dst []sharding.Node) []sharding.Node {
		return append(dst, rankNode(rank, n.size))
	})
	if len(n.hosts) == n.size {
		// Each process has one rank, so the tree over processes is the tree over ranks. Without
		// a forest, algorithms that take no forests can be chosen too, if a rule or the tuner's
		// AnyTree allows them.
		p.forest = nil
	}
	return p
}

func (n *network) makeProcessNodes(appendNodes func(rank int, dst []sharding.Node) []sharding.Node) *processNodes {
	f := &memberForest{nodes: make([][]sharding.Node, len(n.hosts))}
	for h, ranks := range n.hosts {
		nodes := []sharding.Node{}
		for _, r := range ranks {
			nodes = appendNodes(r, nodes)
		}
		f.nodes[h] = joinSiblings(nodes)
	}
	f.hash = hashForest(f.nodes)
	return &processNodes{forest: f, nodes: f.nodes, mine: f.nodes[n.process]}
}

// rankNode returns the node of a rank in an aligned tree with the shape of the canonical tree
// over p ranks. If p is not a power of two, the canonical tree first folds some ranks in pairs.
// These ranks are leaves here, and each other rank has a node of level 1, like a pair.
func rankNode(rank, p int) sharding.Node {
	q := 1
	for 2*q <= p {
		q *= 2
	}
	if r := p - q; rank >= 2*r {
		return sharding.Node{Level: 1, Index: rank - r}
	}
	return sharding.Leaf(rank)
}

// rankLeaves returns the number of leaves of rankNode's tree for p ranks.
func rankLeaves(p int) int {
	n := 2
	for n <= p {
		n *= 2
	}
	return n
}

// joinSiblings sorts nodes by shard. Then it repeatedly replaces two nodes that are the two
// halves of one node by that node, until no such pair is left.
func joinSiblings(nodes []sharding.Node) []sharding.Node {
	slices.SortFunc(nodes, func(a, b sharding.Node) int { return a.Range().Lo - b.Range().Lo })
	joined := nodes[:0]
	for _, n := range nodes {
		joined = append(joined, n)
		for k := len(joined); k > 1 && !joined[k-1].IsLeft() && joined[k-2] == joined[k-1].Sibling(); k-- {
			joined = append(joined[:k-2], joined[k-1].Parent())
		}
	}
	return joined
}
