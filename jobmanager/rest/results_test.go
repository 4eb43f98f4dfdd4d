package rest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/wire"
)

type resultRow struct {
	N    int64
	Text string
}

func TestResults(t *testing.T) {
	f := newFake(t)
	f.results = nil
	s := serve(t, f, nil)
	doc := described(t, s)
	const list, one = "/api/v1/jobs/{id}/results", "/api/v1/jobs/{id}/results/{name}"
	ask := func(route, path string, headers ...string) reply {
		t.Helper()
		got := s.ask("GET /api/v1/jobs/"+path, "", headers...)
		require.NoError(t, conforms(doc, "GET", route, got))
		return got
	}
	require.Equal(t, http.StatusConflict, ask(list, "run/results").code, "a running job must not have results yet")
	require.Equal(t, http.StatusNotFound, ask(list, "nope/results").code)
	require.Equal(t, http.StatusUnauthorized, ask(list, "run/results", "Authorization: ").code)
	require.Equal(t, http.StatusUnauthorized, ask(one, "run/results/a", "Authorization: ").code)

	f.results = &wire.ResultsReply{Job: "run-1", Results: []wire.ResultInfo{{Name: "a/b", Kind: wire.ResultRows, Rows: 3}, {Name: "printed", Kind: wire.ResultText, Rows: 1}}}
	require.Equal(t, `[{"name":"a/b","kind":"rows","rows":3},{"name":"printed","kind":"text","rows":1}]`+"\n", ask(list, "run/results").body)

	head, two, third := batchtest.Stream[resultRow](t), batchtest.Stream[resultRow](t, resultRow{1, "x,y"}, resultRow{2, ""}), batchtest.Stream[resultRow](t, resultRow{3, "z"})
	f.result = func(_ context.Context, req *wire.ResultRequest, send func(*wire.ResultPiece) error) error {
		switch req.Name {
		case "a/b":
			for _, rows := range [][]byte{head, two, third} {
				if err := send(&wire.ResultPiece{Kind: wire.ResultRows, Rows: rows}); err != nil {
					return err
				}
			}
			return nil
		case "zero":
			return send(&wire.ResultPiece{Kind: wire.ResultRows, Rows: batchtest.Stream(t, resultRow{1, "a\x00b"})})
		case "printed":
			return send(&wire.ResultPiece{Kind: wire.ResultText, Text: []byte("hello\n")})
		case "lost":
			return wire.Error(codes.DataLoss, "2 of 4 events are there")
		}
		return wire.Error(codes.NotFound, "job run-1 has no result %q", req.Name)
	}
	const csv = "n,text\n1,\"x,y\"\n2,\"\"\n3,z\n"
	for _, c := range []struct{ query, accept, media string }{
		{"", "", mediaCSV}, {"", "*/*", mediaCSV}, {"?format=csv", "", mediaCSV}, {"", "text/plain, text/csv;q=0.5", mediaCSV},
		{"?format=arrow", "text/csv", mediaArrow}, {"", mediaArrow, mediaArrow}, {"", "text/csv;q=0.1, " + mediaArrow, mediaArrow},
	} {
		got := ask(one, "run/results/a%2Fb"+c.query, "Accept: "+c.accept)
		require.Equal(t, http.StatusOK, got.code, got.body)
		require.Equal(t, c.media, got.header.Get("Content-Type"), c)
		if c.media == mediaCSV {
			require.Equal(t, csv, got.body)
			continue
		}
		in, err := batch.NewStreamReader(strings.NewReader(got.body), memory.NewGoAllocator())
		require.NoError(t, err)
		n := int64(0)
		for {
			rec, err := in.Read()
			if err != nil {
				require.Equal(t, io.EOF, err)
				break
			}
			n += rec.NumRows()
			rec.Release()
		}
		require.EqualValues(t, 3, n)
		in.Release()
	}
	got := ask(one, "run/results/printed")
	require.Equal(t, "hello\n", got.body)
	require.Equal(t, mediaText, got.header.Get("Content-Type"))
	for path, code := range map[string]int{
		"run/results/a%2Fb?format=text": http.StatusNotAcceptable, "run/results/printed?format=csv": http.StatusNotAcceptable,
		"run/results/zero":               http.StatusNotAcceptable, // ReadCSV could not read its rows
		"run/results/printed?format=xml": http.StatusBadRequest, "run/results/x": http.StatusNotFound, "run/results/lost": http.StatusGone,
	} {
		got := ask(one, path)
		require.Equal(t, code, got.code, path)
		got.problem(t)
	}
	require.Equal(t, http.StatusNotAcceptable, ask(one, "run/results/printed", "Accept: application/json").code)
	require.Equal(t, http.StatusOK, ask(one, "run/results/zero?format=arrow").code)
}

// TestResultThatBreaksOff requires that a client can distinguish an incomplete result from a
// complete one.
func TestResultThatBreaksOff(t *testing.T) {
	f := newFake(t)
	f.result = func(_ context.Context, _ *wire.ResultRequest, send func(*wire.ResultPiece) error) error {
		if err := send(&wire.ResultPiece{Kind: wire.ResultText, Text: []byte("half")}); err != nil {
			return err
		}
		return wire.Error(codes.DataLoss, "the rest is lost")
	}
	s := serve(t, f, nil)
	r, err := s.get(client(t), "/api/v1/jobs/run/results/printed")
	require.NoError(t, err)
	defer r.Body.Close()
	_, err = io.ReadAll(r.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
