// Package transport carries batches of rows from sending subtasks to inboxes.
//
// These are the parts of the package, in the order in which a batch passes through them:
//
//   - A Message is a batch of rows of one source shard, cut by destination shard, or the end
//     mark of a source shard. A worker gets one end mark per source shard; all receiving
//     subtasks of the worker share it. The mark has the number of messages that the source
//     shard sent to the worker. So if a source shard has no rows for a destination shard, this
//     takes neither a message nor memory.
//   - A Sender sends to one inbox, which is identified by an Address. Send waits for a credit
//     and then passes the message on.
//   - A Receiver stores the messages of an inbox. It takes one message at a time and never
//     waits for a reader of the rows, so every credit is returned eventually: a sender waits
//     only until the receiver has copied rows in memory or written them to disk. So an exchange
//     cannot deadlock, whatever the number of credits.
//   - A Network makes senders and passes their messages to receivers. Mem is the Network within
//     a process.
//
// Messages of one sender arrive in the order in which they were sent. The order of messages of
// different senders is undefined; receivers order them by source shard and sequence number.
//
// A caller uses the package as follows:
//
//	net := transport.NewMem(credits)
//	defer net.Close()
//	err := net.Listen(addr, receiver)   // once per inbox, before anyone sends
//	s, err := net.Dial(addr)            // any number of senders
//	err = s.Send(ctx, msg)              // takes over the reference to msg.Rows
package transport
