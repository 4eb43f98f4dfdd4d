package task

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

// resumeSink is a partSink that can be resumed.
type resumeSink struct{ *partSink }

func (s resumeSink) Resume(written [][]byte) error {
	var all []string
	for _, w := range written {
		all = append(all, string(w))
	}
	return s.do("resume " + strings.Join(all, "+"))
}

func (s resumeSink) Settle() error { return s.do("settle") }

// TestResumption resumes sinks in node order with what all workers wrote to each, and
// settles those that it has resumed.
func TestResumption(t *testing.T) {
	outcome := func(c, d string) []byte {
		data, err := (&outcome{Written: []written{{Node: 1, Data: []byte(c)}, {Node: 2, Data: []byte(d)}}}).encode()
		require.NoError(t, err)
		return data
	}
	outcomes := [][]byte{outcome("c0", "d0"), outcome("c1", "d1")}
	g := parseGraph(8, "a = source rows=400\nc = tap a\nd = tap a")
	p, err := plan.Compile(g.Graph, 2)
	require.NoError(t, err)
	make := func(c, d Sink) *Resumption {
		s := &sinks{all: []boundSink{{Sink: c, node: &p.Nodes[1]}, {Sink: d, node: &p.Nodes[2]}}}
		return &Resumption{plan: p, sinks: s}
	}
	c, d := &partSink{}, &partSink{}
	r := make(resumeSink{c}, resumeSink{d})
	require.NoError(t, r.Commit(outcomes))
	r.Close()
	require.Equal(t, []string{"resume c0+c1", "settle"}, c.events)
	require.Equal(t, []string{"resume d0+d1", "settle"}, d.events)

	c, d = &partSink{}, &partSink{fail: "resume"}
	r = make(resumeSink{c}, resumeSink{d})
	require.ErrorContains(t, r.Commit(outcomes), "finish the commit: boom")
	r.Close()
	require.Equal(t, []string{"resume c0+c1", "settle"}, c.events)
	require.Equal(t, []string{"resume d0+d1"}, d.events)

	require.ErrorContains(t, make(c, d).Commit(outcomes), "cannot commit twice")
	require.ErrorContains(t, make(c, d).Commit(nil), "without an outcome")
	require.ErrorContains(t, make(c, d).Commit([][]byte{{1}}), "the outcome of worker 0")
	_, err = NewResumption(nil, Bindings{}, nil)
	require.ErrorContains(t, err, "no plan")
}
