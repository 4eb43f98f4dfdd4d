package wire

import "time"

// RecoveryPhase is a phase of the recovery from the loss of an attempt.
type RecoveryPhase int

const (
	// RecoveryAgreed ends when the last worker of the lost attempt has ended, has kept its process for
	// the next attempt, or is lost too.
	RecoveryAgreed RecoveryPhase = iota
	// RecoveryPlaced ends when the workers of the next attempt are deployed. It includes the delay of
	// the restart strategy, and the time in which the job waits for slots.
	RecoveryPlaced
	// RecoveryConnected ends when all of these workers are ready and are told to start.
	RecoveryConnected
	// RecoveryMoved ends when all of them have read the rows of a queue, which includes rows that are
	// read, made or sent again.
	RecoveryMoved
	// RecoveryResumed ends when the first superstep of the next attempt has ended.
	RecoveryResumed
	// RecoveryPhases is the number of phases.
	RecoveryPhases = iota
)

var recoveryPhases = [RecoveryPhases]string{"agreed", "placed", "connected", "moved", "resumed"}

// String returns the name of the phase.
func (p RecoveryPhase) String() string { return recoveryPhases[p] }

// Recovery has the times of a recovery by the clock of the job manager: when it heard of what ended
// each phase. It ends with the next loss: what has not happened by then remains zero. So do phases that
// there are not, such as supersteps of a job without queues, and phases that ended while no job manager
// ran.
type Recovery struct {
	Detected  time.Time `msgpack:"detected" json:"detected,omitzero"` // first report of the loss
	Agreed    time.Time `msgpack:"agreed" json:"agreed,omitzero"`
	Placed    time.Time `msgpack:"placed" json:"placed,omitzero"`
	Connected time.Time `msgpack:"connected" json:"connected,omitzero"`
	Moved     time.Time `msgpack:"moved" json:"moved,omitzero"`
	Resumed   time.Time `msgpack:"resumed" json:"resumed,omitzero"`
	// Superstep is the number of the superstep with which the next attempt resumed; 0 if it has
	// ended none.
	Superstep int `msgpack:"superstep,omitempty" json:"superstep,omitempty"`
}

// End returns the time at which a phase ended, so that it can be read and set.
func (r *Recovery) End(p RecoveryPhase) *time.Time {
	return [RecoveryPhases]*time.Time{&r.Agreed, &r.Placed, &r.Connected, &r.Moved, &r.Resumed}[p]
}
