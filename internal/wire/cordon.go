package wire

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// This file has the messages by which a client keeps new workers from a task manager, and the
// reasons for which a task manager gets none. The job manager answers when the decision is on
// disk.

// CordonRequest cordons the task managers of a name: they get no new workers until they are
// uncordoned, and workers that run there go on. If they are cordoned already, the request
// changes only the reason, or nothing if it has none.
type CordonRequest struct {
	TaskManager string `msgpack:"task_manager"`
	Reason      string `msgpack:"reason"` // for people; CheckReason says which texts are valid
}

// UncordonRequest allows new workers on the task managers of a name. If they are not cordoned,
// it has no effect.
type UncordonRequest struct {
	TaskManager string `msgpack:"task_manager"`
}

// CordonReply is the answer to CordonRequest and UncordonRequest.
type CordonReply struct {
	TaskManager string  `msgpack:"task_manager"`
	Cordon      *Cordon `msgpack:"cordon,omitempty"` // nil if the task managers of the name are not cordoned now
	Changed     bool    `msgpack:"changed"`          // whether the request changed anything
	Registered  int     `msgpack:"registered"`       // number of task managers of the name that are neither lost nor left
	Workers     int     `msgpack:"workers"`          // number of their workers, which go on
	// Slots is the number of slots in the cluster that new workers can get, now or when they
	// are free.
	Slots int `msgpack:"slots"`
}

// DrainRequest cordons the task managers of a name, and makes the jobs there leave them: each is saved
// and restarted on other task managers. A job of whose state nothing would be left stays until it has ended.
type DrainRequest struct {
	TaskManager string `msgpack:"task_manager"`
	Reason      string `msgpack:"reason"`
	// Within is the time after which a job leaves although it could not be saved; 0 means never.
	Within time.Duration `msgpack:"within,omitempty"`
}

// DrainReply is the answer to DrainRequest.
type DrainReply struct {
	CordonReply `msgpack:",inline"`
	Leave       []JobID `msgpack:"leave,omitempty"` // jobs that leave
	Stay        []JobID `msgpack:"stay,omitempty"`  // jobs that stay until they have ended, or the time is over
}

// Cordon says that a client has cordoned a task manager.
type Cordon struct {
	Reason string    `msgpack:"reason" json:"reason,omitempty"`
	Since  time.Time `msgpack:"since" json:"since"`
	// Drained says that the jobs there leave. Those that cannot be saved leave at the time By, unless it is zero.
	Drained bool      `msgpack:"drained,omitempty" json:"-"`
	By      time.Time `msgpack:"by" json:"-"`
}

// Avoidance says that jobs get slots of a task manager only if other task managers do not have
// enough, because workers died there again and again.
type Avoidance struct {
	Until time.Time `msgpack:"until" json:"until"`
	Died  int       `msgpack:"died" json:"died"` // number of workers that died there recently
}

// MaxReason is the maximum size of a reason in bytes.
const MaxReason = 500

// CheckReason returns whether a text is valid as a reason: it has one line of printable text,
// and at most MaxReason bytes. The empty text is valid.
func CheckReason(text string) bool {
	return len(text) <= MaxReason && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
