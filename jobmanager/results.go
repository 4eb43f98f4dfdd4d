package jobmanager

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Results returns the list of the results of a job that has finished.
func (m *Manager) Results(ctx context.Context, req *wire.ResultsRequest) (*wire.ResultsReply, error) {
	r, err := m.results(ctx, req.Job, true)
	if err != nil {
		return nil, err
	}
	defer r.follower.close()
	reply := &wire.ResultsReply{Job: r.follower.id, Results: []wire.ResultInfo{}}
	for _, k := range r.kept {
		reply.Results = append(reply.Results, k.ResultInfo)
	}
	return reply, nil
}

// Result streams one result of a job that has finished.
func (m *Manager) Result(req *wire.ResultRequest, stream wire.ServerStream[wire.ResultPiece]) error {
	return m.watched(stream.Context(), m.config.WriteTimeout, func(busy busy) error {
		return m.ReadResult(stream.Context(), req, func(p *wire.ResultPiece) error {
			return busy(func() error { return stream.Send(p) })
		})
	})
}

// ReadResult calls send, in the caller's goroutine, with the pieces of one result of a job that
// has finished. It holds in memory one piece at a time, and the positions in the file of all
// pieces. send may keep the piece.
func (m *Manager) ReadResult(ctx context.Context, req *wire.ResultRequest, send func(*wire.ResultPiece) error) error {
	r, err := m.results(ctx, req.Job, false)
	if err != nil {
		return err
	}
	defer r.follower.close()
	var names []string
	for _, k := range r.kept {
		if k.Name == req.Name {
			return r.send(ctx, k, send)
		}
		names = append(names, fmt.Sprintf("%q", k.Name))
	}
	if len(names) == 0 {
		return wire.Error(codes.NotFound, "job %s has no results: it collects and prints nothing", r.follower.id)
	}
	return wire.Error(codes.NotFound, "job %s has no result %.100q; it has %s", r.follower.id, req.Name, humanize.List(names, ", ", 10))
}

// printedName is the name of the result that consists of the printed text. If a collected
// result has the same name, "_" is put in front of printedName, as often as necessary.
const printedName = "printed"

// keptResults finds the results of one job among its events.
type keptResults struct {
	follower *follower
	count    bool // whether to count the rows
	attempt  int
	kept     []*keptResult
	byNode   map[int]*keptResult
	printed  keptResult
}

// keptResult describes one result and has the positions of its pieces.
type keptResult struct {
	wire.ResultInfo
	schema *arrow.Schema // schema of the rows; nil for text
	pieces []keptPiece
	open   bool // the text of the pieces so far does not end with a newline
}

// keptPiece is the position, in the spool's file, of an event that has a piece of a result.
type keptPiece struct {
	shard  int
	begin  int64
	number uint64
}

// results reads the events of a job that has finished, and returns its results. It counts rows
// only if count is true. The caller must close r.follower.
func (m *Manager) results(ctx context.Context, id wire.JobID, count bool) (_ *keptResults, err error) {
	info, _, err := m.find(id)
	if err != nil {
		return nil, err
	}
	switch {
	case !info.State.Ended():
		return nil, wire.Error(codes.FailedPrecondition, "job %s is %s: it has results once it has finished; superstep attach follows it to its end", info.ID, info.State)
	case info.State != wire.JobFinished:
		return nil, wire.Error(codes.FailedPrecondition, "job %s has no results, as it %s: superstep show says why", info.ID, info.State.Verb())
	}
	r := &keptResults{count: count, byNode: map[int]*keptResult{}}
	if err := r.planned(m, info.ID); err != nil {
		return nil, err
	}
	// The complete ID must be used. A prefix that the client may have sent could become
	// ambiguous.
	if r.follower, err = m.newFollower(&wire.FollowRequest{Job: info.ID}, r.event); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.follower.close()
		}
	}()
	if err := r.follower.replay(ctx); err != nil {
		return nil, err
	}
	if err := r.follower.last(ctx); err != nil {
		return nil, err
	}
	switch _, past, err := m.ended(info.ID, r.follower.job); {
	case err != nil:
		return nil, err
	case !past.Whole:
		return nil, wire.Error(codes.DataLoss, "the job manager could not keep all that job %s sent to its client; its log says why", info.ID)
	}
	if len(r.printed.pieces) > 0 {
		r.kept = append(r.kept, &r.printed)
	}
	return r, nil
}

