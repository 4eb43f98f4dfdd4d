package simulate

// handle processes an event.
func (m *machine) handle(e *event) {
	h := &m.halves[e.half]
	switch e.order >> kindShift {
	case evDone:
		m.credit(h, e.time)
		m.done(e.half, e.time)
	case evSent:
		m.depart(e.half, e.time)
	case evUp:
		c := &m.transfers[e.transfer]
		begin := m.pass(&m.up[m.rack[m.host[h.rank]]], c, e.time, m.uplink, 1)
		m.travel(evDown, e.half, e.transfer, begin, m.latency(e.half))
	case evDown:
		c := &m.transfers[e.transfer]
		begin := m.pass(&m.down[m.rack[m.host[m.receiver(h)]]], c, e.time, m.uplink, 1)
		m.travel(evIn, e.half, e.transfer, begin, 0)
	case evIn:
		c, to := &m.transfers[e.transfer], m.receiver(h)
		begin := m.pass(&m.in[m.host[to]], c, e.time, m.net.Rack.Bandwidth, m.slowFactor[to])
		m.deliver(h.peer, e.transfer, begin, c.tail)
	case evDelivered:
		if h.arrived++; h.state == waitData {
			h.chain = m.transfers[e.transfer].chain
			h.woken = true
			m.begin(e.half, e.time)
		}
		m.unused = append(m.unused, e.transfer)
	case evCredit:
		c := &m.transfers[e.transfer]
		h.inTransit -= c.bytes
		switch h.state {
		case waitAck:
			h.chain = c.chain
			m.done(e.half, e.time)
		case waitWindow:
			h.chain = c.chain
			m.begin(e.half, e.time)
		}
		m.unused = append(m.unused, e.transfer)
	}
}

// receiver returns the rank to which a sending half sends.
func (m *machine) receiver(h *half) int32 { return m.halves[h.peer].rank }

// depart sends a segment to its next stage after the sender's core has processed it.
func (m *machine) depart(id int32, t float64) {
	h := &m.halves[id]
	bytes := m.segmentBytes(h, &h.shape.steps[h.step])
	transfer := m.load(bytes, &h.chain)
	c := &m.transfers[transfer]
	c.tail = t
	c.chain.Messages++
	host := m.host[h.rank]
	switch h.class {
	case onHost:
		begin := m.pass(&m.memory[host], c, t, m.net.Host.Bandwidth, 1)
		delay := m.latency(id)
		c.chain.Wire += c.tail - begin
		c.chain.Latency += delay
		m.events.push(event{m.inOrder(h, c.tail+delay, &c.chain), evDelivered<<kindShift | m.halves[h.peer].order, h.peer, transfer})
	case inRack:
		begin := m.pass(&m.out[host], c, t, m.net.Rack.Bandwidth, m.slowFactor[h.rank])
		m.travel(evIn, id, transfer, begin, m.latency(id))
	default:
		begin := m.pass(&m.out[host], c, t, m.net.Rack.Bandwidth, m.slowFactor[h.rank])
		m.travel(evUp, id, transfer, begin, 0)
	}
	if m.window == 0 {
		h.state = waitAck
		return
	}
	m.done(id, t)
}

// pass sends segment c, whose head arrives at time t, through server s. It returns the time at
// which the head leaves the server. The tail leaves when the server has done its work, but not
// before the tail has arrived.
func (m *machine) pass(s *server, c *transfer, t, bandwidth, slow float64) float64 {
	work := 0.0
	if bandwidth > 0 {
		work = float64(c.bytes) / bandwidth * slow
	}
	begin := s.serve(t, work)
	c.chain.Queue += begin - t
	c.tail = max(c.tail, begin+work)
	return begin
}

// travel schedules the arrival of the head of a segment at the next stage, after a delay.
func (m *machine) travel(kind uint64, id, transfer int32, t, delay float64) {
	h, c := &m.halves[id], &m.transfers[transfer]
	c.chain.Latency += delay
	c.tail += delay
	arrival := t + delay
	if delay > 0 {
		arrival = m.inOrder(h, arrival, &c.chain)
	}
	owner := h
	if kind != evUp {
		owner = &m.halves[h.peer]
	}
	m.events.push(event{arrival, kind<<kindShift | owner.order, id, transfer})
}

// inOrder returns the later of arrival and the arrival of the previous segment on the channel,
// since jitter must not let segments overtake each other.
func (m *machine) inOrder(h *half, arrival float64, chain *Chain) float64 {
	if arrival < h.head {
		chain.Queue += h.head - arrival
		arrival = h.head
	}
	h.head = arrival
	return arrival
}

// deliver schedules the delivery of a segment to the receiving half to, at the time when the
// tail of the segment arrives.
func (m *machine) deliver(to, transfer int32, begin, tail float64) {
	m.transfers[transfer].chain.Wire += tail - begin
	m.events.push(event{tail, evDelivered<<kindShift | m.halves[to].order, to, transfer})
}

// latency returns the latency, with jitter, of the next segment of sending half id.
func (m *machine) latency(id int32) float64 {
	h := &m.halves[id]
	delay := m.linkLatency(h)
	return delay * m.jitter(id, h)
}

func (m *machine) linkLatency(h *half) float64 {
	switch h.class {
	case onHost:
		return m.net.Host.Latency
	case inRack:
		return m.net.Rack.Latency
	default:
		return m.net.Spine.Latency
	}
}

// credit acknowledges a received segment to its sender. The acknowledgement takes the latency
// of the link.
func (m *machine) credit(h *half, t float64) {
	if h.peer < 0 || !m.halves[h.peer].track {
		return
	}
	st := &h.shape.steps[h.step]
	if !st.op.Receives() {
		return
	}
	to := &m.halves[h.peer]
	transfer := m.load(m.segmentBytes(h, st), &h.chain)
	delay := m.linkLatency(to)
	m.transfers[transfer].chain.Latency += delay
	m.events.push(event{t + delay, evCredit<<kindShift | to.order, h.peer, transfer})
}

// load initialises an unused transfer for a segment of the given number of bytes, and returns
// its index.
func (m *machine) load(bytes int64, chain *Chain) int32 {
	var id int32
	if n := len(m.unused); n > 0 {
		id, m.unused = m.unused[n-1], m.unused[:n-1]
	} else {
		id = int32(len(m.transfers))
		m.transfers = append(m.transfers, transfer{})
	}
	m.transfers[id] = transfer{bytes: bytes, chain: *chain}
	return id
}
