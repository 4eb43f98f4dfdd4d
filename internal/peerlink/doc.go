// Package peerlink connects the processes of a job: one port for each process, one handshake,
// one type of error for a lost process.
//
//	port, err := peerlink.Listen(peerlink.Config{Job: "iris", Secret: secret})
//	defer port.Close()                              // after all that uses it
//	endpoint, err := port.Open(peerlink.Endpoint{
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
//	defer endpoint.Close()
//	nc, err := port.Dial(ctx, address, peerlink.Hello{Kind: peerlink.Rows, Epoch: 2, From: 0, To: 3})
//
// Rows, the lanes of collectives and the control of groups are separate kinds of connections.
// They are made here and then belong to their users: each has its own protocol, with frames,
// numbers and checksums of its own, and none waits behind another. A process has no other
// connections to its peers.
//
// # The handshake
//
// The dialer says what the connection is for, and both sides prove that they know the secret,
// before anything else is sent or reserved. With TLS, the handshake runs inside it.
//
//	dialer                                        listener
//	hello: what for, nonce ─────────────────────►
//	      ◄─────────────────────────────────────── yes, nonce, HMAC(secret, "listener", hello, nonce); or why not
//	yes, HMAC(secret, "dialer", hello, nonce) ──►
//	      ◄─────────────────────────────────────── yes; or why not
//
// This is challenge and response with the nonces of both sides in both answers, as in ISO/IEC
// 9798-4. The words "listener" and "dialer" keep an answer from being replayed in the other
// direction. The proof covers the hello with its kind, scope and epoch, so that it does not
// serve for another hello. Only the HMAC-SHA256 under the secret is sent, never the secret.
// Without a secret the second and the third step are left out; if only one side has a secret,
// the answer says so.
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
// So a step that was damaged in transit is neither a yes nor a refusal.
//
// # Who is admitted
//
// The states of a connection at its listener:
//
//	                 hello read        proved           its endpoint is open      welcome
//	handshaking ───────────► named ─────────► early ───────────────► served ───────► theirs
//	    │                      │                │                       │
//	    │ late, garbage,       │ another job,   │ that epoch is over;   │ the owner of the
//	    │ too many             │ another secret │ no endpoint in time   │ endpoint says no
//	    ▼                      ▼                ▼                       ▼
//	  closed                 refused          refused                 refused
//
// A handshake has ten seconds. Where there are too many, the oldest one is closed. A connection
// that does not prove itself ends nothing else. One process is always first, so a connection that
// has proved itself may come before its endpoint is open: it waits a little and is then told to
// try again.
//
// An endpoint is identified by kind and scope, and belongs to one epoch. A hello of an earlier
// epoch is refused for good; one of a later epoch waits as if the endpoint were not open yet.
// Opening an endpoint of a later epoch replaces the earlier one and notifies its owner: so a new
// membership takes the place of an old one while the processes and the port stay.
//
// # Parts
//
//   - Port (port.go): listens, greets, dispatches. Endpoint and Caller (endpoint.go): the expected
//     connections. Dial and Retry (dial.go): the other end.
//   - hello.go, answer.go: the bytes.
//   - PeerError, Refusal (errors.go): the errors.
//   - Unread (unread_unix.go): whether unread bytes wait on a connection.
//
// One lock guards a port; nothing is sent, received or served while it is held.
package peerlink
