package remote

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
	"unicode/utf8"
)

// Who connects and who is connected to prove to each other that they know the secret,
// before anything else is said or reserved:
//
//	dialer                                       listener
//	hello: version, attempt, job, both numbers,
//	       how many workers, nonce ───────────►
//	       ◄─────────────────────────────────── nonce, HMAC(secret, "listener", hello, nonce),
//	                                             or why not
//	HMAC(secret, "dialer", hello, nonce) ──────►
//	       ◄─────────────────────────────────── welcome, or why not
//
// This is challenge and response with both sides' nonces in both answers, as in
// ISO/IEC 9798-4; the two words keep an answer from being played back in the other
// direction.
type hello struct {
	version uint16
	attempt uint32
	from    uint32
	to      uint32
	workers uint32
	summed  bool              // frames have checksums
	job     [sha256.Size]byte // of the job's name
	nonce   [nonceBytes]byte
}

const (
	protocolVersion = 2
	nonceBytes      = 32
	helloBytes      = 96 // magic 0, version 4, attempt 8, summed 12, from 16, to 20, workers 24, CRC-32C of all else 28, job 32, nonce 64
	helloSum        = 28
	preludeBytes    = 8 // of a hello, the same in all versions
	replyBytes      = 8 // magic 0, verdict 4, length of the reason 6; then what follows, and the CRC-32C of all
	proofBytes      = sha256.Size
	maxReason       = 512
	helloMagic      = "SSrt"
	replyMagic      = "SSra"
	listenerLabel   = "superstep data connection: listener"
	dialerLabel     = "superstep data connection: dialer"
	verdictYes      = 1
	verdictNo       = 0
)

func (h *hello) encode() []byte {
	b := make([]byte, helloBytes)
	le := binary.LittleEndian
	copy(b, helloMagic)
	le.PutUint16(b[4:], h.version)
	le.PutUint32(b[8:], h.attempt)
	if h.summed {
		b[12] = 1
	}
	le.PutUint32(b[16:], h.from)
	le.PutUint32(b[20:], h.to)
	le.PutUint32(b[24:], h.workers)
	copy(b[32:], h.job[:])
	copy(b[64:], h.nonce[:])
	le.PutUint32(b[helloSum:], helloChecksum(b))
	return b
}

// helloChecksum is the checksum of a hello but for itself.
func helloChecksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:helloSum], castagnoli), castagnoli, b[helloSum+sumBytes:])
}

// readHello reads a hello from whoever has connected. An error that is a refusal is
// to be told to the other side.
func readHello(r io.Reader) (h hello, raw []byte, err error) {
	raw = make([]byte, helloBytes)
	if _, err := io.ReadFull(r, raw[:preludeBytes]); err != nil {
		return h, nil, fmt.Errorf("it said no hello: %w", err)
	}
	le := binary.LittleEndian
	switch {
	case raw[0] == 0x16 && raw[1] == 3:
		return h, nil, errors.New("it begins with TLS, which this worker does not use: give all workers of an attempt the same credential")
	case !bytes.HasPrefix(raw, []byte(helloMagic)):
		return h, nil, fmt.Errorf("it begins with %q, which is no hello", raw[:preludeBytes])
	}
	if h.version = le.Uint16(raw[4:]); h.version != protocolVersion {
		return h, nil, &refusal{reason: fmt.Sprintf("version %d of the data protocol does not go with version %d: run the same build everywhere (or its hello was damaged in transit)", h.version, protocolVersion)}
	}
	if _, err := io.ReadFull(r, raw[preludeBytes:]); err != nil {
		return h, nil, fmt.Errorf("its hello breaks off: %w", err)
	}
	if helloChecksum(raw) != le.Uint32(raw[helloSum:]) {
		return h, nil, damage("its hello has a wrong checksum")
	}
	h.summed = raw[12] == 1
	h.attempt, h.from, h.to, h.workers = le.Uint32(raw[8:]), le.Uint32(raw[16:]), le.Uint32(raw[20:]), le.Uint32(raw[24:])
	copy(h.job[:], raw[32:])
	copy(h.nonce[:], raw[64:])
	return h, raw, nil
}

