package collective

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// packing has the buffers of a reduction by packed messages among processes. A process has one
// packing for each element type. The rank that leads a meeting uses it.
type packing[T Number] struct {
	cuts                 []cut   // ranges of the elements that the processes fold
	heads                []int64 // numbers of set elements of all parts, ordered by process, entry and cut
	counts               []int
	nextPart             []int // from[p]: byte of recv at which the next part from process p begins
	sendWords, recvWords []int // number of words sent to each process, and number of words received from each process
	send, recv           []uint64
	parts                []T // unpacked parts
	root                 [1]sharding.Node
	entries              []sharding.Node
	values               [][]byte
	combiner             combiner
	results              []int64
	arrived              []uint64
}

// packingOf returns the packing of n for elements of type T.
func packingOf[T Number](n *network) *packing[T] {
	dtype, _ := typeOf[T]()
	p, ok := n.packings[dtype].(*packing[T])
	if !ok {
		p = new(packing[T])
		n.packings[dtype] = p
	}
	return p
}

// cut is a range of elements, and the process that folds them.
type cut struct {
	sharding.Range
	owner int
}

// cutEvenly sets p.cuts so that n elements are divided evenly among the processes.
func (p *packing[T]) cutEvenly(n, hosts int) {
	p.cuts = p.cuts[:0]
	for h := range hosts {
		p.cuts = append(p.cuts, cut{sharding.Split(n, hosts, h), h})
	}
}

// cutBlocks sets p.cuts so that each process folds the blocks of its ranks.
func (p *packing[T]) cutBlocks(n *network, blocks []int) {
	p.cuts = p.cuts[:0]
	lo := 0
	for rank, l := range blocks {
		p.cuts = append(p.cuts, cut{sharding.Range{Lo: lo, Hi: lo + l}, n.hostOf(rank)})
		lo += l
	}
}

// fillHeads counts all elements of every part as set, so that parts are sent plain. Absent
// parts stay absent.
func (p *packing[T]) fillHeads(pt *processNodes) {
	at := 0
	for _, nodes := range pt.nodes {
		for range nodes {
			for i := range p.cuts {
				if p.heads[at] != absentPiece {
					p.heads[at] = int64(p.cuts[i].Len())
				}
				at++
			}
		}
	}
}

// reducePacked carries out a reduction among processes by packed messages, which omit zeros.
// Each process folds a part of the elements. The steps are:
//
//	AllGather   the number of set elements of each entry and part: from these, every process
//	            knows the bytes of packed and whole parts, and all make the same decision
//	AllToAll    the parts
//	            each process folds its part of all entries, up their tree
//	AllGather   the number of set elements of each result, then the results
//
// q has the entries of this process, folded into the nodes of its ranks in the tree. done is
// false if nothing was reduced because sending whole parts is better. present has the same
// meaning as in calls.run.
func (a *AllReducer[T]) reducePacked(q *request, pt *processNodes) (done, present bool, err error) {
	c, n := a.c, a.c.group.net
	p := packingOf[T](n)
	p.cutEvenly(q.n, len(n.hosts))
	if err := a.exchangeHeads(q, pt, true); err != nil {
		return false, false, err
	}
	packed, whole, err := volumes(p.heads, pt.nodes, p.cuts, q.elem)
	if err != nil {
		return false, false, fmt.Errorf("%s: %w", q.header.describe(), err)
	}
	if !worthPacking(packed, whole) {
		return false, false, nil
	}
	if err := a.exchangeParts(q, pt); err != nil {
		return false, false, err
	}
	folded, err := a.foldParts(c, q, pt, n.process)
	if err != nil || folded == nil { // if no process has an entry, the result is absent on all processes
		return true, false, err
	}
	return true, true, a.shareResults(q, folded)
}

// volumes returns the bytes of all parts that are sent to other processes, packed and whole.
// heads has the numbers of set elements of all parts, ordered by process, entry and cut. size
// is the number of bytes of an element.
func volumes(heads []int64, nodes [][]sharding.Node, cuts []cut, size int) (packed, whole int64, err error) {
	at := 0
	for h := range nodes {
		for range nodes[h] {
			for i := range cuts {
				k, m := heads[at], cuts[i].Len()
				at++
				switch {
				case k < absentPiece || k > int64(m):
					return 0, 0, fmt.Errorf("process %d brings %d elements of a part of %d", h, k, m)
				case k != absentPiece && cuts[i].owner != h:
					packed += int64(packedBytes(int(k), m, size))
					whole += int64(even(m * size))
				}
			}
		}
	}
	return packed, whole, nil
}

