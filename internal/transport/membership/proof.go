package membership

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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
// or no in the place of a yes, and nothing after it. Every step ends with its CRC-32C, so
// that a damaged one is not taken for another secret. This is challenge and response
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
	proofVersion = 2
	nonceBytes   = 32
	stepHead     = 8 // magic, version or verdict, zero
	stepTail     = 4 // checksum
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
	if _, err := nc.Write(step(proofVersion, nonce)); err != nil {
		return err
	}
	answer := make([]byte, nonceBytes+sha256.Size)
	if err := readStep(nc, answer); err != nil {
		return err
	}
	theirs := answer[:nonceBytes]
	if !hmac.Equal(answer[nonceBytes:], prove(secret, "listener", purpose, nonce, theirs)) {
		_, err := nc.Write(step(verdictNo, nil))
		return errors.Join(ErrSecret, err)
	}
	if _, err := nc.Write(step(verdictYes, prove(secret, "dialer", purpose, nonce, theirs))); err != nil {
		return err
	}
	return readStep(nc, nil)
}

// Verify is the listener's side. It returns the connection to go on with. Where the
// error is ErrNoSecret, and there is a connection, the dialer has begun its hello
// without a proof and waits for an answer in words: it is for the caller to refuse it.
func Verify(nc net.Conn, secret []byte, purpose string) (net.Conn, error) {
	head := make([]byte, stepHead, stepHead+nonceBytes+stepTail)
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
	head = head[:stepHead+nonceBytes+stepTail]
	if _, err := io.ReadFull(nc, head[len(proofMagic):]); err != nil {
		return nil, err
	}
	head, ok := intact(head)
	if !ok {
		return nil, fmt.Errorf("the first step of a proof was %w", ErrDamaged)
	}
	if len(secret) == 0 {
		_, err := nc.Write(step(verdictNone, nil))
		return nil, errors.Join(fmt.Errorf("%w: who connects has one", ErrNoSecret), err)
	}
	if head[len(proofMagic)] != proofVersion {
		_, err := nc.Write(step(verdictNo, nil))
		return nil, errors.Join(fmt.Errorf("%w: its proof is of version %d, this is version %d", ErrSecret, head[len(proofMagic)], proofVersion), err)
	}
	theirs, nonce := head[stepHead:], make([]byte, nonceBytes)
	rand.Read(nonce)
	if _, err := nc.Write(step(verdictYes, append(nonce, prove(secret, "listener", purpose, theirs, nonce)...))); err != nil {
		return nil, err
	}
	proof := make([]byte, sha256.Size)
	if err := readStep(nc, proof); err != nil {
		return nil, err
	}
	if !hmac.Equal(proof, prove(secret, "dialer", purpose, theirs, nonce)) {
		_, err := nc.Write(step(verdictNo, nil))
		return nil, errors.Join(ErrSecret, err)
	}
	_, err := nc.Write(step(verdictYes, nil))
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

// step is a step of the proof.
func step(verdict byte, follows []byte) []byte {
	b := make([]byte, stepHead, stepHead+len(follows)+stepTail)
	copy(b, proofMagic)
	b[len(proofMagic)] = verdict
	b = append(b, follows...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// intact is a step without its checksum, and whether that is right.
func intact(b []byte) ([]byte, bool) {
	n := len(b) - stepTail
	return b[:n], binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli)
}

// readStep reads a step that says yes, and what follows.
func readStep(r io.Reader, follows []byte) error {
	b := make([]byte, stepHead, stepHead+len(follows)+stepTail)
	if _, err := io.ReadFull(r, b); err != nil {
		return fmt.Errorf("no answer to a proof of the group's secret (has the other side one?): %w", err)
	}
	if string(b[:len(proofMagic)]) == proofMagic {
		n := stepHead + stepTail
		if b[len(proofMagic)] == verdictYes {
			n += len(follows)
		}
		b = b[:n]
		if _, err := io.ReadFull(r, b[stepHead:]); err != nil {
			return err
		}
		var ok bool
		if b, ok = intact(b); !ok {
			return fmt.Errorf("an answer to a proof of the group's secret was %w", ErrDamaged)
		}
	}
	switch {
	case string(b[:len(proofMagic)]) != proofMagic:
		return fmt.Errorf("%w: the answer to a proof begins with %q", ErrNoSecret, b[:stepHead])
	case b[len(proofMagic)] == verdictNone:
		return fmt.Errorf("%w: the other has none", ErrNoSecret)
	case b[len(proofMagic)] != verdictYes:
		return fmt.Errorf("%w, and says so of this side", ErrSecret)
	}
	copy(follows, b[stepHead:])
	return nil
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