// planned adds the results that the job collects according to its plan.
func (r *keptResults) planned(m *Manager, id wire.JobID) error {
	data, err := m.history.plan(id)
	if err != nil {
		return wire.Error(codes.Internal, "%v", err)
	}
	p, err := plan.DecodePlan(data)
	if err != nil {
		return wire.Error(codes.DataLoss, "the plan of job %s, which says what it collects, cannot be read: %v", id, err)
	}
	r.printed.ResultInfo = wire.ResultInfo{Name: printedName, Kind: wire.ResultText}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op != "Collect" || !n.Sink || len(n.Inputs) != 1 {
			continue
		}
		from := int(n.Inputs[0].From)
		if from < 0 || from >= len(p.Nodes) {
			return wire.Error(codes.DataLoss, "the plan of job %s: operator %d has an input that does not exist", id, n.ID)
		}
		var columns []batch.Column
		for _, c := range p.Nodes[from].Schema {
			columns = append(columns, batch.Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
		}
		schema, err := batch.Schema(columns)
		if err != nil {
			return wire.Error(codes.DataLoss, "the columns of the result %q of job %s: %v", n.Name, id, err)
		}
		k := &keptResult{ResultInfo: wire.ResultInfo{Name: n.Name, Kind: wire.ResultRows}, schema: schema}
		r.kept, r.byNode[int(n.ID)] = append(r.kept, k), k
	}
	for slices.ContainsFunc(r.kept, func(k *keptResult) bool { return k.Name == r.printed.Name }) {
		r.printed.Name = "_" + r.printed.Name
	}
	return nil
}

// event processes one event in the same way as a client that waits for the job.
func (r *keptResults) event(e *wire.Event) error {
	at := keptPiece{begin: r.follower.reader.begin, number: e.Number}
	switch {
	case e.State != nil:
		if e.State.Attempt > r.attempt {
			if e.State.State != wire.JobCommitting { // a resumed commit uses the rows of the former attempt
				r.forget()
			}
			r.attempt = e.State.Attempt
		}
	case e.Collected != nil:
		k := r.byNode[e.Collected.Node]
		if k == nil {
			return wire.Error(codes.DataLoss, "operator %d of job %s collected rows under no name", e.Collected.Node, r.follower.id)
		}
		at.shard = e.Collected.Shard
		k.pieces = append(k.pieces, at)
		if r.count {
			n, err := k.rowsIn(e.Collected.Rows)
			if err != nil {
				return wire.Error(codes.DataLoss, "the result %q of job %s cannot be read: %v", k.Name, r.follower.id, err)
			}
			k.Rows += n
		}
	case e.Output != nil && len(e.Output.Text) > 0:
		k := &r.printed
		k.pieces = append(k.pieces, at)
		text := e.Output.Text
		if k.open {
			k.Rows-- // the piece continues the last line of the previous piece
		}
		k.Rows += int64(bytes.Count(text, []byte{'\n'}))
		if k.open = text[len(text)-1] != '\n'; k.open {
			k.Rows++
		}
	}
	return nil
}

// forget drops the rows and text of an attempt that did not succeed.
func (r *keptResults) forget() {
	for _, k := range append(slices.Clone(r.kept), &r.printed) {
		k.pieces, k.Rows, k.open = nil, 0, false
	}
}

// rowsIn returns the number of rows in a piece.
func (k *keptResult) rowsIn(stream []byte) (n int64, err error) {
	in, err := batch.NewStreamReader(bytes.NewReader(stream), memory.NewGoAllocator())
	if err != nil {
		return 0, err
	}
	defer in.Release()
	for {
		rec, err := in.Read()
		if err == io.EOF { // compared with ==, because a wrapped io.EOF means truncated data
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		n += rec.NumRows()
		rec.Release()
	}
}

// send calls its argument send with the pieces of result k, in the order of shards. Within a
// shard, the pieces are in the order in which they were delivered.
func (r *keptResults) send(ctx context.Context, k *keptResult, send func(*wire.ResultPiece) error) error {
	if k.schema != nil {
		var head bytes.Buffer
		if err := batch.NewStreamWriter(&head, k.schema, memory.NewGoAllocator()).Close(); err != nil {
			return wire.Error(codes.Internal, "the columns of the result %q: %v", k.Name, err)
		}
		if err := send(&wire.ResultPiece{Kind: k.Kind, Rows: head.Bytes()}); err != nil {
			return err
		}
	}
	size := r.follower.spool.view().size
	sort.SliceStable(k.pieces, func(i, j int) bool { return k.pieces[i].shard < k.pieces[j].shard })
	for _, at := range k.pieces {
		if err := ctx.Err(); err != nil {
			return err
		}
		reader := spoolReader{file: r.follower.file, seed: r.follower.reader.seed, offset: at.begin, number: at.number - 1}
		e, err := reader.next(size, 0)
		if err != nil {
			return wire.Error(codes.DataLoss, "the job manager has lost some of what job %s sent to its client: %v", r.follower.id, err)
		}
		piece := &wire.ResultPiece{Kind: k.Kind}
		switch {
		case e.Collected != nil && k.schema != nil:
			piece.Rows = e.Collected.Rows
		case e.Output != nil && k.schema == nil:
			piece.Text = e.Output.Text
		default:
			return wire.Error(codes.DataLoss, "event %d of job %s has changed since it was written", at.number, r.follower.id)
		}
		if err := send(piece); err != nil {
			return err
		}
	}
	return nil
}
