package workerlife

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestKeeps requires that a process is kept only if its attempt has ended because of other workers, and
// if whoever ended it wants that.
func TestKeeps(t *testing.T) {
	peer := &wire.Failure{Kind: wire.PeerFailure}
	kept := &wire.Deployment{Keep: true}
	for _, c := range []struct {
		name  string
		end   End
		keeps bool
	}{
		{"a peer has failed", End{Deployment: kept, Failure: peer}, true},
		{"no attempt follows", End{Deployment: &wire.Deployment{}, Failure: peer}, false},
		{"told to keep it", End{Deployment: &wire.Deployment{}, Failure: peer, Cancelled: &wire.Cancel{Keep: true}}, true},
		{"told not to keep it", End{Deployment: kept, Failure: peer, Cancelled: &wire.Cancel{}}, false},
		{"an error of user code", End{Deployment: kept, Failure: &wire.Failure{Kind: wire.UserFailure}}, false},
		{"work is under way", End{Deployment: kept, Failure: peer, Unclean: true}, false},
		{"the results are visible", End{Deployment: kept, Failure: peer, Committed: true}, false},
		{"it has succeeded", End{Deployment: kept}, false},
		{"it only finishes a commit", End{Deployment: &wire.Deployment{Mode: wire.CommitMode, Keep: true}, Failure: peer}, false},
	} {
		require.Equal(t, c.keeps, c.end.Keeps(), c.name)
	}
}

// TestEventOf requires that only worker 0 prepares and commits, and that a start comes in its turn.
func TestEventOf(t *testing.T) {
	zero, one := &wire.Deployment{}, &wire.Deployment{WorkerRef: wire.WorkerRef{Worker: 1}}
	commits := &wire.Deployment{Mode: wire.CommitMode}
	prepare, start, commit := &wire.ToWorker{Prepare: &wire.Prepare{}}, &wire.ToWorker{Start: &wire.Start{}}, &wire.ToWorker{Commit: &wire.Commit{}}
	for _, c := range []struct {
		state State
		m     *wire.ToWorker
		d     *wire.Deployment
		want  Event
	}{
		{Awaiting, &wire.ToWorker{Deployment: zero}, nil, HearDeploy},
		{Running, &wire.ToWorker{Deployment: zero}, zero, HearInvalid},
		{Ready, prepare, zero, HearPrepare},
		{Ready, prepare, one, HearInvalid},
		{Ready, prepare, commits, HearInvalid},
		{Ready, start, one, HearStart},
		{Ready, start, zero, HearInvalid},
		{Prepared, start, zero, HearStart},
		{Finished, commit, zero, HearCommit},
		{Finished, commit, one, HearInvalid},
		{Ready, commit, commits, HearCommit},
		{Ready, commit, zero, HearInvalid},
		{Running, &wire.ToWorker{Cancel: &wire.Cancel{}}, one, HearCancel},
		{Running, &wire.ToWorker{Exit: &wire.Exit{}}, one, HearExit},
		{Running, &wire.ToWorker{}, one, HearInvalid},
	} {
		require.Equal(t, c.want, EventOf(c.state, c.m, c.d), "%v", c.state)
	}
}
