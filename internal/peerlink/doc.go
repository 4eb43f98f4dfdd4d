// Package peerlink is how the processes of a job reach one another: one port a process,
// one handshake, one error about who is lost.
//
//	port, err := peerlink.Listen(peerlink.Config{Job: "iris", Secret: secret})
//	defer port.Close()                              // after all that uses it
//	door, err := port.Open(peerlink.Door{
//		Kind: peerlink.Rows, Epoch: 2,
//		Serve: func(c *peerlink.Caller) error {     // somebody has connected
//			if err := mine(c.Hello); err != nil {
//				return err                          // which the other side is told
//			}
//			if err := c.Welcome(); err != nil {
//				return err
//			}
//			return take(c.Conn)
//		},
//	})
//	defer door.Close()
//	nc, err := port.Dial(ctx, address, peerlink.Hello{Kind: peerlink.Rows, Epoch: 2, From: 0, To: 3})
//
// Rows, the lanes of collectives and the control of groups are connections of kinds of
// their own, which begin here and are theirs from then on: they speak as they did on a
// port of their own, in frames with numbers and checksums of their own, and none waits
// behind another. What is not on them is on no other connection.
//
// # The handshake
//
// Whoever connects says what for, and both sides prove that they know the secret, before
// anything else is said or reserved. With TLS this happens within.
//
//	dialer                                        listener
//	hello: what for, nonce ─────────────────────►
//	      ◄─────────────────────────────────────── yes, nonce, HMAC(secret, "listener", hello, nonce); or why not
//	yes, HMAC(secret, "dialer", hello, nonce) ──►
//	      ◄─────────────────────────────────────── yes; or why not
//
// This is challenge and response with the nonces of both in both answers, as in ISO/IEC
// 9798-4; the two words keep an answer from being played back in the other direction,
// and as the hello is proved with its kind, scope and epoch, no proof serves for another
// one. Of the secret nothing is sent but what its HMAC-SHA256 is. Without a secret the
// second and the third step are left out; where one side has one and the other has none,
// that is the answer.
//
// A hello has 100 bytes, numbers in little endian:
//
//	0  magic "SSPL"        8  epoch        28  try
//	4  version            12  from         32  job, hashed
//	6  kind               16  to           48  scope, hashed
//	7  flags: 1 sums,     20  size         64  nonce
//	   2 secret           24  channel      96  CRC-32C of the 96 bytes before
//
// An answer, and the dialer's proof:
//
//	0  magic "SSPA"        6  length of the reason
//	4  verdict             8  what follows a yes, or the reason; then the CRC-32C of all
//	5  zero
//
// So a step that was damaged in transit is neither a yes nor a no.
//
// # Who is let in
//
// The states of a connection at its listener:
//
//	           hello heard        proved           its door is open      welcome
//	stranger ───────────► named ─────────► early ───────────────► served ───────► theirs
//	    │                   │                │                       │
//	    │ late, garbage,    │ another job,   │ that epoch is over;   │ the door's owner
//	    │ too many          │ another secret │ no door in time       │ says no
//	    ▼                   ▼                ▼                       ▼
//	  closed              refused          refused                 refused
//
// A stranger has ten seconds, and who holds a place longest gives way where there are
// too many; strangers end nothing. Who has a proved claim and comes before its door is
// open, as one process is always first, waits a little and is then told to try again.
//
// A door is named by kind and scope, and is of one epoch. A hello of an earlier epoch is
// refused for good, one of a later epoch waits as for a door that is not open yet.
// Opening a door of a later epoch replaces the one before, whose owner is told: so a new
// membership takes the place of an old one while the processes, and the port, stay.
//
// # Parts
//
//   - Port (port.go): listens, greets, dispatches. Door and Caller (door.go): who is
//     expected. Dial and Retry (dial.go): the other end.
//   - hello.go, answer.go: the bytes.
//   - PeerError, Refusal (errors.go): what comes of it.
//   - Unread (unread_unix.go): whether words wait that nobody has read.
//
// One lock guards a port; nothing is sent, received or served while it is held.
package peerlink
