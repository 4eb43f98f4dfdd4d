package wire

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failure is an error with a gRPC code whose text is for people.
type failure struct {
	code    codes.Code
	message string
}

// Error returns what went wrong, without the code.
func (f *failure) Error() string { return f.message }

// GRPCStatus returns the error for gRPC; status.Code and status.FromError use it.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.message) }

// Unwrap makes errors.Is(err, context.Canceled) and the like work.
func (f *failure) Unwrap() error {
	switch f.code {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return nil
}

// Error makes an error that reaches the caller on the other side of gRPC with the same code and
// the same text. The text has nothing but the formatted message.
//
//	return nil, wire.Error(codes.NotFound, "there is no job %s: see superstep list", id)
func Error(code codes.Code, format string, args ...any) error {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

// Code returns the gRPC code of an error, codes.OK of nil, and codes.Unknown of an
// error that has none.
func Code(err error) codes.Code {
	if err != nil && errors.Is(err, context.Canceled) {
		return codes.Canceled
	}
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return status.Code(err)
}

// Reason returns the text of an error for people: without "rpc error: code = …" and without the
// layers of gRPC's transport. Errors of gRPC itself are put in words that say what to do. An
// error that has nothing to do with gRPC keeps its text; nil gives "".
func Reason(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	var coded interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &coded) {
		return text
	}
	s := coded.GRPCStatus()
	if s.Code() == codes.OK {
		return text
	}
	whole := fmt.Sprintf("rpc error: code = %s desc = %s", s.Code(), s.Message())
	if !strings.Contains(text, whole) {
		return text // the text is ours already, or a wrapping error left it out
	}
	return strings.Replace(text, whole, explain(s), 1)
}

// plain turns an error of gRPC into one whose text is its Reason. Others, io.EOF among
// them, stay what they are.
func plain(err error) error {
	if err == nil {
		return nil
	}
	if _, ours := err.(*failure); ours {
		return err
	}
	s, ok := err.(interface{ GRPCStatus() *status.Status })
	if !ok {
		return err
	}
	return &failure{code: s.GRPCStatus().Code(), message: explain(s.GRPCStatus())}
}

// explain writes a status for people. It replaces gRPC's own texts, which are in English and
// have been stable for years but are not guaranteed. A text that does not match is kept, so
// nothing is lost if they change.
func explain(s *status.Status) string {
	message := unwrapTransport(s.Message())
	switch {
	case s.Code() == codes.Unimplemented && strings.HasPrefix(message, "unknown method "):
		method, _, _ := strings.Cut(strings.TrimPrefix(message, "unknown method "), " ")
		return fmt.Sprintf("the other side does not know the call %s: it is older than this program, or no job manager; upgrade it", method)
	case s.Code() == codes.Unimplemented && strings.HasPrefix(message, "unknown service "):
		return "what answers there is no job manager: check the address"
	case s.Code() == codes.Canceled && message == context.Canceled.Error():
		return "cancelled"
	case s.Code() == codes.Canceled && strings.HasPrefix(message, "stream terminated by RST_STREAM"):
		return "cancelled by the other side"
	case s.Code() == codes.DeadlineExceeded && strings.HasPrefix(message, context.DeadlineExceeded.Error()),
		// The other side, which knows the deadline, was faster to give up.
		s.Code() == codes.DeadlineExceeded && strings.HasPrefix(message, "stream terminated by RST_STREAM"):
		return "no answer in time"
	case strings.HasPrefix(message, "received message larger than max"), strings.HasPrefix(message, "trying to send message larger than max"):
		return "a message is larger than the limit " + message[strings.Index(message, "("):]
	case Garbled(message):
		return "what arrived was no valid HTTP/2, so that it was damaged in transit, or is changed on the way (" + message + ")"
	case message == "":
		return strings.ToLower(s.Code().String())
	}
	return message
}

// Garbled reports whether a text of gRPC says that the HTTP/2 frames of a connection were
// invalid. No checksum covers them; a proxy or damage in transit may be the cause.
func Garbled(text string) bool {
	for _, sign := range []string{"PROTOCOL_ERROR", "FRAME_SIZE_ERROR", "COMPRESSION_ERROR", "frame too large"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// unwrapTransport removes what the layers of gRPC put around the text of an error.
func unwrapTransport(message string) string {
	for _, layer := range []string{
		"grpc: error while marshaling: ",
		"grpc: failed to unmarshal the received message: ",
		"error while marshaling: ",
		"grpc: ",
	} {
		message = strings.TrimPrefix(message, layer)
	}
	for _, layer := range []string{"connection error: desc = ", "last connection error: "} {
		if _, inner, found := strings.Cut(message, layer); found {
			message = inner
		}
	}
	if text, err := strconv.Unquote(message); err == nil {
		message = text
	}
	for _, layer := range []string{"transport: Error while dialing: ", "transport: authentication handshake failed: ", "transport: "} {
		message = strings.TrimPrefix(message, layer)
	}
	return message
}
