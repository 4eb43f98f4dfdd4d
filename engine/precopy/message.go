package precopy

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/shared"
)

// Process is a process of the attempt.
type Process struct {
	Worker  int    `msgpack:"worker"`
	Address string `msgpack:"address"` // of its port
}

// Take says which shards of a queue are taken from a worker.
type Take struct {
	Queue  string  `msgpack:"queue"`
	From   Process `msgpack:"from"`
	Shards []int   `msgpack:"shards"`
}

// Order says what a process takes, and within which time. It drops what earlier orders have made it take and this
// one does not name.
type Order struct {
	To     Process       `msgpack:"-"`
	Within time.Duration `msgpack:"within"`
	Takes  []Take        `msgpack:"takes"`
}

// Outcome says what a process has taken because of an order.
type Outcome struct {
	Shards int   `msgpack:"shards"` // that it has now, of those of the order
	Bytes  int64 `msgpack:"bytes"`  // that were copied
	Left   int   `msgpack:"left"`   // shards that it does not have
	// Because says why it does not have one of them; "" if it has all.
	Because string `msgpack:"because"`
}

// want asks for a shard of a queue. The connection need not live longer than Within.
type want struct {
	Queue  string        `msgpack:"queue"`
	Shard  int           `msgpack:"shard"`
	Within time.Duration `msgpack:"within"`
}

// offer says how large the rows of a shard are.
type offer struct {
	Ports []portSize `msgpack:"ports"`
}

type portSize struct {
	Port  int   `msgpack:"port"`
	Rows  int64 `msgpack:"rows"`
	Bytes int64 `msgpack:"bytes"`
}

// The codecs check every length that they read.
var (
	orders   = shared.Msgpack[Order]()
	outcomes = shared.Msgpack[Outcome]()
	wants    = shared.Msgpack[want]()
	offers   = shared.Msgpack[offer]()
)

const (
	// MaxWithin limits the time of an order.
	MaxWithin = time.Hour
	// maxBytes limits the size of the rows of a shard.
	maxBytes = 1 << 40
	// maxReason limits the text of a failure.
	maxReason = 4 << 10
)

// decodeOrder decodes and checks an order.
func decodeOrder(b []byte) (o Order, err error) {
	if o, err = orders.Decode(b); err != nil {
		return o, peerlink.Violation("an order: %w", err)
	}
	if o.Within <= 0 || o.Within > MaxWithin {
		return o, peerlink.Violation("an order to be done within %v", o.Within)
	}
	for _, t := range o.Takes {
		for i, shard := range t.Shards {
			if shard < 0 || i > 0 && shard <= t.Shards[i-1] {
				return o, peerlink.Violation("an order for shard %d of queue %q after another one", shard, t.Queue)
			}
		}
		if t.From.Worker < 0 {
			return o, peerlink.Violation("an order for shards of worker %d", t.From.Worker)
		}
	}
	return o, nil
}

// decodeWant decodes and checks a request for a shard.
func decodeWant(b []byte) (w want, err error) {
	if w, err = wants.Decode(b); err != nil {
		return w, peerlink.Violation("a request for a shard: %w", err)
	}
	if w.Shard < 0 || w.Within <= 0 || w.Within > MaxWithin {
		return w, peerlink.Violation("a request for shard %d of queue %q within %v", w.Shard, w.Queue, w.Within)
	}
	return w, nil
}

// decodeOffer decodes and checks an offer, and returns its bytes.
func decodeOffer(b []byte) (o offer, bytes int64, err error) {
	if o, err = offers.Decode(b); err != nil {
		return o, 0, peerlink.Violation("an offer: %w", err)
	}
	for i, p := range o.Ports {
		if p.Port < 0 || i > 0 && p.Port <= o.Ports[i-1].Port || p.Rows < 0 || p.Bytes < 0 || p.Bytes > maxBytes-bytes {
			return o, 0, peerlink.Violation("an offer of %d rows with %d bytes of input %d", p.Rows, p.Bytes, p.Port)
		}
		bytes += p.Bytes
	}
	return o, bytes, nil
}

// decodeOutcome decodes and checks an outcome.
func decodeOutcome(b []byte) (o Outcome, err error) {
	if o, err = outcomes.Decode(b); err != nil {
		return o, peerlink.Violation("an outcome: %w", err)
	}
	if o.Shards < 0 || o.Left < 0 || o.Bytes < 0 {
		return o, peerlink.Violation("an outcome of %d shards with %d bytes, and %d left", o.Shards, o.Bytes, o.Left)
	}
	o.Because = clip(o.Because)
	return o, nil
}

// clip limits the length of a text.
func clip(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return fmt.Sprintf("%s…", text[:maxReason])
}

// offerOf returns the offer of rows of the given sizes.
func offerOf(sizes []task.PortSize) (o offer) {
	for _, s := range sizes {
		o.Ports = append(o.Ports, portSize(s))
	}
	return o
}
