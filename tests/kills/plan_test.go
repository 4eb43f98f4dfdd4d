//go:build linux && !race

package kills

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// kind is a kind of fault.
type kind int

const (
	killWorker  kind = iota
	stopWorker       // it continues when the fault is over
	killNode         // the task manager without its workers; it starts again when the fault is over
	stopNode         // likewise
	killMachine      // the task manager with its workers
	stopMachine
	killManager
	stopManager
	killAll    // all processes but the client
	cutNode    // ends the connections between a task manager and the job manager
	muteNode   // nothing passes on these connections
	cutPeers   // ends the connections to the workers of a task manager
	mutePeers  // nothing passes on these connections
	slowPeers  // little passes on these connections
	fillStore  // no room is left in the checkpoint store
	takeStore  // the directory of the checkpoint store is not there
	fillOutput // no room is left where the outputs are
	kinds
)

var kindNames = [kinds]string{
	"kill worker", "stop worker", "kill task manager", "stop task manager", "kill machine", "stop machine",
	"kill job manager", "stop job manager", "kill all", "cut connection", "mute connection",
	"cut workers off", "mute workers", "slow workers",
	"fill store", "take store away", "fill output",
}

func (k kind) String() string { return kindNames[k] }

// moment is a phase of a job in which a fault strikes.
type moment int

const (
	submitted  moment = iota // the job is known
	deploying                // its workers are being started
	reading                  // they run, and no superstep has ended
	iterating                // a drawn superstep has ended
	saving                   // a file of a checkpoint has appeared
	committing               // the outputs are being completed
	placed                   // the first output has its final name
	recovering               // an attempt was lost, and the next does not run yet
	finished                 // the job has finished, and its processes may not have
	moments
)

var momentNames = [moments]string{"submitted", "deploying", "reading", "iterating", "saving", "committing", "placed", "recovering", "finished"}

func (m moment) String() string { return momentNames[m] }

// fault is one fault. It is over after the time hold.
type fault struct {
	kind kind
	node int // number of the task manager
	hold time.Duration
}

func (f fault) String() string {
	return fmt.Sprintf("%s (node %d, for %v)", f.kind, f.node, f.hold)
}

// strike is a set of faults that begin together.
type strike struct {
	moment moment
	step   int // for iterating
	faults []fault
}

func (s strike) String() string {
	var all []string
	for _, f := range s.faults {
		all = append(all, f.String())
	}
	when := s.moment.String()
	if s.moment == iterating {
		when = fmt.Sprintf("after superstep %d", s.step)
	}
	return when + ": " + strings.Join(all, " and ")
}

// plan is what is drawn from a seed.
type plan struct {
	shape
	work        work
	parallelism int
	checkpoints string   // value of --checkpoint-every; "" for none
	restart     []string // flags
	strikes     []strike
}

func (p plan) String() string {
	text := fmt.Sprintf("job %s, parallelism %d, on %d task managers of %d slots and %s (relayed: %t), detection %v, lease %v, checkpoints %q, %s",
		p.work.name, p.parallelism, p.taskManagers, p.slots, p.memory, p.relayed, p.detection, p.lease, p.checkpoints, strings.Join(p.restart, " "))
	for _, s := range p.strikes {
		text += "\n  " + s.String()
	}
	return text
}

// one returns one of the choices.
func one[T any](draw *rand.Rand, choices ...T) T { return choices[draw.IntN(len(choices))] }

// drawPlan draws a plan from a seed.
func drawPlan(seed uint64) plan {
	draw := rand.New(rand.NewPCG(seed, 0x6b696c6c))
	p := plan{shape: shape{
		taskManagers: 2 + draw.IntN(3), slots: 1 + draw.IntN(2), memory: one(draw, "1GiB", "1GiB", "48MiB"),
		detection: 1500 * time.Millisecond, lease: one[time.Duration](draw, 2, 3, 5) * time.Second,
	}}
	p.relayed = seed%3 == 1
	p.work = works[draw.IntN(len(works))]
	p.parallelism = 1 + draw.IntN(p.slotsInAll())
	if draw.IntN(3) > 0 { // most jobs have workers on all machines
		p.parallelism = p.slotsInAll()
	}
	if draw.IntN(7) > 0 {
		p.checkpoints = one(draw, "1steps", "1steps", "3steps", "200ms")
	}
	delay := one(draw, "10ms", "50ms", "300ms")
	p.restart = one(draw,
		[]string{"--restart-delay", delay},
		[]string{"--restart", "fixed-delay", "--restart-attempts", "30", "--restart-delay", delay},
		[]string{"--restart", "failure-rate", "--restart-attempts", "30", "--restart-delay", delay},
	)
	for range 1 + draw.IntN(3) {
		p.strikes = append(p.strikes, p.drawStrike(draw, len(p.strikes) > 0))
	}
	return p
}

// drawStrike draws one or, with a probability of a quarter, two faults. again says that the job
// may be recovering from an earlier fault.
func (p *plan) drawStrike(draw *rand.Rand, again bool) strike {
	at := []moment{deploying, reading, committing, placed}
	if p.work.supersteps > 0 {
		at = append(at, iterating, iterating, iterating)
		if p.checkpoints != "" {
			at = append(at, saving, saving)
		}
	}
	if again {
		at = append(at, recovering, recovering)
	}
	if draw.IntN(12) == 0 {
		at = []moment{submitted, finished}
	}
	s := strike{moment: at[draw.IntN(len(at))]}
	if p.work.supersteps > 0 {
		s.step = 1 + draw.IntN(p.work.supersteps*2/3)
	}
	s.faults = []fault{p.drawFault(draw)}
	if draw.IntN(4) == 0 {
		for range 10 {
			if second := p.drawFault(draw); s.faults[0].goesWith(second) {
				s.faults = append(s.faults, second)
				break
			}
		}
	}
	return s
}

// goesWith reports whether two faults can happen at the same time.
func (f fault) goesWith(other fault) bool {
	about := func(k kind) int { // parts of the cluster
		switch k {
		case killWorker, stopWorker, killNode, stopNode, killMachine, stopMachine:
			return 1
		case killManager, stopManager:
			return 2
		case cutNode, muteNode:
			return 3
		case cutPeers, mutePeers, slowPeers:
			return 6
		case fillStore, takeStore:
			return 4
		case fillOutput:
			return 5
		}
		return 0 // everything
	}
	a, b := about(f.kind), about(other.kind)
	return a > 0 && b > 0 && (a != b || (a == 1 || a == 3 || a == 6) && f.node != other.node)
}

// drawFault draws a fault.
func (p *plan) drawFault(draw *rand.Rand) fault {
	all := []kind{
		killWorker, killWorker, killWorker, stopWorker, killNode, killNode, stopNode, killMachine, killMachine, stopMachine,
		killManager, killManager, killManager, stopManager, killAll, cutNode, muteNode,
	}
	if p.checkpoints != "" {
		all = append(all, killAll, fillStore, takeStore)
	}
	if p.relayed && draw.IntN(2) == 0 {
		all = []kind{cutPeers, mutePeers, slowPeers}
	}
	if draw.IntN(60) == 0 {
		all = []kind{fillOutput}
	}
	f := fault{kind: all[draw.IntN(len(all))], node: draw.IntN(p.taskManagers)}
	// Some faults are over before anybody counts as lost, and others when all leases have lapsed.
	short, long := time.Duration(20+draw.IntN(600))*time.Millisecond, p.lease+time.Duration(500+draw.IntN(1500))*time.Millisecond
	f.hold = one(draw, short, short, long)
	return f
}