// refusal is an error that the other side is told.
type refusal struct {
	reason string
	theirs bool // the other side refused
}

func (e *refusal) Error() string { return e.reason }
func (e *refusal) Unwrap() error { return ErrRefused }

// proof is what only one who knows the secret can say.
func (n *Network) proof(label string, hello, nonce []byte) []byte {
	mac := hmac.New(sha256.New, n.cfg.Secret)
	mac.Write([]byte(label))
	mac.Write(hello)
	mac.Write(nonce)
	return mac.Sum(nil)
}

// check says why a hello is not one for this worker, if so.
func (n *Network) check(h *hello) error {
	cfg := &n.cfg
	switch {
	case h.job != jobHash(cfg.Job):
		return &refusal{reason: "it is a worker of another job"}
	case int64(h.attempt) != int64(cfg.Attempt):
		return &refusal{reason: fmt.Sprintf("it is of attempt %d, this is attempt %d", h.attempt, cfg.Attempt)}
	case h.summed != n.summed():
		return &refusal{reason: fmt.Sprintf("it sends rows with checksums: %t, this worker: %t; all must do the same", h.summed, n.summed())}
	case int64(h.workers) != int64(cfg.Workers):
		return &refusal{reason: fmt.Sprintf("it counts %d workers, this one counts %d", h.workers, cfg.Workers)}
	case int64(h.to) != int64(cfg.Worker):
		return &refusal{reason: fmt.Sprintf("it wants worker %d, this is worker %d", h.to, cfg.Worker)}
	case h.from >= h.workers || h.from == h.to:
		return &refusal{reason: fmt.Sprintf("it says that it is worker %d of %d", h.from, h.workers)}
	}
	return nil
}

// reply answers a hello or a proof: with what follows a yes, or a reason.
func reply(w io.Writer, refused error, follows []byte) error {
	b := make([]byte, replyBytes, replyBytes+maxReason+sumBytes)
	copy(b, replyMagic)
	if refused == nil {
		b[4] = verdictYes
	} else {
		follows = []byte(refused.Error())
		follows = follows[:min(len(follows), maxReason)]
		binary.LittleEndian.PutUint16(b[6:], uint16(len(follows)))
	}
	b = append(b, follows...)
	_, err := w.Write(binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)))
	return err
}

// readReply reads an answer and what follows a yes. A no is a *refusal.
func readReply(r io.Reader, follows []byte) error {
	var b [replyBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	length := int(binary.LittleEndian.Uint16(b[6:]))
	switch {
	case b[0] == 0x15 && b[1] == 3:
		return violation("it answers with TLS, which this worker does not use: give all workers of an attempt the same credential")
	case string(b[:4]) != replyMagic:
		return violation("an answer begins with %q", b[:])
	case b[4] > verdictYes || b[5] != 0 || length > maxReason || b[4] == verdictYes && length > 0:
		return damage("an answer begins with %q", b[:])
	case b[4] == verdictYes:
		length = len(follows)
	}
	text := make([]byte, length+sumBytes)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	text, sum := text[:length], binary.LittleEndian.Uint32(text[length:])
	if crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, text) != sum {
		return damage("an answer has a wrong checksum")
	}
	if b[4] == verdictYes {
		copy(follows, text)
		return nil
	}
	if !utf8.Valid(text) {
		return violation("a reason that is not UTF-8")
	}
	return &refusal{reason: string(text), theirs: true}
}