// head returns the number of set elements of the part of process from, given the entry and the
// cut.
func (p *packing[T]) head(pt *processNodes, from, entry, cut int) int {
	at := 0
	for _, nodes := range pt.nodes[:from] {
		at += len(nodes)
	}
	return int(p.heads[(at+entry)*len(p.cuts)+cut])
}

// exchangeHeads counts the set elements of each part of this process and sends the counts to
// all processes. If countZeros is false, it does not look for zeros and counts every element as
// set.
func (a *AllReducer[T]) exchangeHeads(q *request, pt *processNodes, countZeros bool) error {
	n := a.c.group.net
	p := packingOf[T](n)
	cuts := len(p.cuts)
	p.counts = p.counts[:0]
	first, total := 0, 0
	for h, nodes := range pt.nodes {
		if h == n.process {
			first = total
		}
		p.counts = append(p.counts, len(nodes)*cuts)
		total += len(nodes) * cuts
	}
	p.heads = kernel.Sized(p.heads, total)
	mine := p.heads[first:][:p.counts[n.process]]
	for e, value := range q.in {
		x := elementsOf[T](value)
		for i := range p.cuts {
			to := &mine[e*cuts+i]
			switch own := &p.cuts[i]; {
			case value == nil:
				*to = absentPiece
			case countZeros:
				*to = int64(setOf(x[own.Lo:own.Hi]))
			default:
				*to = int64(own.Len())
			}
		}
	}
	return a.c.runAmongProcesses(q.ctx, request{
		coll: program.AllGather, elem: 8, n: total, counts: p.counts, out: bytesOf(p.heads),
	}, bytesOf(mine))
}

// exchangeParts sends to each other process the packed parts which that process folds, and
// receives the parts which this process folds.
func (a *AllReducer[T]) exchangeParts(q *request, pt *processNodes) error {
	n := a.c.group.net
	p := packingOf[T](n)
	hosts := len(n.hosts)
	p.sendWords, p.recvWords, p.nextPart = kernel.Sized(p.sendWords, hosts), kernel.Sized(p.recvWords, hosts), kernel.Sized(p.nextPart, hosts)
	clear(p.sendWords)
	clear(p.recvWords)
	out, in := 0, 0
	for i := range p.cuts {
		part := &p.cuts[i]
		if h := part.owner; h != n.process {
			for e := range pt.nodes[n.process] {
				words := packedBytes(p.head(pt, n.process, e, i), part.Len(), q.elem) / 8
				p.sendWords[h], out = p.sendWords[h]+words, out+words
			}
			continue
		}
		for h, nodes := range pt.nodes {
			for e := 0; e < len(nodes) && h != n.process; e++ {
				words := packedBytes(p.head(pt, h, e, i), part.Len(), q.elem) / 8
				p.recvWords[h], in = p.recvWords[h]+words, in+words
			}
		}
	}
	at := 0
	for h, words := range p.recvWords {
		p.nextPart[h] = 8 * at
		at += words
	}
	p.send, p.recv = sizedUp(p.send, out+1), sizedUp(p.recv, in) // one more word, which packPiece needs
	bytes := wordBytes(p.send)
	at = 0
	for h := range hosts {
		for i := range p.cuts {
			part := &p.cuts[i]
			if h == n.process || part.owner != h {
				continue
			}
			for e, value := range q.in {
				if value != nil {
					at += packPiece(bytes[at:], elementsOf[T](value)[part.Lo:part.Hi], p.head(pt, n.process, e, i))
				}
			}
		}
	}
	return a.c.runAmongProcesses(q.ctx, request{
		coll: program.AllToAll, elem: 8, counts: p.sendWords, recv: p.recvWords, out: wordBytes(p.recv),
	}, wordBytes(p.send[:out]))
}

