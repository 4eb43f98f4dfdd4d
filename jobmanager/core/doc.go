// Package core decides for the job manager: which task managers there are and which
// of them live, which job gets which slots, what its workers are told and when, and
// why a job failed. It is a function of the events and times it is given, and returns
// what is to be done; no goroutine, clock, lock, socket or log call is in it.
//
//	c := core.New(core.Config{...})
//	for event := range events {
//		for _, effect := range c.Step(now, event) {
//			... // send, persist, tell followers; in this order
//		}
//	}
//
// Times are those of one monotonic clock, counted from any zero.
package core
