// Package transport carries batches of rows from sending subtasks to inboxes.
//
// The parts, in the order a batch meets them:
//
//   - A Message is a batch of rows of one source shard, cut by destination
//     shard, or the mark that a source shard has ended. Inboxes of exchanges share
//     the marks: one per source shard says how many messages it sent in all, so
//     that nothing is sent to, or kept for, pairs of shards without rows.
//   - A Sender belongs to one inbox, named by its Address. Send waits for a
//     credit and hands the message over.
//   - A Receiver is the inbox's storing side. It takes one message at a time and
//     never waits for whoever will read the rows, so that credits always come
//     back: a sender waits for the receiver's memory copy or disk write, and for
//     nothing else. This is what makes an exchange free of deadlock at any number
//     of credits.
//   - A Network makes senders and holds receivers. Mem is the one within a
//     process.
//
// Messages of one sender arrive in the order in which they were sent. Nothing is
// promised about messages of different senders; receivers order what they store
// by source shard and sequence number.
//
// The caller's loop:
//
//	net := transport.NewMem(credits)
//	defer net.Close()
//	err := net.Listen(addr, receiver)   // once per inbox, before anyone sends
//	s, err := net.Dial(addr)            // any number of senders
//	err = s.Send(ctx, msg)              // gives the reference to msg.Rows away
package transport
