package simulation

import (
	"errors"
	"iter"
	"slices"
	"time"
)

// process is a process of the operating system. What it does waits while it is stopped (SIGSTOP), and
// does not happen when it is dead.
type process struct {
	w       *world
	name    string
	machine *machine
	dead    bool
	stopped bool
	waiting []func() // what is to be done when it goes on
	fibers  []*fiber
	died    []func() // called when it has died
}

func (w *world) newProcess(m *machine, name string) *process {
	return &process{w: w, name: name, machine: m}
}

// do does something in the process.
func (p *process) do(f func()) {
	switch {
	case p.dead:
	case p.stopped:
		p.waiting = append(p.waiting, f)
	default:
		f()
	}
}

// after does something in the process after a time.
func (p *process) after(d time.Duration, f func()) { p.w.after(d, func() { p.do(f) }) }

// stop stops the process.
func (p *process) stop() {
	if !p.dead {
		p.stopped = true
		p.w.watch()
	}
}

// goOn lets a stopped process go on.
func (p *process) goOn() {
	if !p.stopped || p.dead {
		return
	}
	p.stopped = false
	waiting := p.waiting
	p.waiting = nil
	for _, f := range waiting {
		p.after(0, f)
	}
}

// kill ends the process. It must not be called by code of the process that waits.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.dead, p.waiting = true, nil
	for _, f := range p.fibers {
		f.end()
	}
	for _, f := range p.died {
		f()
	}
}

// fiber is code of a process that waits in virtual time.
type fiber struct {
	p      *process
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	cause  error // why waits fail
	number int   // of the wait, which changes when it begins and when it ends
	inside bool
	over   bool
}

// errDead is the error of waits in a process that has died. Code that gets it must do nothing but return.
var errDead = errors.New("the process has died")

// start starts code in the process.
func (p *process) start(body func(f *fiber)) *fiber {
	f := &fiber{p: p}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		body(f)
	})
	p.fibers = append(slices.DeleteFunc(p.fibers, func(f *fiber) bool { return f.over }), f)
	p.w.fibers = append(p.w.fibers, f)
	p.after(0, f.step)
	return f
}

// step lets the code go on until it waits.
func (f *fiber) step() {
	if f.over || f.inside {
		return
	}
	f.inside = true
	_, more := f.next()
	f.inside = false
	f.over = f.over || !more
}

// end ends the code of a process that has died.
func (f *fiber) end() {
	if f.over || f.inside {
		return
	}
	f.over, f.cause = true, errDead
	f.stop()
}

// wait waits for a time, or until wake is called. It waits for wake alone if d is negative. It returns
// an error if the code is to end.
func (f *fiber) wait(d time.Duration) error {
	if f.cause != nil {
		return f.cause
	}
	f.number++
	n := f.number
	if d >= 0 {
		f.p.after(d, func() { f.stepAt(n) })
	}
	if !f.yield(struct{}{}) {
		f.cause = errDead
	}
	f.number++
	return f.cause
}

// sleep waits for a time.
func (f *fiber) sleep(d time.Duration) error {
	for until := f.p.w.now + d; ; {
		if err := f.wait(until - f.p.w.now); err != nil || f.p.w.now >= until {
			return err
		}
	}
}

// until waits until a condition holds. Whoever makes it true calls wake.
func (f *fiber) until(condition func() bool) error {
	for !condition() {
		if err := f.wait(-1); err != nil {
			return err
		}
	}
	return f.cause
}

func (f *fiber) stepAt(number int) {
	if f.number == number {
		f.step()
	}
}

// wake lets code that waits go on.
func (f *fiber) wake() {
	n := f.number
	f.p.after(0, func() { f.stepAt(n) })
}

// cancel makes the waits of the code fail, now and later.
func (f *fiber) cancel(cause error) {
	if f.cause == nil {
		f.cause = cause
	}
	f.wake()
}
