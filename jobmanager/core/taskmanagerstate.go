package core

// TaskManagerState is the state of a task manager.
type TaskManagerState int

const (
	// TaskManagerAlive: it is connected and was heard.
	TaskManagerAlive TaskManagerState = iota
	// TaskManagerSilent: it is connected, but was not heard for half the detection time. It
	// keeps its workers and is given no new ones.
	TaskManagerSilent
	// TaskManagerAway: its connection broke, and it may come back. It keeps its workers and is
	// given no new ones.
	TaskManagerAway
	// TaskManagerLost: it was silent or away for too long, or has been restarted. Its workers
	// are lost. For good: if it comes back, it registers anew.
	TaskManagerLost
	// TaskManagerLeft: it said good-bye. For good.
	TaskManagerLeft
)

var taskManagerStates = [...]string{"alive", "silent", "away", "lost", "left"}

// String returns the state in lower case.
func (s TaskManagerState) String() string { return taskManagerStates[s] }

// Gone reports whether the task manager is no more.
func (s TaskManagerState) Gone() bool { return s >= TaskManagerLost }

// taskManagerEvent is what moves a task manager from one state to the next.
type taskManagerEvent int

const (
	taskManagerHeard   taskManagerEvent = iota // it said something
	taskManagerSilence                         // it said nothing for half the detection time
	taskManagerCut                             // its connection broke
	taskManagerBack                            // it registered on another connection
	taskManagerExpired                         // it did not come back in time, or another took its place
	taskManagerLeaves                          // it said good-bye
)

var taskManagerEvents = [...]string{"heard", "silence", "cut", "back", "expired", "leaves"}

// String returns the event in lower case.
func (e taskManagerEvent) String() string { return taskManagerEvents[e] }

// taskManagerTable is the life of a task manager, from its registration on.
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
var taskManagerTable = table[TaskManagerState, taskManagerEvent]{
	TaskManagerAlive: {
		taskManagerHeard: TaskManagerAlive, taskManagerSilence: TaskManagerSilent, taskManagerCut: TaskManagerAway, taskManagerBack: TaskManagerAlive,
		taskManagerExpired: TaskManagerLost, taskManagerLeaves: TaskManagerLeft,
	},
	TaskManagerSilent: {
		taskManagerHeard: TaskManagerAlive, taskManagerSilence: TaskManagerSilent, taskManagerCut: TaskManagerAway, taskManagerBack: TaskManagerAlive,
		taskManagerExpired: TaskManagerLost, taskManagerLeaves: TaskManagerLeft,
	},
	TaskManagerAway: {taskManagerBack: TaskManagerAlive, taskManagerExpired: TaskManagerLost},
}
