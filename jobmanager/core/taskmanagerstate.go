package core

// TaskManagerState is the state of a task manager.
type TaskManagerState int

const (
	// TaskManagerAlive means that the task manager is connected, and has sent a message within
	// half of Config.Detection.
	TaskManagerAlive TaskManagerState = iota
	// TaskManagerSilent means that the task manager is connected, but has sent nothing for half
	// of Config.Detection. It keeps its workers and gets no new workers.
	TaskManagerSilent
	// TaskManagerAway means that the task manager's connection broke, and that it may
	// reconnect. It keeps its workers and gets no new workers.
	TaskManagerAway
	// TaskManagerLost means that the task manager was silent or away for too long, or has been
	// restarted. Its workers are lost. This state is final: if the task manager registers
	// again, it counts as a new task manager.
	TaskManagerLost
	// TaskManagerLeft means that the task manager has sent Leave. This state is final.
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
	taskManagerHeard   taskManagerEvent = iota // a message from it was received
	taskManagerSilence                         // it sent nothing for half of Config.Detection
	taskManagerCut                             // its connection broke
	taskManagerBack                            // it registered on another connection
	taskManagerExpired                         // it was silent or away for too long, or has been restarted
	taskManagerLeaves                          // it sent Leave
)

var taskManagerEvents = [...]string{"heard", "silence", "cut", "back", "expired", "leaves"}

// String returns the name of the event.
func (e taskManagerEvent) String() string { return taskManagerEvents[e] }

// taskManagerTable has the state transitions of a task manager, beginning with its
// registration.
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
