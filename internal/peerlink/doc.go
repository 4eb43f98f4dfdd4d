// Package peerlink connects the processes of a job. Each process has one port for all
// connections, all connections begin with the same handshake, and all networks report a lost
// process with the same type of error.
//
//	port, err := peerlink.Listen(peerlink.Config{Job: "iris", Secret: secret})
//	defer port.Close()                              // after everything that uses it
//	endpoint, err := port.Open(peerlink.Endpoint{
//		Kind: peerlink.Rows, Epoch: 2,
//		Serve: func(c *peerlink.Caller) error {     // for each accepted connection
//			if err := mine(c.Hello); err != nil {
//				return err                          // is sent to the other side
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
// There are separate kinds of connections for rows, for the lanes of collectives, for the control
// of groups, for copies of the states of queues, and for rows that move ahead of an attempt. This package makes the connections; after
// the handshake each connection belongs to the package that uses it. Each kind has its own protocol, with its own frames,
// numbers and checksums, and no connection waits for another. A process has no other
// connections to its peers.
//
// # The handshake
//
// The dialer says in its hello what the connection is for, and both sides prove that they know
// the secret, before any other bytes are sent and before resources are reserved. With TLS, the
// handshake runs inside the TLS connection.
//
//	dialer                                        listener
//	hello: purpose, nonce ──────────────────────►
//	      ◄─────────────────────────────────────── yes, nonce, HMAC(secret, "listener", hello, nonce) or a refusal
//	yes, HMAC(secret, "dialer", hello, nonce) ──►
//	      ◄─────────────────────────────────────── yes or a refusal
//
// This is mutual authentication by challenge and response with the nonces of both sides in both
// proofs, as in ISO/IEC 9798-4. A proof includes the word "listener" or "dialer", so it cannot
// be replayed in the other direction. A proof covers the hello with its kind, scope and epoch,
// so that it is not valid for another hello. The secret itself is never sent, only HMAC-SHA256
// values for which it is the key. Without a secret the second and the third step are omitted.
// If only one side has a secret, the answer is a refusal that states this reason.
//
// A hello has 100 bytes, numbers in little endian:
//
//	0  magic "SSPL"        8  epoch        28  try
//	4  version            12  from         32  job, hashed
//	6  kind               16  to           48  scope, hashed
//	7  flags: 1 sums,     20  size         64  nonce
//	   2 secret           24  channel      96  CRC-32C of the 96 bytes before
//
// An answer, and also the dialer's proof, is:
//
//	0  magic "SSPA"        6  length of the reason
//	4  verdict             8  the bytes that follow a yes, or the reason; then the CRC-32C of all before
//	5  zero
//
// Because of the checksum, an answer that was damaged in transit is taken neither for a yes nor
// for a refusal: it is an error.
//
// # Admission
//
// A connection has these states at its listener; in the last state it belongs to the endpoint's
// owner:
//
//	                 hello read        proved           its endpoint is open      welcome
//	handshaking ───────────► named ─────────► early ───────────────► served ───────► theirs
//	    │                      │                │                       │
//	    │ late, garbage,       │ another job,   │ that epoch is over;   │ the owner of the
//	    │ too many             │ another secret │ no endpoint in time   │ endpoint says no
//	    ▼                      ▼                ▼                       ▼
//	  closed                 refused          refused                 refused
//
// A handshake may take ten seconds. If there are too many handshakes at a time, the connection
// with the oldest handshake is closed. A connection that does not prove that it knows the
// secret has no other effect. Processes open their endpoints at different times, so a
// connection may come before its endpoint is open. It then waits for at most a second. If the
// endpoint is still not open, the connection is refused, and the dialer tries again.
//
// An endpoint is identified by kind and scope, and belongs to one epoch. A hello of an earlier
// epoch gets a final refusal. A hello of a later epoch waits as if the endpoint were not open
// yet. When an endpoint of a later epoch is opened, it replaces the earlier endpoint and
// notifies its owner. So the processes of a group can change to a new membership and keep their
// ports.
//
// # Parts
//
//   - Port (port.go): listens, shakes hands, and passes connections to endpoints. Endpoint and
//     Caller (endpoint.go): the expected connections. Dial and Retry (dial.go): the dialer's
//     side.
//   - hello.go, answer.go: the encoding of the handshake.
//   - PeerError, Refusal (errors.go): the errors.
//   - Unread (unread_unix.go): whether a connection has unread bytes.
//
// One lock guards a port. It is not held while bytes are sent or received, or while Serve runs.
package peerlink
