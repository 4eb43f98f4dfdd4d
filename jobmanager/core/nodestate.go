package core

// NodeState is how a task manager stands.
type NodeState int

const (
	// NodeAlive: it is connected and was heard.
	NodeAlive NodeState = iota
	// NodeSilent: it is connected, but was not heard for half the detection time. It
	// keeps its workers and is given no new ones.
	NodeSilent
	// NodeAway: its connection broke, and it may come back. It keeps its workers and is
	// given no new ones.
	NodeAway
	// NodeLost: it was silent or away for too long, or has been restarted. Its workers
	// are lost. For good: if it comes back, it registers anew.
	NodeLost
	// NodeLeft: it said good-bye. For good.
	NodeLeft
)

var nodeStates = [...]string{"alive", "silent", "away", "lost", "left"}

// String returns the state in lower case.
func (s NodeState) String() string { return nodeStates[s] }

// Gone reports whether the task manager is no more.
func (s NodeState) Gone() bool { return s >= NodeLost }

// nodeEvent is what moves a task manager from one state to the next.
type nodeEvent int

const (
	nodeHeard   nodeEvent = iota // it said something
	nodeSilence                  // it said nothing for half the detection time
	nodeCut                      // its connection broke
	nodeBack                     // it registered on another connection
	nodeExpired                  // it was waited for in vain, or another took its place
	nodeLeaves                   // it said good-bye
)

var nodeEvents = [...]string{"heard", "silence", "cut", "back", "expired", "leaves"}

// String returns the event in lower case.
func (e nodeEvent) String() string { return nodeEvents[e] }

// nodeTable is the life of a task manager, from its registration on.
//
//	           ┌──── silence ───►┐
//	register ► alive             silent
//	           └◄─── heard ──────┘
//	             ▲               │
//	        back │               │ cut (from alive, too)
//	             └──── away ◄────┘
//
//	alive, silent or away ── expired ──► lost
//	alive or silent ──────── leaves ───► left
//
// Lost and left are for good.
var nodeTable = table[NodeState, nodeEvent]{
	NodeAlive: {
		nodeHeard: NodeAlive, nodeSilence: NodeSilent, nodeCut: NodeAway, nodeBack: NodeAlive,
		nodeExpired: NodeLost, nodeLeaves: NodeLeft,
	},
	NodeSilent: {
		nodeHeard: NodeAlive, nodeSilence: NodeSilent, nodeCut: NodeAway, nodeBack: NodeAlive,
		nodeExpired: NodeLost, nodeLeaves: NodeLeft,
	},
	NodeAway: {nodeBack: NodeAlive, nodeExpired: NodeLost},
}