// foldParts folds the elements of one cut of this process, from all entries, up their tree. The
// result is nil if there are no entries. The cuts of a process must be folded in order, since
// each call consumes the next parts of recv.
func (a *AllReducer[T]) foldParts(c *Comm, q *request, pt *processNodes, cut int) (folded []byte, err error) {
	n := c.group.net
	p := packingOf[T](n)
	own := p.cuts[cut].Range
	p.entries, p.values = p.entries[:0], p.values[:0]
	defer func() { clear(p.values) }()
	room := 0
	for h, nodes := range pt.nodes {
		if h != n.process {
			room += len(nodes) * own.Len()
		}
	}
	p.parts = sizedUp(p.parts, room)
	recv, parts := wordBytes(p.recv), p.parts
	for h, nodes := range pt.nodes {
		for e, node := range nodes {
			k := p.head(pt, h, e, cut)
			if k == absentPiece {
				continue
			}
			p.entries = append(p.entries, node)
			if h == n.process {
				p.values = append(p.values, q.in[e][own.Lo*q.elem:own.Hi*q.elem])
				continue
			}
			to := parts[:own.Len()]
			parts = parts[own.Len():]
			size := packedBytes(k, own.Len(), q.elem)
			if err := unpackPiece(to, recv[p.nextPart[h]:][:size], k); err != nil {
				return nil, fmt.Errorf("%s: what the process of rank %d sent: %w", q.header.describe(), n.hosts[h][0], err)
			}
			p.nextPart[h] += size
			p.values = append(p.values, bytesOf(to))
		}
	}
	if len(p.entries) == 0 {
		return nil, nil
	}
	if err := p.combiner.prepare(p.entries, pt.rootOf(p.root[:0])); err != nil {
		return nil, err
	}
	if q.header.opk == opUser {
		defer func() {
			if v := recover(); v != nil {
				err = c.panicked(q.header, v)
			}
		}()
	}
	var out []byte
	if q.out != nil {
		out = q.out[own.Lo*q.elem : own.Hi*q.elem]
	}
	return p.combiner.combine(p.values, out, own.Len()*q.elem, q.elem, q.arith)[0], nil
}

// shareResults sends the part that this process has folded to all other processes, and writes
// the folded parts of all processes to q.out.
func (a *AllReducer[T]) shareResults(q *request, folded []byte) error {
	n := a.c.group.net
	p := packingOf[T](n)
	hosts := len(n.hosts)
	result := elementsOf[T](folded)
	p.results = kernel.Sized(p.results, hosts)
	p.results[n.process] = int64(setOf(result))
	if err := a.c.runAmongProcesses(q.ctx, request{coll: program.AllGather, elem: 8, n: hosts, out: bytesOf(p.results)}, bytesOf(p.results[n.process:n.process+1])); err != nil {
		return err
	}
	total := 0
	for h, k := range p.results {
		m := sharding.Split(q.n, hosts, h).Len()
		if k < 0 || int(k) > m {
			return fmt.Errorf("%s: the process of rank %d gives %d elements of a part of %d", q.header.describe(), n.hosts[h][0], k, m)
		}
		p.sendWords[h] = packedBytes(int(k), m, q.elem) / 8
		total += p.sendWords[h]
	}
	own := sharding.Split(q.n, hosts, n.process)
	p.send, p.arrived = sizedUp(p.send, p.sendWords[n.process]+1), sizedUp(p.arrived, total)
	packPiece(wordBytes(p.send), result, int(p.results[n.process]))
	if err := a.c.runAmongProcesses(q.ctx, request{
		coll: program.AllGather, elem: 8, n: total, counts: p.sendWords, out: wordBytes(p.arrived),
	}, wordBytes(p.send[:p.sendWords[n.process]])); err != nil {
		return err
	}
	out, src := elementsOf[T](q.out), wordBytes(p.arrived)
	for h, k := range p.results {
		part := sharding.Split(q.n, hosts, h)
		size := p.sendWords[h] * 8
		if h == n.process {
			move(bytesOf(out[own.Lo:own.Hi]), folded)
		} else if err := unpackPiece(out[part.Lo:part.Hi], src[:size], int(k)); err != nil {
			return fmt.Errorf("%s: the result of the process of rank %d: %w", q.header.describe(), n.hosts[h][0], err)
		}
		src = src[size:]
	}
	return nil
}

// rootOf appends the lowest common ancestor of the nodes of all processes to dst.
func (pt *processNodes) rootOf(dst []sharding.Node) []sharding.Node {
	var root sharding.Node
	first := true
	for _, nodes := range pt.nodes {
		for _, node := range nodes {
			if first {
				root, first = node, false
			}
			for !root.Contains(node) {
				root = root.Parent()
			}
		}
	}
	return append(dst, root)
}

// sizedUp is kernel.Sized for buffers that grow with the data: it allocates a sixteenth more
// than n, so that it allocates less often.
func sizedUp[T Number | uint64](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n, n+n/16)
	}
	return x[:n]
}
