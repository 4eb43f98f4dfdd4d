package peerlink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/internal/checksum"
)

const (
	answerMagic = "SSPA"
	answerHead  = 8
	proofBytes  = sha256.Size
	maxReason   = 1024 // bytes
)

// verdict is the decision that an answer states.
type verdict byte

const (
	yes      verdict = iota + 1
	no               // refused, and another try would be refused too
	later            // refused, but another try may succeed
	secret           // refused: the other side does not know the secret
	noSecret         // refused: one side has a secret, and the other has none
	verdicts
)

// answer writes an answer to w. If refused is nil, the answer is a yes and ends in the bytes of
// follows. Otherwise the answer is a refusal, whose reason is the text of refused.
func answer(w io.Writer, refused error, follows []byte) error {
	b := make([]byte, answerHead, answerHead+maxReason+sumBytes)
	copy(b, answerMagic)
	b[4] = byte(verdictOf(refused))
	if refused != nil {
		follows = []byte(Clip(refused.Error(), maxReason))
		binary.LittleEndian.PutUint16(b[6:], uint16(len(follows)))
	}
	b = append(b, follows...)
	_, err := w.Write(binary.LittleEndian.AppendUint32(b, checksum.CRC32C(0, b)))
	return err
}

func verdictOf(refused error) verdict {
	var r *Refusal
	switch {
	case refused == nil:
		return yes
	case errors.Is(refused, ErrSecret):
		return secret
	case errors.Is(refused, ErrNoSecret):
		return noSecret
	case errors.As(refused, &r) && r.Later:
		return later
	}
	return no
}

// Clip returns s as valid UTF-8, cut to at most limit bytes.
func Clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	n := limit - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// readAnswer reads an answer. If the answer is a yes, it fills follows with the bytes at the
// end of the answer. It returns a refusal as a *Refusal. If the answer is malformed, it does
// not change follows.
func readAnswer(r io.Reader, follows []byte) error {
	var head [answerHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	length, v := int(binary.LittleEndian.Uint16(head[6:])), verdict(head[4])
	switch {
	case head[0] == 0x15 && head[1] == 3:
		return Violation("it answers with TLS, which this process does not use: give all of them the same credential")
	case string(head[:4]) != answerMagic:
		return Violation("its answer begins with %q: another program listens there, or it was damaged in transit", head[:])
	case v < yes || v >= verdicts || head[5] != 0 || length > maxReason || v == yes && length > 0:
		return Damaged("its answer begins with %q", head[:])
	case v == yes:
		length = len(follows)
	}
	text := make([]byte, length+sumBytes)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	text, sum := text[:length], binary.LittleEndian.Uint32(text[length:])
	if checksum.CRC32C(checksum.CRC32C(0, head[:]), text) != sum {
		return Damaged("its answer has a wrong checksum")
	}
	if v == yes {
		copy(follows, text)
		return nil
	}
	if !utf8.Valid(text) {
		return Violation("it gives a reason that is not UTF-8")
	}
	refused := &Refusal{Reason: string(text), Theirs: true, Later: v == later}
	switch v {
	case secret:
		refused.kind = ErrSecret
	case noSecret:
		refused.kind = ErrNoSecret
	}
	return refused
}

// The names of the two sides, one of which the HMAC of a proof includes.
const (
	dialer   = "superstep connection: dialer"
	listener = "superstep connection: listener"
)

// prove returns the proof that side, which is dialer or listener, knows the secret.
func prove(secret []byte, side string, hello, nonce []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(side))
	mac.Write(hello)
	mac.Write(nonce)
	return mac.Sum(nil)
}
