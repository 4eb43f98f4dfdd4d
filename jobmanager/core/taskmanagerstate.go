package core

// TaskManagerState is the state of a task manager.
type TaskManagerState int

const (
	// TaskManagerAlive: it is connected, and was heard within half of Config.Detection.
	TaskManagerAlive TaskManagerState = iota
	// TaskManagerSilent: it is connected, but was not heard for half of Config.Detection. It
	// keeps its workers and gets no new ones.
	TaskManagerSilent
	// TaskManagerAway: its connection broke, and it may come back. It keeps its workers and
	// gets no new ones.
	TaskManagerAway
	// TaskManagerLost: it was silent or away for too long, or has been restarted. Its workers
	// are lost. This state is final: if the task manager registers again, it is a new one.
	TaskManagerLost
	// TaskManagerLeft: it has sent Leave. This state is final.
	TaskManagerLeft
)

var taskManagerStates = [...]string{"alive", "silent", "away", "lost", "left"}

// String returns the name of the state.
func (s TaskManagerState) String() string { return taskManagerStates[s] }

// Gone reports whether the task manager is lost or has left.
func (s TaskManagerState) Gone() bool { return s >= TaskManagerLost }

// taskManagerEvent is an event that moves a task manager from one state to the next.
type taskManagerEvent int

const (
	taskManagerHeard   taskManagerEvent = iota // a message of it was received
	taskManagerSilence                         // it sent nothing for half of Config.Detection
	taskManagerCut                             // its connection broke
	taskManagerBack                            // it registered on another connection
	taskManagerExpired                         // it did not reconnect in time, or another one replaced it
	taskManagerLeaves                          // it sent Leave
)

var taskManagerEvents = [...]string{"heard", "silence", "cut", "back", "expired", "leaves"}

// String returns the name of the event.
func (e taskManagerEvent) String() string { return taskManagerEvents[e] }

// taskManagerTable has the state transitions of a task manager from its registration on.
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
// Lost and left are final.
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
