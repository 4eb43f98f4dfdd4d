// Package transport carries batches of rows from sending subtasks to inboxes.
//
// The parts, in the order a batch meets them:
//
//   - A Message is a batch of rows of one source shard, cut by destination shard, or the mark
//     that a source shard has ended. The inboxes of an exchange share the marks: one mark per
//     source shard gives the total number of its messages, so that pairs of shards without rows
//     cost neither messages nor memory.
//   - A Sender belongs to one inbox, named by its Address. Send waits for a
//     credit and hands the message over.
//   - A Receiver stores the messages of an inbox. It takes one message at a time and never
//     waits for a reader of the rows, so that credits always come back: a sender waits only for
//     the receiver's memory copy or disk write. So an exchange cannot deadlock, whatever the
//     number of credits.
//   - A Network makes senders and holds receivers. Mem is the network within a process.
//
// Messages of one sender arrive in the order in which they were sent. The order of messages of
// different senders is undefined; receivers order them by source shard and sequence number.
//
// The caller's loop:
//
//	net := transport.NewMem(credits)
//	defer net.Close()
//	err := net.Listen(addr, receiver)   // once per inbox, before anyone sends
//	s, err := net.Dial(addr)            // any number of senders
//	err = s.Send(ctx, msg)              // gives the reference to msg.Rows away
package transport
