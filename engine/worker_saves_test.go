package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestNoAnswerAfterFailed requires that a request for a state which ends later than the attempt is not answered any
// more, as Failed has been sent.
func TestNoAnswerAfterFailed(t *testing.T) {
	sent := make(chan *wire.FromWorker, 2)
	w := &worker{workerProcess: &workerProcess{sender: &workerSender{bulk: sent}}, context: t.Context()}
	w.saves.answers = make(map[int]*wire.Saved)
	w.answerSave(&wire.Saved{Request: 1})
	require.Equal(t, 1, (<-sent).Saved.Request)
	w.saves.end()
	w.answerSave(&wire.Saved{Request: 2, Failure: errRunEnded.Error()})
	require.Empty(t, sent)
}
