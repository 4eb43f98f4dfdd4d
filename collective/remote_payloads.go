package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/collective/program"
)

// gatherRemotely is gatherBytes in a group of several processes. The ranks of a process meet,
// and the last rank to arrive puts their payloads into one packet. Two AllGathers among the
// processes exchange the packets, for any number of ranks. The first sends the heads of
// packets; the head of a small packet holds the whole packet. The second sends the rest of
// larger packets. Fewer messages are sent than if every rank sent its payload to every other
// rank.
//
// All ranks of a process share the returned parts and only read them.
func gatherRemotely(c *Comm, mine []byte, shards int, o Option) ([][]byte, error) {
	if err := c.begin(o.ctx); err != nil {
		return nil, err
	}
	g := c.group
	start := g.now()
	s := &g.slots[c.index]
	s.header = header{kind: callObjects, seq: c.seq, name: o.name, shards: shards}
	s.payload = mine
	err := c.meet(o.ctx, c.leadAs(leadPayloads, o.ctx))
	s.payload = nil
	if err != nil {
		return nil, err
	}
	// No rank writes payloads before this rank arrives at the next meeting.
	parts, bytes := g.net.payloads, int64(0)
	if c.index == 0 {
		bytes = g.agreed.bytes // bytes of the whole process, counted by its first rank
	}
	c.algorithm = g.agreed.algorithm
	c.account(bytes, g.now()-start)
	return parts, nil
}

// headBytes is the size of the head of a packet. The head has the length of the packet in 8
// bytes, and then the bytes of the packet, up to the size of the head.
const headBytes = 512

// exchangePayloads exchanges the payloads of all ranks between the processes. The caller leads
// a meeting.
func (c *Comm) exchangePayloads(ctx context.Context) error {
	g := c.group
	packet := []byte{}
	for i := range g.slots {
		payload := g.slots[i].payload
		packet = binary.AppendUvarint(packet, uint64(len(payload)))
		packet = append(packet, payload...)
	}
	g.agreed = agreement{}
	packets, err := c.exchangePackets(ctx, packet)
	if err != nil {
		return err
	}
	n := g.net
	n.payloads = make([][]byte, n.size)
	for h, p := range packets {
		if err := openPacket(p, n.hosts[h], n.payloads); err != nil {
			return fmt.Errorf("what the process of rank %d sent to %s: %w", n.hosts[h][0], g.slots[c.index].header.describe(), err)
		}
	}
	return nil
}

// exchangePackets gathers the packets of all processes on every process.
func (c *Comm) exchangePackets(ctx context.Context, packet []byte) ([][]byte, error) {
	n := c.group.net
	size := len(n.hosts)
	heads := make([]byte, size*headBytes)
	mine := heads[n.process*headBytes:][:headBytes]
	binary.LittleEndian.PutUint64(mine, uint64(len(packet)))
	rest := packet[copy(mine[8:], packet):]
	if err := c.gatherAmongProcesses(ctx, heads, mine, nil); err != nil {
		return nil, err
	}
	packets, counts, total := make([][]byte, size), make([]int, size), 0
	for h := range packets {
		head := heads[h*headBytes:][:headBytes]
		length := binary.LittleEndian.Uint64(head)
		if length > maxGathered || total+int(length) > maxGathered {
			return nil, fmt.Errorf("ranks bring more than %d MiB to %s in all", maxGathered>>20, c.group.slots[c.index].header.describe())
		}
		total += int(length)
		here := min(int(length), headBytes-8)
		packets[h], counts[h] = head[8:8+here:8+here], int(length)-here
	}
	left := 0
	for _, n := range counts {
		left += n
	}
	if left == 0 {
		return packets, nil
	}
	all := make([]byte, left)
	if err := c.gatherAmongProcesses(ctx, all, rest, counts); err != nil {
		return nil, err
	}
	for h, k := range counts {
		packets[h] = slices.Concat(packets[h], all[:k])
		all = all[k:]
	}
	return packets, nil
}

// gatherAmongProcesses is an AllGather of bytes with processes in place of ranks. counts[p] is
// the number of bytes of process p. If counts is nil, all processes have the same number of
// bytes.
func (c *Comm) gatherAmongProcesses(ctx context.Context, all, mine []byte, counts []int) error {
	return c.runAmongProcesses(ctx, request{coll: program.AllGather, elem: 1, n: len(all), counts: counts, out: all}, mine)
}

// openPacket reads the payloads of the given ranks, which are consecutive in packet, and stores
// them in payloads by rank.
func openPacket(packet []byte, ranks []int, payloads [][]byte) error {
	for _, r := range ranks {
		length, k := binary.Uvarint(packet)
		if k <= 0 || length > uint64(len(packet)-k) {
			return fmt.Errorf("it ends within the payload of rank %d", r)
		}
		payloads[r] = packet[k : k+int(length) : k+int(length)]
		packet = packet[k+int(length):]
	}
	if len(packet) > 0 {
		return errors.New("something follows the last payload")
	}
	return nil
}
