package check

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/program"
)

// serialRank is the state of a rank in a serial execution, in which one goroutine runs all
// parts of the rank in a fixed order.
type serialRank struct {
	prog  *program.Program
	order []program.Part
	next  int
	done  [][][2]bool // done[lane][step]: whether the receiving or local part is done, and whether the sending part is done
	last  [][2]int    // last[lane]: the last step that the receive half and the send half have done
}

// serial simulates an execution in which one goroutine per rank runs the parts in the order of
// serialOrder, and sends never wait. It returns an error unless every part is run after its
// dependencies and the execution ends.
func serial(programs []*program.Program, serialOrder func(*program.Program) ([]program.Part, error)) error {
	ranks := make([]serialRank, len(programs))
	runnable := make([]int, 0, len(programs))
	for r, p := range programs {
		order, err := serialOrder(p)
		if err != nil {
			return err
		}
		k := serialRank{prog: p, order: order, done: make([][][2]bool, len(p.Lanes)), last: make([][2]int, len(p.Lanes))}
		for i := range p.Lanes {
			k.done[i] = make([][2]bool, len(p.Lanes[i].Steps))
			k.last[i] = [2]int{-1, -1}
		}
		ranks[r] = k
		runnable = append(runnable, r)
	}
	inbox := map[route]int{}   // number of messages that are sent but not received yet
	waiting := map[route]int{} // route -> rank that waits for a message
	for len(runnable) > 0 {
		k := &ranks[runnable[0]]
		runnable = runnable[1:]
		for k.next < len(k.order) {
			x := k.order[k.next]
			if err := k.may(x); err != nil {
				return err
			}
			l := &k.prog.Lanes[x.Lane]
			if x.Send {
				at := route{k.prog.Rank, l.SendPeer, l.Channel}
				inbox[at]++
				if peer, ok := waiting[at]; ok {
					delete(waiting, at)
					runnable = append(runnable, peer)
				}
			} else if l.Steps[x.Step].Op.Receives() {
				at := route{l.RecvPeer, k.prog.Rank, l.Channel}
				if inbox[at] == 0 {
					waiting[at] = k.prog.Rank
					break
				}
				inbox[at]--
			}
			k.do(x)
		}
	}
	for r := range ranks {
		k := &ranks[r]
		if k.next < len(k.order) {
			return fmt.Errorf("serial execution does not end: rank %d waits at %s", r, k.text(k.order[k.next]))
		}
		if err := k.complete(); err != nil {
			return err
		}
	}
	return nil
}

func halfIndex(send bool) int {
	if send {
		return 1
	}
	return 0
}

func (k *serialRank) do(x program.Part) {
	s := halfIndex(x.Send)
	k.done[x.Lane][x.Step][s] = true
	k.last[x.Lane][s] = x.Step
	k.next++
}

// has reports whether a half takes part in an instruction.
func (k *serialRank) has(lane, step, half int) bool {
	op := k.prog.Lanes[lane].Steps[step].Op
	return half == 1 && op.Sends() || half == 0 && op != program.DoSend
}

// may returns an error if part x must not be run yet.
func (k *serialRank) may(x program.Part) error {
	if x.Lane < 0 || x.Lane >= len(k.done) || x.Step < 0 || x.Step >= len(k.done[x.Lane]) || !k.has(x.Lane, x.Step, halfIndex(x.Send)) {
		return fmt.Errorf("the serial order of rank %d has a part %+v, which does not exist", k.prog.Rank, x)
	}
	early := func(what string) error {
		return fmt.Errorf("the serial order of rank %d has %s before %s", k.prog.Rank, k.text(x), what)
	}
	s := halfIndex(x.Send)
	if x.Step <= k.last[x.Lane][s] {
		return fmt.Errorf("the serial order of rank %d has %s twice", k.prog.Rank, k.text(x))
	}
	for j := k.last[x.Lane][s] + 1; j < x.Step; j++ {
		if k.has(x.Lane, j, s) {
			return early(k.text(program.Part{Lane: x.Lane, Step: j, Send: x.Send}))
		}
	}
	if x.Send && k.has(x.Lane, x.Step, 0) && !k.done[x.Lane][x.Step][0] {
		return early("its receiving")
	}
	for _, d := range k.prog.Lanes[x.Lane].Steps[x.Step].After {
		for s := range 2 {
			if k.has(d.Lane, d.Step, s) && !k.done[d.Lane][d.Step][s] {
				return early(k.text(program.Part{Lane: d.Lane, Step: d.Step, Send: s == 1}))
			}
		}
	}
	return nil
}

// complete returns an error if the order has left out a part.
func (k *serialRank) complete() error {
	for i := range k.done {
		for j := range k.done[i] {
			for s := range 2 {
				if k.has(i, j, s) && !k.done[i][j][s] {
					return fmt.Errorf("the serial order of rank %d leaves out %s", k.prog.Rank, k.text(program.Part{Lane: i, Step: j, Send: s == 1}))
				}
			}
		}
	}
	return nil
}

// text returns a description of a part.
func (k *serialRank) text(x program.Part) string {
	return fmt.Sprintf("lane %d step %d (%s)", x.Lane, x.Step, &k.prog.Lanes[x.Lane].Steps[x.Step])
}
