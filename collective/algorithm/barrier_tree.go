package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Tree Barrier. Each rank waits for a message from each of its children in the binomial tree of
// gather_tree.go with root 0, and then sends a message to its parent. When the root has
// received all its messages, a message that all ranks have arrived is sent down the same tree.
//
//	steps            2·⌊log2 p⌋ messages in a row
//	sent by rank r   one message without data to its parent, and one to each child:
//	                 2·(p − 1) in all; dissemination sends p·⌈log2 p⌉
//	scratch          no elements
//	order            nothing is folded
//
// Use it for many ranks on few processor cores, or on a busy network: no algorithm has fewer
// messages.
//
// Reference: folklore. It is compared with other barriers by Mellor-Crummey and Scott,
// "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors" (ACM TOCS 9,
// 1991).
func barrierTree() *Algorithm {
	return &Algorithm{
		Name: "tree", Collective: program.Barrier,
		Summary:  "arrivals go up a tree, the release comes down",
		Generate: generateBarrierTree, Cost: barrierTreeCost,
	}
}

func generateBarrierTree(pr Params, rank int) *program.Program {
	p := newPart(program.Barrier, "tree", pr, rank, 1)
	at := treeOf(pr.P, 0, rank)
	var come []program.Dep
	for i := len(at.children) - 1; i >= 0; i-- { // the smallest half arrives first
		c := at.children[i]
		room := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		come = append(come, p.recv(p.lane(c.rank, c.rank), room))
	}
	if rank != 0 {
		up := p.lane(at.parent, at.parent)
		told := p.send(up, whole(program.In), come...)
		room := program.Chunk(program.Scratch, p.newSlot(chunk(0)), 0)
		come = []program.Dep{told, p.recv(up, room)}
	}
	sent := come
	for i := range at.children {
		lane := len(at.children) - 1 - i // the largest half has the longest path to its leaves
		sent = append(sent, p.send(lane, whole(program.In), come...))
	}
	p.copy(p.local(), whole(program.Out), whole(program.In), sent...)
	return p.Program
}

func barrierTreeCost(pr Params) program.Cost { return program.Cost{Steps: 2 * treeSteps(pr.P, 0)} }
