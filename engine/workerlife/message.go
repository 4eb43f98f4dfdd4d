package workerlife

import "github.com/superstep-ml/superstep/internal/wire"

// EventOf returns the event of a message that a worker in state s has got, which is HearInvalid if the
// message is not for this worker. d is the worker's deployment, or nil before it has one.
func EventOf(s State, m *wire.ToWorker, d *wire.Deployment) Event {
	first := d != nil && d.Worker == 0
	resumes := d != nil && d.Mode == wire.CommitMode
	switch {
	case m.Deployment != nil && d == nil:
		return HearDeploy
	case m.Prepare != nil && first && !resumes:
		return HearPrepare
	case m.Start != nil && (s == Prepared) == first && !resumes:
		return HearStart
	case m.Commit != nil && first && (s == Ready) == resumes:
		return HearCommit
	case m.Cancel != nil:
		return HearCancel
	case m.Exit != nil:
		return HearExit
	}
	return HearInvalid
}

// End says how a worker's part of an attempt has ended.
type End struct {
	Deployment *wire.Deployment
	Cancelled  *wire.Cancel  // the message that told the worker to stop; nil if there was none
	Failure    *wire.Failure // why the worker fails; nil if it does not
	Committed  bool          // the results are visible
	// Unclean says that work may still be under way, that output could not be removed, or that code of
	// the job has failed too.
	Unclean bool
}

// Keeps reports whether the worker's process is kept for the next attempt. That is so if the attempt
// has ended because of other workers.
func (e End) Keeps() bool {
	if e.Unclean || e.Committed || e.Failure == nil || e.Failure.Kind != wire.PeerFailure || e.Deployment.Mode != wire.RunMode {
		return false
	}
	if e.Cancelled != nil {
		return e.Cancelled.Keep
	}
	return e.Deployment.Keep
}
