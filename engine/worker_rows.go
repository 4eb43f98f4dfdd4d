package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Sizes of the pieces in which a worker sends rows and text. They are small compared to the limit
// of a frame, so that heartbeats and messages can be sent between pieces.
const (
	collectedBytes = 1 << 20   // maximum size of rows in a piece, unless one row is larger
	outputBytes    = 256 << 10 // maximum size of text in a piece
)

// stream receives collected rows in place of a resultStore that holds them. send blocks until the
// rows are accepted or ctx ends.
type stream interface {
	send(ctx context.Context, node plan.NodeID, shard int, rows arrow.Record) error
}

// rowSender sends the rows that a worker collects to its task manager, which passes them on to
// the client. Each batch is sent as an Arrow stream of its own. The worker does not hold the
// rows, so only the client's budget limits what a job can collect.
type rowSender struct {
	sender *workerSender
	mem    memory.Allocator
}

// send sends a borrowed batch, in pieces if it is large.
func (s *rowSender) send(ctx context.Context, node plan.NodeID, shard int, rows arrow.Record) error {
	n := int(rows.NumRows())
	if n == 0 {
		return nil
	}
	if n > 1 && batch.Size(rows) > collectedBytes {
		for part := range batch.Rechunk(rows, (n+1)/2) {
			err := s.send(ctx, node, shard, part)
			part.Release()
			if err != nil {
				return err
			}
		}
		return nil
	}
	if size := batch.Size(rows); size > wire.MaxFrame-collectedBytes {
		return fmt.Errorf("a row to collect takes %s, and at most %s can travel to the client: write it to a file",
			humanize.Bytes(size), humanize.Bytes(wire.MaxFrame-collectedBytes))
	}
	data, err := encodeRows(rows, s.mem)
	if err != nil {
		return err
	}
	return s.sender.send(ctx, &wire.FromWorker{Collected: &wire.Collected{Node: int(node), Shard: shard, Rows: data}})
}

// encodeRows returns an Arrow stream with one batch, rows, which is borrowed.
func encodeRows(rows arrow.Record, mem memory.Allocator) ([]byte, error) {
	var out bytes.Buffer
	w := batch.NewStreamWriter(&out, rows.Schema(), mem)
	err := w.Write(rows)
	if closed := w.Close(); err == nil {
		err = closed
	}
	return out.Bytes(), err
}

// textSender sends text that operators print to the task manager, which passes it on to the
// client's standard output. The text of one call of Write is sent in one piece unless it is
// large.
type textSender struct {
	sender *workerSender
	ctx    context.Context // context of the worker
	mu     sync.Mutex
}

var _ io.Writer = (*textSender)(nil)

// Write sends text. It blocks while the client does not read.
func (s *textSender) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := 0
	for sent < len(text) {
		piece := text[sent:min(len(text), sent+outputBytes)]
		m := &wire.FromWorker{Output: &wire.Output{Text: bytes.Clone(piece)}}
		if err := s.sender.send(s.ctx, m); err != nil {
			return sent, fmt.Errorf("write to the client's standard output: %w", err)
		}
		sent += len(piece)
	}
	return sent, nil
}
