package membership

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
)

// The processes of a group may share a secret. Then both sides of every connection,
// for control and for data, prove that they know it before the first hello:
//
//	dialer                                    listener
//	nonce ───────────────────────────────────►
//	      ◄─────────────────────────────────── yes, nonce, HMAC(secret, "listener", purpose, both nonces)
//	yes, HMAC(secret, "dialer", purpose, both nonces) ────►
//	      ◄─────────────────────────────────── yes
//
// or no in the place of a yes, and nothing after it. This is challenge and response
// with both nonces in both answers, as in ISO/IEC 9798-4; the words for the sides keep
// an answer from being played back in the other direction, the purpose from being
// played to another kind of listener. All steps have a fixed length, and nothing of
// the secret is sent but what its HMAC-SHA256 is.

// ErrSecret is wrapped by the error about a connection whose two sides do not know
// the same secret.
var ErrSecret = errors.New("the other side does not know the secret of the group")

// ErrNoSecret is wrapped by the error about one that has a secret and another that
// has none.
var ErrNoSecret = errors.New("one side has the group's secret and the other has none")

const (
	proofMagic   = "SSPr"
	proofVersion = 1
	nonceBytes   = 32
	stepHead     = 8 // magic, version or verdict, zero
	verdictYes   = 1
	verdictNo    = 2 // another secret
	verdictNone  = 3 // no secret
)

// Prove is the dialer's side of a proof on a new connection. It does nothing without
// a secret. The caller bounds its time by a deadline of the connection.
func Prove(nc net.Conn, secret []byte, purpose string) error {
	if len(secret) == 0 {
		return nil
	}
	nonce := make([]byte, nonceBytes)
	rand.Read(nonce)
	if _, err := nc.Write(append(step(proofVersion), nonce...)); err != nil {
		return err
	}
	answer := make([]byte, nonceBytes+sha256.Size)
	if err := readStep(nc, answer); err != nil {
		return err
	}
	theirs := answer[:nonceBytes]
	if !hmac.Equal(answer[nonceBytes:], prove(secret, "listener", purpose, nonce, theirs)) {
		_, err := nc.Write(step(verdictNo))
		return errors.Join(ErrSecret, err)
	}
	if _, err := nc.Write(append(step(verdictYes), prove(secret, "dialer", purpose, nonce, theirs)...)); err != nil {
		return err
	}
	return readStep(nc, nil)
}

// Verify is the listener's side. It returns the connection to go on with. Where the
// error is ErrNoSecret, and there is a connection, the dialer has begun its hello
// without a proof and waits for an answer in words: it is for the caller to refuse it.
func Verify(nc net.Conn, secret []byte, purpose string) (net.Conn, error) {
	head := make([]byte, stepHead, stepHead+nonceBytes)
	if _, err := io.ReadFull(nc, head[:len(proofMagic)]); err != nil {
		return nil, err
	}
	if string(head[:len(proofMagic)]) != proofMagic {
		rest := &begun{Conn: nc, first: head[:len(proofMagic)]}
		if len(secret) > 0 {
			return rest, fmt.Errorf("%w: who connects proves nothing", ErrNoSecret)
		}
		return rest, nil
	}
	head = head[:stepHead+nonceBytes]
	if _, err := io.ReadFull(nc, head[len(proofMagic):]); err != nil {
		return nil, err
	}
	if len(secret) == 0 {
		_, err := nc.Write(step(verdictNone))
		return nil, errors.Join(fmt.Errorf("%w: who connects has one", ErrNoSecret), err)
	}
	if head[len(proofMagic)] != proofVersion {
		_, err := nc.Write(step(verdictNo))
		return nil, errors.Join(fmt.Errorf("%w: its proof is of version %d, this is version %d", ErrSecret, head[len(proofMagic)], proofVersion), err)
	}
	theirs, nonce := head[stepHead:], make([]byte, nonceBytes)
	rand.Read(nonce)
	if _, err := nc.Write(append(append(step(verdictYes), nonce...), prove(secret, "listener", purpose, theirs, nonce)...)); err != nil {
		return nil, err
	}
	proof := make([]byte, sha256.Size)
	if err := readStep(nc, proof); err != nil {
		return nil, err
	}
	if !hmac.Equal(proof, prove(secret, "dialer", purpose, theirs, nonce)) {
		_, err := nc.Write(step(verdictNo))
		return nil, errors.Join(ErrSecret, err)
	}
	_, err := nc.Write(step(verdictYes))
	return nc, err
}

// prove is what only one who knows the secret can say. dialer and listener are the
// nonces of both.
func prove(secret []byte, side, purpose string, dialer, listener []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "superstep group, %s, %q", side, purpose)
	mac.Write(dialer)
	mac.Write(listener)
	return mac.Sum(nil)
}

// step begins a step of the proof.
func step(verdict byte) []byte {
	b := make([]byte, stepHead, stepHead+nonceBytes+sha256.Size)
	copy(b, proofMagic)
	b[len(proofMagic)] = verdict
	return b
}

// readStep reads a step that says yes, and what follows.
func readStep(r io.Reader, follows []byte) error {
	var b [stepHead]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return fmt.Errorf("no answer to a proof of the group's secret (has the other side one?): %w", err)
	}
	switch {
	case string(b[:len(proofMagic)]) != proofMagic:
		return fmt.Errorf("%w: the answer to a proof begins with %q", ErrNoSecret, b[:])
	case b[len(proofMagic)] == verdictNone:
		return fmt.Errorf("%w: the other has none", ErrNoSecret)
	case b[len(proofMagic)] != verdictYes:
		return fmt.Errorf("%w, and says so of this side", ErrSecret)
	}
	_, err := io.ReadFull(r, follows)
	return err
}

// begun is a connection of which the first bytes were read.
type begun struct {
	net.Conn
	first []byte
}

// Read gives the first bytes again.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}
