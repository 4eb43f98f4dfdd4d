package precopy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Rows are what a process has of the rows of queues. *task.Retained implements it, and says what the methods do.
type Rows interface {
	Offer(queue string, shard int) []task.PortSize
	Give(queue string, port, shard int, give func(rows columnar.Batch) error) error

	HasAhead(queue string, shard int) bool
	RoomAhead(bytes int64) bool
	LeaveAhead(bytes int64)
	AddAhead(queue string, shard int, ports map[int]columnar.Batch, reserved int64) error
	DropAhead(wanted func(queue string, shard int) bool)
}

var _ Rows = (*task.Retained)(nil)

// Config describes a Node.
type Config struct {
	// Port is the port of this process. The Node must be closed before it.
	Port    *peerlink.Port
	Worker  int    // number of this process
	Attempt uint32 // number of the attempt of the job; connections of other attempts are refused

	Rows      Rows
	Allocator columnar.Allocator // allocates the memory of rows that are taken

	// Patience is the time after which a connection on which a peer neither sends nor takes what it should is
	// given up; 0 means 10 seconds.
	Patience time.Duration
	Logger   hclog.Logger // may be nil
}

// Node gives and takes rows in one process of an attempt. Its methods may be called from any goroutine.
type Node struct {
	cfg      Config
	endpoint *peerlink.Opened

	ctx  context.Context // ends when the Node closes
	stop context.CancelFunc
	work sync.WaitGroup

	executing sync.Mutex // held while an order is executed

	mu      sync.Mutex
	closed  bool
	accepts map[net.Conn]struct{}
	latest  context.CancelFunc // ends the execution of the newest order; nil if there was none
}

var errClosed = errors.New("the copying of rows is closed")

// Channels of connections, in their hello.
const (
	channelOrder = iota // an order of worker 0
	channelTake         // requests for shards
)

// New begins to give rows, and to execute orders. The caller must close the Node.
func New(cfg Config) (*Node, error) {
	if cfg.Port == nil || cfg.Rows == nil || cfg.Worker < 0 {
		return nil, errors.New("copy rows ahead: Port and Rows must be set, and Worker must not be negative")
	}
	if cfg.Allocator == nil {
		cfg.Allocator = memory.DefaultAllocator
	}
	if cfg.Patience <= 0 {
		cfg.Patience = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	n := &Node{cfg: cfg, accepts: make(map[net.Conn]struct{})}
	n.ctx, n.stop = context.WithCancel(context.Background())
	var err error
	n.endpoint, err = cfg.Port.Open(peerlink.Endpoint{Kind: peerlink.Precopy, Epoch: cfg.Attempt, Serve: n.serve})
	if err != nil {
		n.stop()
		return nil, fmt.Errorf("copy rows ahead: %w", err)
	}
	return n, nil
}

// Close ends all that goes on, and returns when the goroutines of the Node have ended. Closing again does nothing.
func (n *Node) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop()
	n.endpoint.Close()
	n.mu.Lock()
	for nc := range n.accepts {
		shut(nc)
	}
	n.mu.Unlock()
	n.work.Wait()
}

// enter makes Close wait until work.Done is called. It returns false if the Node is closed.
func (n *Node) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.work.Add(1)
	}
	return !n.closed
}

// serve takes an accepted connection.
func (n *Node) serve(c *peerlink.Caller) error {
	h := c.Hello
	switch {
	case int(h.To) != n.cfg.Worker:
		return peerlink.Refuse("this is worker %d, not %d", n.cfg.Worker, h.To)
	case h.Channel > channelTake:
		return peerlink.Refuse("channel %d of a connection for rows ahead has no meaning", h.Channel)
	case h.Channel == channelOrder && h.From != 0:
		return peerlink.Refuse("an order of worker %d: want one of worker 0", h.From)
	}
	if err := c.Welcome(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	n.accepts[c.Conn] = struct{}{}
	n.work.Go(func() {
		err := n.answer(c.Conn, h.Channel)
		shut(c.Conn)
		n.mu.Lock()
		delete(n.accepts, c.Conn)
		n.mu.Unlock()
		if log := n.cfg.Logger.With("worker", h.From); errors.Is(err, peerlink.ErrDamaged) || errors.Is(err, peerlink.ErrProtocol) {
			log.Warn("a connection for rows ahead is closed", "error", err)
		} else if err != nil {
			log.Debug("a connection for rows ahead has ended", "error", err)
		}
	})
	return nil
}

// answer answers what comes over an accepted connection.
func (n *Node) answer(nc net.Conn, channel uint32) error {
	l := n.newLine(nc)
	if channel == channelOrder {
		return n.obey(l)
	}
	return n.giveAll(l)
}

// dial connects to another process. The connection ends with ctx.
func (n *Node) dial(ctx context.Context, to Process, channel uint32) (l *line, err error) {
	nc, err := n.cfg.Port.Dial(ctx, to.Address, peerlink.Hello{
		Kind: peerlink.Precopy, Epoch: n.cfg.Attempt, From: uint32(n.cfg.Worker), To: uint32(to.Worker), Channel: channel, Sums: true,
	})
	if err != nil {
		if nc != nil { // the answer was damaged
			shut(nc)
		}
		return nil, err
	}
	l = n.newLine(nc)
	l.undo = context.AfterFunc(ctx, func() { shut(nc) })
	return l, nil
}

// line is a connection for frames.
type line struct {
	nc    net.Conn
	r     *frameReader
	w     *frameWriter
	bufs  batch.Buffers
	until time.Time   // no read or write lasts longer; zero if there is no such time
	undo  func() bool // undoes what ends the connection with a context; nil if nothing does
}

func (n *Node) newLine(nc net.Conn) *line {
	l := &line{nc: nc}
	l.r = newFrameReader(nc, func() { nc.SetReadDeadline(l.soon(n.cfg.Patience)) })
	l.w = newFrameWriter(nc, func() { nc.SetWriteDeadline(l.soon(n.cfg.Patience)) })
	return l
}

// soon returns the time until which a peer with so much patience waits.
func (l *line) soon(patience time.Duration) time.Time {
	soon := time.Now().Add(patience)
	if !l.until.IsZero() && l.until.Before(soon) {
		return l.until
	}
	return soon
}

// close closes a connection that was dialled.
func (l *line) close() {
	l.undo()
	shut(l.nc)
}

// shut closes a connection at once. It does not wait for the peer, as closing a TLS connection may.
func shut(nc net.Conn) { peerlink.Socket(nc).Close() }
