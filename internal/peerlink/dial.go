package peerlink

import (
	"context"
	"crypto/hmac"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// answerTimeout is the time for which a dialer waits for the last answer. It is long, because
// the listener may have admitted the connection already. If the dialer then gave up, the
// listener would take it for crashed.
const answerTimeout = 20 * time.Second

// Dial connects to the port of another process and shakes hands. It does not retry; IsFinal
// reports whether another try after the error is useless. If the last answer was damaged, the
// other side may already use the connection. In that case Dial returns both the connection and
// the error. The caller must close the connection. A caller that reports the error to other
// processes must do so before it closes the connection.
func (p *Port) Dial(ctx context.Context, address string, h Hello) (net.Conn, error) {
	nc, err := p.cfg.Net.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	secure, err := p.introduce(ctx, nc, address, h)
	if !stop() && err == nil {
		secure, err = nil, context.Cause(ctx)
	}
	if err != nil && secure == nil {
		nc.Close()
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	return secure, err
}

// introduce carries out the dialer's side of a handshake. It returns the connection, which is
// inside TLS if the port uses it.
func (p *Port) introduce(ctx context.Context, nc net.Conn, address string, h Hello) (net.Conn, error) {
	limit(ctx, nc, handshakeTimeout)
	nc, err := p.encrypt(ctx, nc, address)
	if err != nil {
		return nil, err
	}
	g := p.greeting(h)
	hello := g.encode()
	if _, err := nc.Write(hello); err != nil {
		return nil, err
	}
	if p.Secret() > 0 {
		if err := p.proveTo(nc, hello); err != nil {
			return nil, err
		}
	}
	limit(ctx, nc, answerTimeout)
	switch err := readAnswer(nc, nil); {
	case err == nil:
		return nc, nil
	case p.Secret() == 0 && p.cfg.TLS == nil && errors.Is(err, io.EOF):
		return nil, fmt.Errorf("it closes the connection without an answer: does it use TLS, which this process does not? (%w)", err)
	case IsClosed(err), errors.Is(err, ErrRefused):
		return nil, err
	case errors.Is(err, ErrDamaged):
		return nc, err
	case ctx.Err() != nil:
		return nil, err
	default:
		return nil, Final(err)
	}
}

// limit sets the deadline of nc to the time d from now. If ctx has ended already, it sets a
// deadline in the past. If ctx ends later, Dial sets such a deadline.
func limit(ctx context.Context, nc net.Conn, d time.Duration) {
	nc.SetDeadline(time.Now().Add(d))
	if ctx.Err() != nil {
		nc.SetDeadline(time.Unix(1, 0))
	}
}

// encrypt returns the connection, inside TLS if the port uses it.
func (p *Port) encrypt(ctx context.Context, nc net.Conn, address string) (net.Conn, error) {
	if p.cfg.TLS == nil {
		return nc, nil
	}
	t := p.cfg.TLS
	if t.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, Final(err)
		}
		t = t.Clone()
		t.ServerName = host
	}
	secure := tls.Client(nc, t)
	if err := secure.HandshakeContext(ctx); err != nil {
		err = fmt.Errorf("TLS: %w", err)
		if isTLSRefusal(err) {
			err = Final(err)
		}
		return nil, err
	}
	return secure, nil
}

// isTLSRefusal reports whether err, the error of a TLS handshake, says that one side refused
// the other, or that the server does not use TLS. It returns false for a broken connection.
func isTLSRefusal(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	return errors.As(err, &verify) || errors.As(err, &alert) || errors.As(err, &record)
}

// proveTo checks the listener's proof that it knows the secret, and sends the dialer's proof.
func (p *Port) proveTo(nc net.Conn, hello []byte) error {
	theirs := make([]byte, nonceBytes+proofBytes)
	switch err := readAnswer(nc, theirs); {
	case p.cfg.TLS == nil && errors.Is(err, io.EOF):
		return fmt.Errorf("it closes the connection without an answer: does it use TLS, which this process does not? (%w)", err)
	case errors.Is(err, ErrProtocol), isTLSRefusal(err):
		return Final(err)
	case err != nil:
		return err
	}
	nonce := theirs[:nonceBytes]
	if err := matches(theirs[nonceBytes:], prove(p.cfg.Secret, listener, hello, nonce)); err != nil {
		answer(nc, err, nil)
		return err
	}
	return answer(nc, nil, prove(p.cfg.Secret, dialer, hello, slices.Clone(nonce)))
}

// matches returns a refusal if proof differs from want, the expected proof.
func matches(proof, want []byte) error {
	if !hmac.Equal(proof, want) {
		return refuseFor(ErrSecret, "")
	}
	return nil
}

// Retry calls try until it succeeds, its error is final, or ctx ends. It returns the last error
// that does not merely report the end of ctx, or the first error if all errors do.
func Retry[T any](ctx context.Context, try func(context.Context) (T, error)) (T, error) {
	const first, longest = 5 * time.Millisecond, 500 * time.Millisecond
	var none T
	var last error
	for pause := first; ; pause = min(2*pause, longest) {
		v, err := try(ctx)
		if err == nil {
			return v, nil
		}
		over := ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)) || errors.Is(err, os.ErrDeadlineExceeded))
		if last == nil || !over {
			last = err
		}
		if IsFinal(err) && !over {
			return none, last
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return none, last
		}
	}
}
