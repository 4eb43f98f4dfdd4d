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

// failure is an error with a gRPC code and a text for users.
type failure struct {
	code    codes.Code
	message string
}

// Error returns the text, without the code.
func (f *failure) Error() string { return f.message }

// GRPCStatus returns the error as a gRPC status. status.Code and status.FromError use it.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.message) }

// Unwrap returns context.Canceled or context.DeadlineExceeded, for errors.Is, if the code
// corresponds to one of these errors, and nil otherwise.
func (f *failure) Unwrap() error {
	switch f.code {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return nil
}

// Error returns an error with the given code. If a gRPC method returns it, the caller gets an
// error with the same code and the same text. The text is only the formatted message.
//
//	return nil, wire.Error(codes.NotFound, "there is no job %s: see superstep list", id)
func Error(code codes.Code, format string, args ...any) error {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

// Code returns the gRPC code of err: codes.OK if err is nil, and codes.Unknown if err has no
// code.
func Code(err error) codes.Code {
	if err != nil && errors.Is(err, context.Canceled) {
		return codes.Canceled
	}
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return status.Code(err)
}

// Reason returns the text of err for users: without "rpc error: code = …" and without the texts
// that the layers of gRPC's transport add. It replaces some texts of gRPC by texts that advise
// the user. It returns the texts of all other errors unchanged, and "" for nil.
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
		return text // the text does not contain gRPC's text
	}
	return strings.Replace(text, whole, explain(s), 1)
}

// plain converts an error of gRPC to an error that has the same code and whose text is
// Reason(err). It returns other errors, such as io.EOF, unchanged.
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

// explain returns the text of a status for users. It replaces gRPC's own texts, which it
// compares with their English wording. gRPC does not guarantee the wording, although it has
// been stable for years. Texts that do not match are returned unchanged, so no information is
// lost if gRPC changes its texts.
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
		// The other side knows the deadline too, and has ended the call before this side did.
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

// Garbled reports whether text, the text of a gRPC error, says that the HTTP/2 frames of a
// connection were invalid. The cause may be a proxy, or damage in transit, as HTTP/2 frames
// have no checksum.
func Garbled(text string) bool {
	for _, sign := range []string{"PROTOCOL_ERROR", "FRAME_SIZE_ERROR", "COMPRESSION_ERROR", "frame too large"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// unwrapTransport removes the texts that the layers of gRPC add to the text of an error.
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
