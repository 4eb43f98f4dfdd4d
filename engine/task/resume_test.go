package task

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
)

// resumeSink is a ResumeSink.
type resumeSink struct{ onlySink }

func (s resumeSink) Resume() error { return s.do("resume") }

// TestResumption requires that a Resumption takes JointSinks through their steps, with the
// descriptions of what all workers wrote, and settles them. If a sink fails, it must take back
// and leave the JointSinks.
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
		s := &sinks{all: []boundSink{bindSink(c, &p.Nodes[1]), bindSink(d, &p.Nodes[2])}}
		return &Resumption{plan: p, sinks: s}
	}
	c, d := &partSink{}, &partSink{}
	r := make(c, d)
	require.NoError(t, r.Commit(outcomes))
	r.Close()
	require.Equal(t, []string{"resume c0+c1", "place", "finish", "settle"}, c.events)
	require.Equal(t, []string{"resume d0+d1", "place", "finish", "settle"}, d.events)

	c, d = &partSink{}, &partSink{fail: "resume"}
	r = make(c, d)
	require.ErrorContains(t, r.Commit(outcomes), "finish the commit: boom")
	r.Close()
	require.Equal(t, []string{"resume c0+c1", "take back", "leave"}, c.events)
	require.Equal(t, []string{"resume d0+d1", "take back", "leave"}, d.events)

	c, d = &partSink{}, &partSink{fail: "resume"}
	r = make(c, resumeSink{onlySink{d}})
	require.ErrorContains(t, r.Commit(outcomes), "finish the commit: boom")
	r.Close()
	require.Equal(t, []string{"resume c0+c1", "place", "take back", "leave"}, c.events)
	require.Equal(t, []string{"resume"}, d.events)

	require.ErrorContains(t, make(c, onlySink{d}).Commit(outcomes), "cannot commit twice")
	require.ErrorContains(t, make(c, d).Commit(nil), "without an outcome")
	require.ErrorContains(t, make(c, d).Commit([][]byte{{1}}), "the outcome of worker 0")
	_, err = NewResumption(nil, Bindings{}, nil)
	require.ErrorContains(t, err, "no plan")
}

// TestSinksTogether requires that the JointSinks of a run go through each of Complete, Decide,
// Place and Finish together. If a step fails, all JointSinks must be taken back and aborted.
func TestSinksTogether(t *testing.T) {
	g := parseGraph(8, "a = source rows=400\nc = tap a\nd = tap a\ne = tap a")
	for _, test := range []struct{ failC, failD, failE, want, visible string }{
		{"", "", "", "c begin, e begin, d begin, c complete 0 parts, d complete 0 parts, c decide, c place, d place, e commit, d finish, c finish, c settle, d settle", ""},
		{"", "complete", "", "c begin, e begin, d begin, c complete 0 parts, d complete 0 parts, c take back, d take back, d abort, e abort, c abort", "none of its outputs is visible"},
		{"decide", "", "", "c begin, e begin, d begin, c complete 0 parts, d complete 0 parts, c decide, c take back, d take back, d abort, e abort, c abort", "none of its outputs is visible"},
		{"", "place", "", "c begin, e begin, d begin, c complete 0 parts, d complete 0 parts, c decide, c place, d place, c take back, d take back, d abort, e abort, c abort", "none of its outputs is visible"},
		{"", "", "commit", "c begin, e begin, d begin, c complete 0 parts, d complete 0 parts, c decide, c place, d place, e commit, c take back, d take back, d abort, e abort, c abort", `of its outputs it is not known whether these are visible: tap "d" (test.txt:3); no other one is`},
		{"take back", "place", "", "c begin, e begin, d begin, c complete 0 parts, d complete 0 parts, c decide, c place, d place, c take back, d take back, d abort, e abort, c abort", `of its outputs it is not known whether these are visible: tap "c" (test.txt:2); no other one is`},
	} {
		var said []string
		sink := func(name, fail string) *partSink { return &partSink{name: name, fail: fail, log: &said} }
		got := g.run(t, context.Background(), 2, Env{}, hooks{sinks: map[string]Sink{
			"c": sink("c", test.failC), "d": onlySink{sink("e", test.failE)}, "e": sink("d", test.failD),
		}})
		if test.failC+test.failD+test.failE == "" {
			require.NoError(t, got.err)
		} else {
			require.ErrorIs(t, got.err, errBoom)
			var failed *CommitError
			require.ErrorAs(t, got.err, &failed)
			require.Equal(t, test.visible, failed.Outputs())
		}
		require.Equal(t, test.want, strings.Join(said, ", "))
	}
}

// heldSink is a HeldSink whose output is invisible.
type heldSink struct{ onlySink }

func (heldSink) Held() bool { return true }

// TestHeldSinks requires that the output of a HeldSink is not reported as visible or unsure if a
// sink fails to commit.
func TestHeldSinks(t *testing.T) {
	g := parseGraph(8, "a = source rows=400\nc = tap a\nd = tap a")
	for _, fail := range [][2]string{{"", "commit"}, {"commit", ""}} {
		got := g.run(t, context.Background(), 2, Env{}, hooks{sinks: map[string]Sink{
			"c": heldSink{onlySink{&partSink{fail: fail[0]}}}, "d": heldSink{onlySink{&partSink{fail: fail[1]}}},
		}})
		var failed *CommitError
		require.ErrorAs(t, got.err, &failed)
		require.Equal(t, "none of its outputs is visible", failed.Outputs())
	}
}