// ask is the dialer's side of a handshake. final says that trying again cannot help:
// the other side has answered.
func (n *Network) ask(ctx context.Context, nc net.Conn, worker int, address string) (_ net.Conn, final bool, err error) {
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	nc.SetDeadline(time.Now().Add(helloTimeout))
	if n.cfg.TLS != nil {
		t := n.cfg.TLS
		if t.ServerName == "" {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, true, err
			}
			t = t.Clone()
			t.ServerName = host
		}
		secure := tls.Client(nc, t)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, isTLSRefusal(err), fmt.Errorf("TLS: %w", err)
		}
		nc = secure
	}
	h := hello{
		version: protocolVersion, attempt: uint32(n.cfg.Attempt), from: uint32(n.cfg.Worker), to: uint32(worker),
		workers: uint32(n.cfg.Workers), summed: n.summed(), job: jobHash(n.cfg.Job),
	}
	rand.Read(h.nonce[:])
	raw := h.encode()
	if _, err := nc.Write(raw); err != nil {
		return nil, false, err
	}
	var answer [nonceBytes + proofBytes]byte
	if err := readReply(nc, answer[:]); err != nil {
		if n.cfg.TLS == nil && errors.Is(err, io.EOF) {
			err = fmt.Errorf("it hangs up without an answer: does it use TLS, which this worker does not? (%w)", err)
		}
		return nil, errors.Is(err, ErrRefused) || errors.Is(err, ErrProtocol), err
	}
	nonce := answer[:nonceBytes]
	if !hmac.Equal(answer[nonceBytes:], n.proof(listenerLabel, raw, nonce)) {
		err := &refusal{reason: "it does not know the secret of the attempt"}
		reply(nc, err, nil)
		return nil, true, err
	}
	if err := reply(nc, nil, n.proof(dialerLabel, raw, nonce)); err != nil {
		return nil, true, err
	}
	// The other side may have welcomed this one from here on: giving up would look like
	// a death. Only if it has closed the connection another try does no harm.
	nc.SetDeadline(time.Now().Add(n.cfg.ConnectTimeout))
	if err := readReply(nc, nil); err != nil {
		return nil, !closed(err), err
	}
	if !stop() {
		return nil, true, context.Cause(ctx)
	}
	nc.SetDeadline(time.Time{})
	return nc, true, nil
}

// isTLSRefusal tells answers of a TLS server, or of what is none, from broken
// connections.
func isTLSRefusal(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	return errors.As(err, &verify) || errors.As(err, &alert) || errors.As(err, &record)
}

// greet is the listener's side of a handshake, up to the last answer, which admit
// gives.
func (n *Network) greet(nc net.Conn) (net.Conn, int, error) {
	nc.SetDeadline(time.Now().Add(helloTimeout))
	if n.cfg.TLS != nil {
		secure := tls.Server(nc, n.cfg.TLS)
		if err := secure.Handshake(); err != nil {
			return nil, 0, fmt.Errorf("TLS: %w", err)
		}
		nc = secure
	}
	h, raw, err := readHello(nc)
	if err == nil {
		err = n.check(&h)
	}
	if err != nil {
		if errors.Is(err, ErrRefused) {
			reply(nc, err, nil)
		}
		return nil, 0, err
	}
	var nonce [nonceBytes]byte
	rand.Read(nonce[:])
	if err := reply(nc, nil, append(nonce[:], n.proof(listenerLabel, raw, nonce[:])...)); err != nil {
		return nil, 0, err
	}
	var proof [proofBytes]byte
	if err := readReply(nc, proof[:]); err != nil {
		return nil, 0, fmt.Errorf("worker %d proves nothing: %w", h.from, err)
	}
	if !hmac.Equal(proof[:], n.proof(dialerLabel, raw, nonce[:])) {
		err := &refusal{reason: "it does not know the secret of the attempt"}
		reply(nc, err, nil)
		return nil, 0, fmt.Errorf("worker %d: %w", h.from, err)
	}
	return nc, int(h.from), nil
}

// jobHash stands for the name of a job, which may be of any length.
func jobHash(name string) [sha256.Size]byte { return sha256.Sum256([]byte(name)) }
