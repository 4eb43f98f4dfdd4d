// Package core makes decisions of the task manager: how the life of a worker goes on, which messages
// are sent to the job manager again, when the lease has lapsed, and how long to wait before the next
// attempt to connect. It does no input or output, and starts no goroutine. The task manager around it
// passes what has happened, and does what the decisions say.
//
//	table := core.LifeTable()
//	move := table[state][trigger]        // the next state of a worker, and what to do
//
//	outbox := core.NewOutbox()
//	running := outbox.Reconnect()        // for the registration on a new connection
//	for m := outbox.Pop(); m != nil; m = outbox.Pop() {
//		…                                // send
//	}
package core
