package rest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/textfile"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Formats of a result.
const (
	formCSV   = "csv"
	formArrow = "arrow"
	formText  = "text"
)

// resultMedia has the media types of the formats.
var resultMedia = map[string]string{formCSV: mediaCSV, formArrow: mediaArrow, formText: mediaText}

func resultForms() []string { return []string{formCSV, formArrow, formText} }

// results lists the results of a job.
func (s *Server) results(w http.ResponseWriter, r *http.Request) error {
	reply, err := s.config.Manager.Results(r.Context(), &wire.ResultsRequest{Job: wire.JobID(r.PathValue("id"))})
	if err != nil {
		return lostResult(err)
	}
	all := make([]Result, len(reply.Results))
	for i, k := range reply.Results {
		all[i] = Result{Name: k.Name, Kind: k.Kind, Rows: k.Rows}
	}
	return s.sendJSON(w, http.StatusOK, all)
}

// lostResult returns err. If err means that the result is not stored any more, the returned
// error has the status Gone.
func lostResult(err error) error {
	if wire.Code(err) != codes.DataLoss {
		return err
	}
	return &problem{code: http.StatusGone, text: wire.Reason(err), hint: "run the job again"}
}

// result reads one result piece by piece and sends it as a stream. If it cannot send the whole
// result, it aborts the connection, so that no client takes a part of a result for the whole.
func (s *Server) result(w http.ResponseWriter, r *http.Request) error {
	forms, err := askedForms(r)
	if err != nil {
		return err
	}
	t, err := s.newStream(w, r, "", "")
	if err != nil {
		return err
	}
	err = func() error {
		defer t.end()
		pieces, stop := iter.Pull2(s.pieces(t.ctx, &wire.ResultRequest{Job: wire.JobID(r.PathValue("id")), Name: r.PathValue("name")}))
		defer stop()
		return t.result(forms, func() (*wire.ResultPiece, error) {
			p, err, more := pieces()
			if !more {
				return nil, io.EOF
			}
			return p, err
		})
	}()
	switch {
	case err == nil || t.gone(r):
		return nil
	case t.started():
		panic(http.ErrAbortHandler)
	}
	return s.interrupted(lostResult(err))
}

// pieces iterates over the pieces of a result.
func (s *Server) pieces(ctx context.Context, req *wire.ResultRequest) iter.Seq2[*wire.ResultPiece, error] {
	return func(yield func(*wire.ResultPiece, error) bool) {
		left := false
		err := s.config.Manager.ReadResult(ctx, req, func(p *wire.ResultPiece) error {
			if left = !yield(p, nil); left {
				return context.Canceled
			}
			return nil
		})
		if err != nil && !left {
			yield(nil, err)
		}
	}
}

// result writes the pieces of a result, in the first format in forms in which this result can
// be written.
func (t *stream) result(forms []string, next func() (*wire.ResultPiece, error)) error {
	first, err := next()
	if err == io.EOF {
		return &problem{code: http.StatusInternalServerError, text: "the result has no pieces"}
	}
	if err != nil {
		return err
	}
	suits, unsuited := []string{formCSV, formArrow}, &problem{code: http.StatusNotAcceptable, text: "the result is rows, and no text that was printed", hint: "ask for them as csv or arrow"}
	text := first.Kind == wire.ResultText
	if text {
		suits, unsuited = []string{formText}, &problem{code: http.StatusNotAcceptable, text: "the result is text that was printed, and no rows", hint: "ask for it as text"}
	}
	at := slices.IndexFunc(forms, func(form string) bool { return form == "" || slices.Contains(suits, form) })
	if at < 0 {
		return unsuited
	}
	form := cmp.Or(forms[at], suits[0])
	t.media = resultMedia[form]
	again := func() (*wire.ResultPiece, error) {
		if p := first; p != nil {
			first = nil
			return p, nil
		}
		return next()
	}
	if text {
		return t.text(again)
	}
	in, err := batch.NewSeriesReader(func() ([]byte, error) {
		p, err := again()
		if err != nil {
			return nil, err
		}
		return p.Rows, nil
	}, memory.NewGoAllocator())
	if err != nil {
		return fmt.Errorf("read the rows of the result: %w", err)
	}
	defer in.Release()
	return t.rows(in, form)
}

// text writes the pieces of printed text.
func (t *stream) text(next func() (*wire.ResultPiece, error)) error {
	for {
		p, err := next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = t.put(p.Text)
		}
		if err != nil {
			return err
		}
	}
}

// rowsWriter writes rows in one of the formats.
type rowsWriter interface {
	Write(arrow.Record) error
	Close() error
}

// putter is an io.Writer that puts what is written to it into a stream as pieces.
type putter struct{ t *stream }

func (p putter) Write(b []byte) (int, error) {
	if err := p.t.put(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// rows writes the rows of a result in the given format.
func (t *stream) rows(in *batch.SeriesReader, form string) error {
	out := bufio.NewWriterSize(putter{t}, 64<<10)
	var w rowsWriter
	if form == formArrow {
		w = batch.NewStreamWriter(out, in.Schema(), memory.NewGoAllocator())
	} else {
		lines := textfile.Form{Delimiter: ','}
		if _, err := out.Write(lines.Header(in.Schema())); err != nil {
			return err
		}
		w = textfile.NewWriter(out, lines)
	}
	for {
		rec, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		err = w.Write(rec)
		rec.Release()
		if zero := new(textfile.ZeroError); errors.As(err, &zero) {
			return &problem{code: http.StatusNotAcceptable, text: zero.Error(), hint: "ask for it as arrow"}
		}
		if err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// askedForms returns the formats that a request accepts, in the order of preference. "" stands
// for the default format of the result.
func askedForms(r *http.Request) (forms []string, err error) {
	if form := r.URL.Query().Get("format"); form != "" {
		return []string{form}, nil
	}
	asked := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(asked) == "" {
		return []string{""}, nil
	}
	quality := map[string]float64{}
	take := func(form string, q float64) {
		if q > 0 && !slices.Contains(forms, form) {
			forms, quality[form] = append(forms, form), q
		}
	}
	for part := range strings.SplitSeq(asked, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if given, err := strconv.ParseFloat(params["q"], 64); err == nil {
			q = given
		}
		if media == "*/*" || media == "text/*" {
			take("", q)
		}
		for _, form := range resultForms() {
			if known, _, _ := strings.Cut(resultMedia[form], ";"); known == media {
				take(form, q)
			}
		}
	}
	if len(forms) == 0 {
		return nil, &problem{code: http.StatusNotAcceptable, text: fmt.Sprintf("a result cannot be sent as %s", clip(asked)),
			hint: "accept text/csv, " + mediaArrow + " or text/plain, or say ?format=csv, arrow or text"}
	}
	slices.SortStableFunc(forms, func(a, b string) int { return cmp.Compare(quality[b], quality[a]) })
	return forms, nil
}
