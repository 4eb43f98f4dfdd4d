//go:build unix

package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestOutbox runs the scripts in testdata/outbox and compares what each command prints.
func TestOutbox(t *testing.T) {
	datadriven.Walk(t, "testdata/outbox", func(t *testing.T, path string) {
		o := NewOutbox()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			worker := wire.WorkerRef{Job: "j", Attempt: 1}
			if d.HasArg("worker") {
				d.ScanArgs(t, "worker", &worker.Worker)
			}
			rows := int64(0)
			if d.HasArg("rows") {
				d.ScanArgs(t, "rows", &rows)
			}
			switch d.Cmd {
			case "deployed":
				o.Deployed(worker)
			case "ready":
				o.Put(wire.WorkerEvent{WorkerRef: worker, Ready: &wire.Ready{}})
			case "progress":
				o.Put(wire.WorkerEvent{WorkerRef: worker, Progress: &wire.Progress{Vertices: []wire.VertexProgress{{Rows: rows}}}})
			case "checkpointed":
				o.Put(wire.WorkerEvent{WorkerRef: worker, Checkpointed: &wire.Checkpointed{Written: int(rows)}})
			case "finished":
				o.Put(wire.WorkerEvent{WorkerRef: worker, Finished: &wire.Finished{}})
			case "failed":
				o.Put(wire.WorkerEvent{WorkerRef: worker, Failed: &wire.Failure{}})
			case "ended":
				o.Put(wire.WorkerEvent{WorkerRef: worker, Ended: &wire.Ended{}})
			case "beat":
				o.Beat()
			case "announce":
				o.Announce(func() *wire.Leaving { return &wire.Leaving{Reason: "its machine is taken away"} })
			case "announcement":
				if l := o.Announcement(); l != nil {
					return l.Reason + "\n"
				}
			case "empty":
				return fmt.Sprintln(o.Empty())
			case "farewell":
				o.RequestLeave("bye")
			case "acknowledged":
				var n uint64
				d.ScanArgs(t, "number", &n)
				o.Acknowledged(n)
			case "forget":
				o.Forget()
			case "repeat":
				o.Repeat()
			case "reconnect":
				return "running " + printRefs(o.Reconnect()) + "\n"
			case "tell":
				return printTold(o)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return ""
		})
	})
}

func printRefs(refs []wire.WorkerRef) string {
	names := []string{}
	for _, r := range refs {
		names = append(names, r.String())
	}
	return "[" + strings.Join(names, " ") + "]"
}

// printTold removes all messages from the outbox and returns them as text.
func printTold(o *Outbox) string {
	var out strings.Builder
	for m := o.Pop(); m != nil; m = o.Pop() {
		switch {
		case m.Heartbeat != nil:
			fmt.Fprintf(&out, "heartbeat %d %s\n", m.Heartbeat.Number, printRefs(m.Heartbeat.Running))
		case m.Leaving != nil:
			fmt.Fprintf(&out, "leaving, as %s\n", m.Leaving.Reason)
		case m.Leave != nil:
			fmt.Fprintf(&out, "leave %s\n", m.Leave.Reason)
		case m.Worker.Ready != nil:
			fmt.Fprintf(&out, "%s ready\n", m.Worker.WorkerRef)
		case m.Worker.Progress != nil:
			fmt.Fprintf(&out, "%s progress %d\n", m.Worker.WorkerRef, m.Worker.Progress.Vertices[0].Rows)
		case m.Worker.Checkpointed != nil:
			fmt.Fprintf(&out, "%s checkpointed %d\n", m.Worker.WorkerRef, m.Worker.Checkpointed.Written)
		case m.Worker.Finished != nil:
			fmt.Fprintf(&out, "%s finished\n", m.Worker.WorkerRef)
		case m.Worker.Failed != nil:
			fmt.Fprintf(&out, "%s failed\n", m.Worker.WorkerRef)
		case m.Worker.Ended != nil:
			fmt.Fprintf(&out, "%s ended\n", m.Worker.WorkerRef)
		}
	}
	return out.String()
}

// TestOutboxIsBounded requires that the outbox stays small if the job manager is not connected
// for a long time or acknowledges nothing.
func TestOutboxIsBounded(t *testing.T) {
	o := NewOutbox()
	for i := range 10_000 {
		o.Put(wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: "j", Attempt: 1}, Progress: &wire.Progress{Vertices: make([]wire.VertexProgress, 1)}})
		o.Put(wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: "j", Attempt: 1}, Checkpointed: &wire.Checkpointed{Written: i}})
		o.Beat()
		if i%4 == 0 {
			printTold(o)
		}
	}
	require.Len(t, o.waiting, 2)
	require.Len(t, o.unacknowledged, 1)
	o.Reconnect()
	require.Regexp(t, `checkpointed 9999\n$`, printTold(o))
	require.LessOrEqual(t, len(o.marks), maxBeats)
}
