package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("plain"), "plain"},
		{Error(codes.NotFound, "there is no job %s", "j"), "there is no job j"},
		{fmt.Errorf("show: %w", Error(codes.NotFound, "no job")), "show: no job"},
		{status.Error(codes.NotFound, "no job"), "no job"},
		{fmt.Errorf("show: %w", status.Error(codes.NotFound, "no job")), "show: no job"},
		{fmt.Errorf("show it: %w", fmt.Errorf("show: %w!", status.Error(codes.NotFound, "no job"))), "show it: show: no job!"},
		{status.Error(codes.Unavailable, ""), "unavailable"},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`), "dial tcp 127.0.0.1:1: connect: connection refused"},
		{status.Error(codes.DeadlineExceeded, `context deadline exceeded while waiting for connections to become ready: last connection error: connection error: desc = "transport: Error while dialing: dial tcp: no route"`), "dial tcp: no route"},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`), "tls: first record does not look like a TLS handshake"},
		{status.FromContextError(context.Canceled).Err(), "cancelled"},
		{status.FromContextError(context.DeadlineExceeded).Err(), "no answer in time"},
		{status.Error(codes.Unimplemented, "unknown method Rescale for service superstep.v1.JobManager"), "the other side does not know the call Rescale: it is older than this program, or no job manager; upgrade it"},
		{status.Error(codes.Unimplemented, "unknown service x"), "what answers there is no job manager: check the address"},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), "a message is larger than the limit (5 vs. 4)"},
		{status.Error(codes.ResourceExhausted, "trying to send message larger than max (5 vs. 4)"), "a message is larger than the limit (5 vs. 4)"},
		{status.Error(codes.Internal, "grpc: error while marshaling: message Chunk does not encode"), "message Chunk does not encode"},
		{status.Error(codes.Internal, `"quoted" and on`), `"quoted" and on`},
	} {
		require.Equal(t, c.want, Reason(c.err))
		if c.err != nil {
			require.NotContains(t, Reason(plain(c.err)), "rpc error")
			require.Equal(t, Code(c.err), Code(plain(c.err)))
		}
	}
}

func TestPlainLeavesOthersAlone(t *testing.T) {
	require.NoError(t, plain(nil))
	require.Equal(t, io.EOF, plain(io.EOF))
	ours := Error(codes.Aborted, "stop")
	require.Same(t, ours, plain(ours))
	wrapped := fmt.Errorf("with more: %w", status.Error(codes.Aborted, "stop"))
	require.Equal(t, wrapped, plain(wrapped))
}

func TestErrorsKeepTheirCodes(t *testing.T) {
	err := fmt.Errorf("outer: %w", Error(codes.NotFound, "inner"))
	require.Equal(t, codes.NotFound, Code(err))
	s, ok := status.FromError(err)
	require.True(t, ok)
	require.Equal(t, "outer: inner", s.Message())
	require.Equal(t, codes.OK, Code(nil))
	require.Equal(t, codes.Unknown, Code(errors.New("x")))
	require.Equal(t, codes.Canceled, Code(context.Canceled))
	require.Equal(t, codes.DeadlineExceeded, Code(context.DeadlineExceeded))
	require.ErrorIs(t, Error(codes.Canceled, "x"), context.Canceled)
	require.ErrorIs(t, Error(codes.DeadlineExceeded, "x"), context.DeadlineExceeded)
	require.NotErrorIs(t, Error(codes.Aborted, "x"), context.Canceled)
}

func TestVersions(t *testing.T) {
	require.NoError(t, CheckVersion(Version, "the job manager"))
	require.EqualError(t, CheckVersion(Version-1, "the job manager at h:6123"), "the job manager at h:6123 speaks version 4 of the protocol and this program version 5: upgrade the job manager at h:6123")
	require.EqualError(t, CheckVersion(Version+1, "the job manager"), "the job manager speaks version 6 of the protocol and this program version 5: upgrade this program")
	require.Equal(t, codes.FailedPrecondition, Code(CheckVersion(0, "")))
}

func TestBuild(t *testing.T) {
	require.Regexp(t, `^\S+ \(\w+/\w+, go.*\)$`, Build())
	require.Equal(t, "devel", version(nil))
	require.Equal(t, "v1.2.3", version(&debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}))
	require.Equal(t, "devel-0123456789ab+modified", version(&debug.BuildInfo{
		Main:     debug.Module{Path: module, Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	}))
	user := debug.Module{Path: "example.com/mine", Version: "v9.9.9"}
	require.Equal(t, "v1.2.3", version(&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: module, Version: "v1.2.3"}}}))
	require.Equal(t, "devel", version(&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../"}}}}))
	require.Equal(t, "devel", version(&debug.BuildInfo{Main: user}))
}
