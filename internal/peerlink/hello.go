package peerlink

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// Kind is the purpose of a connection.
type Kind uint8

// The kinds of connections.
const (
	Control Kind = iota + 1 // control messages of a group: its members, heartbeats, and the first failure
	Lane                    // messages of a channel between two ranks of a group
	Rows                    // batches from one worker to another
	Copies                  // copies of the states of queues, from one worker to another
	Precopy                 // rows that move before the next attempt, and the requests for them
)

// String returns the name of the kind, for errors.
func (k Kind) String() string {
	names := [...]string{"connection of kind 0", "control connection", "lane", "connection for rows", "connection for copies", "connection for rows ahead"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("connection of kind %d", uint8(k))
}

// Hello describes the purpose of a connection. The meaning of its numbers depends on the kind.
type Hello struct {
	Kind    Kind
	Scope   string // name of the group that the connection belongs to; "" for kinds without groups
	Epoch   uint32 // number of the attempt of the job or group; other epochs are refused
	From    uint32 // the dialer's number
	To      uint32 // the listener's number
	Size    uint32 // number of processes or ranks, as configured at the dialer
	Channel uint32 // number of the channel between the two ranks
	Try     uint32 // number of the dialer's try, if the dialer counts its tries
	Sums    bool   // the data on the connection have checksums
}

// greeting is a Hello with the further fields of its encoding.
type greeting struct {
	Hello
	secret     bool // the dialer has a secret
	job, scope name
	nonce      [nonceBytes]byte
}

// name has the first 16 bytes of the SHA-256 of the name of a job or scope.
type name [16]byte

func nameOf(s string) (n name) {
	sum := sha256.Sum256([]byte(s))
	copy(n[:], sum[:])
	return n
}

const (
	version      = 1
	helloMagic   = "SSPL"
	helloBytes   = 100
	preludeBytes = 8 // magic, version, kind and flags: the same in all versions
	nonceBytes   = 32
	sumBytes     = 4

	flagSums   = 1
	flagSecret = 2
)

// greeting returns the greeting with hello h and the job of the port. If the port has a secret,
// the greeting has a new nonce.
func (p *Port) greeting(h Hello) *greeting {
	g := &greeting{Hello: h, secret: len(p.cfg.Secret) > 0, job: p.job, scope: nameOf(h.Scope)}
	if g.secret { // without a secret there is no proof, and no nonce is needed
		rand.Read(g.nonce[:])
	}
	return g
}

func (g *greeting) encode() []byte {
	b := make([]byte, helloBytes)
	le := binary.LittleEndian
	copy(b, helloMagic)
	le.PutUint16(b[4:], version)
	b[6] = byte(g.Kind)
	if g.Sums {
		b[7] |= flagSums
	}
	if g.secret {
		b[7] |= flagSecret
	}
	for i, v := range [...]uint32{g.Epoch, g.From, g.To, g.Size, g.Channel, g.Try} {
		le.PutUint32(b[8+4*i:], v)
	}
	copy(b[32:], g.job[:])
	copy(b[48:], g.scope[:])
	copy(b[64:], g.nonce[:])
	le.PutUint32(b[helloBytes-sumBytes:], checksum.CRC32C(0, b[:helloBytes-sumBytes]))
	return b
}

// readGreeting reads the hello of a new connection, and returns it and its bytes. If the error
// is a Refusal, the caller must send it to the other side.
func readGreeting(r io.Reader) (*greeting, []byte, error) {
	raw := make([]byte, helloBytes)
	if _, err := io.ReadFull(r, raw[:preludeBytes]); err != nil {
		return nil, nil, fmt.Errorf("it sent no hello: %w", err)
	}
	le := binary.LittleEndian
	switch v := le.Uint16(raw[4:]); {
	case raw[0] == 0x16 && raw[1] == 3:
		return nil, nil, errors.New("it begins with TLS, which this process does not use: give all of them the same credential")
	case !bytes.HasPrefix(raw, []byte(helloMagic)):
		return nil, nil, fmt.Errorf("it begins with %q, which is no hello", raw[:preludeBytes])
	case v != version:
		return nil, nil, RefuseLater("version %d of the protocol does not go with version %d: run the same build everywhere (or its hello was damaged in transit)", v, version)
	}
	if _, err := io.ReadFull(r, raw[preludeBytes:]); err != nil {
		return nil, nil, fmt.Errorf("its hello breaks off: %w", err)
	}
	if checksum.CRC32C(0, raw[:helloBytes-sumBytes]) != le.Uint32(raw[helloBytes-sumBytes:]) {
		return nil, nil, Damaged("its hello has a wrong checksum")
	}
	if flags := raw[7]; raw[6] == 0 || flags&^(flagSums|flagSecret) != 0 {
		return nil, nil, Refuse("its hello is of kind %d with flags %#02x, which have no meaning", raw[6], flags)
	}
	g := &greeting{secret: raw[7]&flagSecret != 0}
	g.Kind, g.Sums = Kind(raw[6]), raw[7]&flagSums != 0
	for i, v := range [...]*uint32{&g.Epoch, &g.From, &g.To, &g.Size, &g.Channel, &g.Try} {
		*v = le.Uint32(raw[8+4*i:])
	}
	copy(g.job[:], raw[32:])
	copy(g.scope[:], raw[48:])
	copy(g.nonce[:], raw[64:])
	return g, raw, nil
}
