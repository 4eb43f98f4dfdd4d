package algorithm

import "github.com/superstep-ml/superstep/collective/program"

// Tree Barrier. Each rank waits for the ranks below it in the binomial tree of gather_tree.go
// with root 0, and then tells the rank above. The message that all have arrived goes down the
// same way.
//
//	steps            2·⌊log2 p⌋ messages in a row
//	sent by rank r   one message of no data up, and one to each rank below:
//	                 2·(p − 1) in all, where dissemination sends p·⌈log2 p⌉
//	scratch          no elements
//	order            nothing is folded
//
// For many ranks on few cores, or on a busy network: it has the fewest messages.
//
// Folklore; compared with others by Mellor-Crummey and Scott, "Algorithms for
// Scalable Synchronization on Shared-Memory Multiprocessors" (ACM TOCS 9, 1991).
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
		room := program.Chunk(program.Scratch, p.room(chunk(0)), 0)
		come = append(come, p.recv(p.lane(c.rank, c.rank), room))
	}
	if rank != 0 {
		up := p.lane(at.parent, at.parent)
		told := p.send(up, whole(program.In), come...)
		room := program.Chunk(program.Scratch, p.room(chunk(0)), 0)
		come = []program.Dep{told, p.recv(up, room)}
	}
	sent := come
	for i := range at.children {
		lane := len(at.children) - 1 - i // the largest half has the longest way to go
		sent = append(sent, p.send(lane, whole(program.In), come...))
	}
	p.copy(p.local(), whole(program.Out), whole(program.In), sent...)
	return p.Program
}

func barrierTreeCost(pr Params) program.Cost { return program.Cost{Steps: 2 * treeSteps(pr.P, 0)} }
