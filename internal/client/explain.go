package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// requestError is an error of a request with a text for users. It wraps the original error.
type requestError struct {
	text string
	err  error
}

func (e *requestError) Error() string { return e.text }
func (e *requestError) Unwrap() error { return e.err }

// Explain returns err, the error of a request, with a text that says what is wrong and what to
// do about it. The result wraps err, for errors.Is and wire.Code. Cancellations, errors that
// are explained already, and nil are returned unchanged.
func (c *Client) Explain(err error) error {
	var said *requestError
	if err == nil || errors.As(err, &said) || errors.Is(err, context.Canceled) {
		return err
	}
	text := wire.Reason(err)
	switch wire.Code(err) {
	case codes.Internal:
		if wire.Garbled(text) {
			text = c.broke(text)
		}
	case codes.Unavailable:
		text = c.unreachable(err)
	case codes.DeadlineExceeded:
		text = fmt.Sprintf("the job manager at %s does not answer: it may be stopped or overloaded, or a firewall drops what is sent to it", c.address)
	case codes.Unauthenticated:
		if c.token.missing != nil {
			text = c.token.missing.Error()
		} else {
			text = fmt.Sprintf("%s (the token shown was from %s)", text, c.token.from)
		}
	}
	return &requestError{text, err}
}

// unreachable returns a text that says why there is no connection, or why the other side is not
// a job manager. It examines the text of err, as gRPC does not wrap the errors of the operating
// system.
func (c *Client) unreachable(err error) string {
	if strings.Contains(wire.Reason(err), "connection refused") {
		return fmt.Sprintf("no job manager answers at %s: start one with `superstep dev` or `superstep jobmanager`, or check the address", c.address)
	}
	reason := wire.Reason(security.ExplainDial(err))
	if strings.Contains(reason, "error reading from server") || wire.Garbled(reason) {
		return c.broke(reason)
	}
	return fmt.Sprintf("the job manager at %s cannot be reached: %s", c.address, reason)
}

// broke returns a text that says that an existing connection broke, and the reason.
func (c *Client) broke(reason string) string {
	return fmt.Sprintf("the connection to the job manager at %s broke: %s", c.address, reason)
}
