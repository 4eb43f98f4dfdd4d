package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/cmd/internal/builtin"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/textfile"
	"github.com/superstep-ml/superstep/internal/wire"
)

// resultsCommand prints or writes the results of a job.
type resultsCommand struct {
	clusterFlags
	Job      string `arg:"" help:"ID of the job, or the start of it if no other job has the same."`
	Name     string `arg:"" optional:"" help:"Name of the result (default: the only one; several are listed)."`
	Output   string `placeholder:"FILE" help:"File to write the result to: rows as CSV, or by its ending as .tsv, .arrow or .parquet; printed text as it is (default: standard output, rows as CSV)."`
	IfExists string `enum:"fail,replace" default:"fail" placeholder:"WHAT" help:"What to do if the file exists: fail (the default) or replace."`
}

// Run prints or writes one result. If the job has several results and no result is named, Run
// lists the results.
func (c *resultsCommand) Run(ctx context.Context, s *Streams) error {
	return c.with(ctx, s, func(ctx context.Context, jm jobManager) error {
		name := c.Name
		if name == "" {
			reply, err := jm.Results(ctx, &wire.ResultsRequest{Job: wire.JobID(c.Job)})
			switch {
			case err != nil:
				return err
			case len(reply.Results) == 0:
				return fmt.Errorf("job %s has no results: it collects and prints nothing", reply.Job)
			case len(reply.Results) > 1 && c.Output != "":
				return UsageError{fmt.Errorf("job %s has %d results: give the name of one; without --output they are listed", reply.Job, len(reply.Results))}
			case len(reply.Results) > 1:
				return writeResults(s.Out, reply.Results)
			}
			name = reply.Results[0].Name
		}
		return c.fetch(ctx, s, jm, name)
	})
}

// writeResults prints results as a table.
func writeResults(w io.Writer, results []wire.ResultInfo) error {
	t := table{head: []string{"name", "kind", "rows"}}
	for _, r := range results {
		t.row(r.Name, r.Kind, strconv.FormatInt(r.Rows, 10))
	}
	return t.write(w)
}

// fetch reads the result with the given name and writes it to c.Output, or to standard output.
func (c *resultsCommand) fetch(ctx context.Context, s *Streams, jm jobManager, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := jm.Result(ctx, &wire.ResultRequest{Job: wire.JobID(c.Job), Name: name})
	if err != nil {
		return err
	}
	in := &resultPieces{stream: stream}
	if in.first, err = stream.Recv(); err != nil {
		return err
	}
	aside := c.Output != "" && c.Output != "-"
	if in.first.Kind == wire.ResultText {
		if aside {
			return builtin.WriteNew(c.Output, c.IfExists == "replace", in)
		}
		return quietWrites(s.Out, func(w io.Writer) error {
			_, err := in.WriteTo(w)
			return err
		})
	}
	rows, err := batch.NewSeriesReader(in.rows, memory.NewGoAllocator())
	if err != nil {
		return err
	}
	defer rows.Release()
	if aside {
		return c.write(ctx, rows)
	}
	return quietWrites(s.Out, func(w io.Writer) error { return writeLines(w, rows) })
}

// resultPieces reads the pieces of one result from a job manager.
type resultPieces struct {
	stream grpc.ServerStreamingClient[wire.ResultPiece]
	first  *wire.ResultPiece // the first piece; nil once next has returned it
}

func (r *resultPieces) next() (*wire.ResultPiece, error) {
	if p := r.first; p != nil {
		r.first = nil
		return p, nil
	}
	return r.stream.Recv()
}

// rows returns the rows of the next piece as an Arrow IPC stream.
func (r *resultPieces) rows() ([]byte, error) {
	p, err := r.next()
	if err != nil {
		return nil, err
	}
	return p.Rows, nil
}

// WriteTo writes the text of all pieces to w. The job has printed this text.
func (r *resultPieces) WriteTo(w io.Writer) (written int64, err error) {
	for {
		p, err := r.next()
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(p.Text)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// watchedWriter records the errors of Write in err.
type watchedWriter struct {
	io.Writer
	err error
}

func (w *watchedWriter) Write(b []byte) (n int, err error) {
	n, err = w.Writer.Write(b)
	w.err = errors.Join(w.err, err)
	return n, err
}

// quietWrites calls write with a writer to a stream of the process. If writing to the stream
// failed, the error is a QuietError: usually a program such as head has closed the pipe, and
// the user need not see an error.
func quietWrites(to io.Writer, write func(io.Writer) error) error {
	w := &watchedWriter{Writer: to}
	err := write(w)
	if w.err != nil {
		return QuietError{err}
	}
	return err
}

// writeLines writes rows to w as CSV with a header.
func writeLines(w io.Writer, rows *batch.SeriesReader) error {
	form := textfile.Form{Delimiter: ','}
	if _, err := w.Write(form.Header(rows.Schema())); err != nil {
		return err
	}
	lines := textfile.NewWriter(w, form)
	for {
		rec, err := rows.Read()
		if err == io.EOF {
			return lines.Close()
		}
		if err != nil {
			return err
		}
		err = lines.Write(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
}

// write writes rows to the file c.Output by running a job in this process. The sink of the job
// chooses the format by the ending of the path, and the file appears only when it is complete.
func (c *resultsCommand) write(ctx context.Context, rows *batch.SeriesReader) error {
	job := engine.Define("results", func(b *engine.Builder, _ struct{}) error {
		builtin.WriteRows(b.Add(engine.Spec{Op: "ReadResult", Schema: arrowrows.Schema(rows.Schema()), Source: func() engine.Source { return &resultSource{rows} }}), c.Output)
		return nil
	})
	existing := engine.Fail
	if c.IfExists == "replace" {
		existing = engine.Replace
	}
	_, err := engine.Run(ctx, job, struct{}{}, engine.Local(), engine.Shards(1), engine.Parallelism(1), engine.IfExists(existing))
	return err
}

// resultSource is a source with one shard, which has the rows of a result.
type resultSource struct{ rows *batch.SeriesReader }

func (*resultSource) Open(*engine.Context) error { return nil }
func (*resultSource) Close() error               { return nil }

// ReadShard emits all rows of the result.
func (s *resultSource) ReadShard(_ *engine.Context, shard int, out engine.Output) error {
	for {
		rec, err := s.rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = out.Emit(shard, arrowrows.Batch(rec))
		rec.Release()
		if err != nil {
			return err
		}
	}
}
