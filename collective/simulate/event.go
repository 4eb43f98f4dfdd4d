package simulate

// event is something that happens to a half or a segment at a given time.
type event struct {
	time float64
	// order is the order of events with the same time. It is made of the kind, the rank within
	// its host and rack, and the lane. It does not contain the host: simultaneous events of
	// different hosts are independent, and for symmetric ranks the order must be the same.
	order    uint64
	half     int32
	transfer int32
}

// These are the kinds of events. The kind is in the top bits of order, so that events that free
// resources come before events that take resources.
const (
	evCredit    = iota // the acknowledgement of a segment is at the sender
	evDelivered        // a segment has arrived at the receiver
	evIn               // the head of a segment is at the receiver's NIC
	evDown             // the head of a segment is at the downlink of the receiver's rack
	evUp               // the head of a segment is at the uplink of the sender's rack
	evSent             // the sender's core is done with a segment
	evDone             // the receiving half's core is done with a segment
	kindShift   = 60
)

// queue is a heap of events in which each node has four children. It has fewer levels than a
// binary heap, and the four children of a node lie in two cache lines.
type queue []event

func (e *event) before(o *event) bool {
	return e.time < o.time || e.time == o.time && e.order < o.order
}

func (q *queue) push(e event) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	*q = h
}

func (q *queue) pop() event {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return top
}
