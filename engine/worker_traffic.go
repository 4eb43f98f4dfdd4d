package engine

import (
	"context"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/wire"
)

// traffic counts the rows and bytes that a worker sends over each edge of a plan, including those
// that it sends to itself.
type traffic struct {
	transport.Network
	edges []edgeTraffic
}

// edgeTraffic holds the numbers of rows and bytes that were sent over one edge.
type edgeTraffic struct{ rows, bytes atomic.Int64 }

func newTraffic(n transport.Network, edges int) *traffic {
	return &traffic{Network: n, edges: make([]edgeTraffic, edges)}
}

// Dial returns a sender that counts what it sends.
func (t *traffic) Dial(addr transport.Address) (transport.Sender, error) {
	s, err := t.Network.Dial(addr)
	if err != nil || addr.Edge < 0 || addr.Edge >= len(t.edges) {
		return s, err
	}
	return &countedSender{s, &t.edges[addr.Edge]}, nil
}

// take returns the counts so far, by edge.
func (t *traffic) take() []wire.EdgeProgress {
	counts := make([]wire.EdgeProgress, len(t.edges))
	for i := range t.edges {
		counts[i] = wire.EdgeProgress{Rows: t.edges[i].rows.Load(), Bytes: t.edges[i].bytes.Load()}
	}
	return counts
}

type countedSender struct {
	transport.Sender
	edge *edgeTraffic
}

// Send sends a message and counts its rows. They are measured before they are sent, as they
// belong to the receiver afterwards.
func (s *countedSender) Send(ctx context.Context, m transport.Message) error {
	var rows, bytes int64
	if m.Rows != nil {
		rows, bytes = m.Rows.NumRows(), batch.Size(m.Rows)
	}
	err := s.Sender.Send(ctx, m)
	if err == nil && rows > 0 {
		s.edge.rows.Add(rows)
		s.edge.bytes.Add(bytes)
	}
	return err
}
